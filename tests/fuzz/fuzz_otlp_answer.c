/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Has any bytes read as a collector's answer: what is found lies in them, and no number is negative. By hand,
 * from the top of the source tree:
 *
 *   clang -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Isrc \
 *       tests/fuzz/fuzz_otlp_answer.c src/export/otlp_answer.c -o fuzz_otlp_answer
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/otlp_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ph__otlp_answer *answer, const uint8_t *data, size_t size) {
    const uint8_t *message = (const uint8_t *)answer->message;

    if (answer->rejected > INT64_MAX || (!message && answer->message_size) ||
        (message && (message < data || message + answer->message_size > data + size))) {
        fputs("broken promise: what is found lies in the answer\n", stderr);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ph__otlp_answer answer;

    ph__otlp_answer_read(data, size, &answer);
    check(&answer, data, size);
    ph__otlp_failure_read(data, size, &answer);
    check(&answer, data, size);
    return 0;
}
