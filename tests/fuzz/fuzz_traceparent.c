/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Has any two texts taken as a traceparent and a tracestate: nothing is read outside of them, and what is
 * accepted is what the specification allows, and reads back from what is passed on.
 * The input is the one, a NUL, and the other. By hand, from the top of the source tree:
 *
 *   clang -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
 *       -Iinclude -Isrc tests/fuzz/fuzz_traceparent.c src/trace/context.c -o fuzz_traceparent
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

/* The (size) bytes at (data), up to their first NUL, as a text in memory of just that size. */
static char *text_of(const uint8_t *data, size_t size) {
    size_t length = strnlen((const char *)data, size);
    char *text = malloc(length + 1);

    if (!text)
        abort();
    memcpy(text, data, length);
    text[length] = '\0';
    return text;
}

static void check_accepted(const char *text, const struct ph__caller *caller) {
    struct ph__traceparent again;

    expect(strlen(text) >= PH_TRACEPARENT_SIZE - 1, "it is not short");
    expect(strspn(text, "0123456789abcdef-") >= PH_TRACEPARENT_SIZE - 1, "it has these characters alone");
    expect(strncmp(text, "ff", 2) != 0, "ff is no version");
    expect(ph__id_is_set(caller->parent.trace_id, PH__TRACE_ID_SIZE), "there is a trace");
    expect(ph__id_is_set(caller->parent.parent, PH__SPAN_ID_SIZE), "there is a parent");
    expect(strlen(caller->traceparent) == PH_TRACEPARENT_SIZE - 1, "what is passed on has its length");
    expect(strncmp(caller->traceparent, "00", 2) == 0, "and the version that is known");
    expect(strncmp(caller->traceparent + 2, text + 2, 51) == 0, "and the same ids");
    expect(ph__traceparent_read(caller->traceparent, &again), "it is valid");
    expect(again.sampled == caller->parent.sampled, "and says the same");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ph__caller caller = {.known = false};
    char *parent = text_of(data, size);
    size_t behind = strlen(parent) < size ? strlen(parent) + 1 : size;
    char *tracestate = text_of(data + behind, size - behind);

    if (!ph__caller_set(&caller, parent, tracestate))
        abort();
    expect(caller.known == ph_traceparent_is_valid(parent), "both say the same of it");
    if (caller.known)
        check_accepted(parent, &caller);
    else
        expect(!caller.traceparent[0] && !caller.tracestate, "nothing is left of what is not valid");
    expect(!caller.tracestate || strcmp(caller.tracestate, tracestate) == 0, "a tracestate is not changed");
    ph__caller_end(&caller);
    free(parent);
    free(tracestate);
    return 0;
}
