/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a collector answers, in protocol buffers. It comes from the network, and may be anything.
 */
#ifndef PH_EXPORT_OTLP_ANSWER_H
#define PH_EXPORT_OTLP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So much of an answer is kept; the rest is thrown away. */
#define PH__OTLP_ANSWER_MAX 4096

struct ph__otlp_answer {
    /* Of a partial success: how many items were rejected, never negative. */
    uint64_t rejected;
    /* The collector's own words, in the answer's bytes, or NULL; not to be trusted, and not terminated. */
    const char *message;
    size_t message_size;
};

/* Reads an Export...ServiceResponse of any signal. What is no such message, or not whole, leaves what could
 * be read before it. */
void ph__otlp_answer_read(const uint8_t *bytes, size_t size, struct ph__otlp_answer *answer);

/* Reads a google.rpc.Status, which has a message alone. */
void ph__otlp_failure_read(const uint8_t *bytes, size_t size, struct ph__otlp_answer *answer);

#endif
