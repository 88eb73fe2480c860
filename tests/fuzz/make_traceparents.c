/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Writes the first inputs of fuzz_traceparent, for it to change: `make_traceparents FILE...` puts the first
 * sample into the first FILE and so on.
 */
#include <stdio.h>
#include <string.h>

#define TRACE "-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-"

static const struct {
    const char *traceparent, *tracestate;
} samples[] = {
    {"00" TRACE "01", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"},
    {"00" TRACE "00", ""},
    {"01" TRACE "03-what the future brings", "a=1"},
    {"00" TRACE "1", "a=\t1"},
};

int main(int count, char **words) {
    for (int i = 1; i < count && (size_t)i <= sizeof samples / sizeof samples[0]; i++) {
        FILE *file = fopen(words[i], "wb");
        if (!file)
            return 1;
        fwrite(samples[i - 1].traceparent, 1, strlen(samples[i - 1].traceparent) + 1, file);
        fwrite(samples[i - 1].tracestate, 1, strlen(samples[i - 1].tracestate), file);
        if (fclose(file) != 0)
            return 1;
    }
    return 0;
}
