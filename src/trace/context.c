/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reading and writing W3C Trace Context, and the samplers (context.h).
 *
 * A traceparent is `VV-TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT-PPPPPPPPPPPPPPPP-FF`, all of it lower-case
 * hexadecimal: version, trace id, the caller's span, flags.
 */
#include "trace/context.h"

#include <stdlib.h>
#include <string.h>

#include "abi/hot.h"

#define LENGTH (PH_TRACEPARENT_SIZE - 1u)
#define VERSION_AT 0u
#define TRACE_AT 3u
#define PARENT_AT 36u
#define FLAGS_AT 53u
#define VERSION_NONE 0xffu
#define FLAG_SAMPLED 1u

/* ---- hexadecimal --------------------------------------------------------------------------------------- */

/* The value of a digit; 16 for what is none, capitals among it. */
static unsigned digit_value(char digit) {
    if (digit >= '0' && digit <= '9')
        return (unsigned)(digit - '0');
    return digit >= 'a' && digit <= 'f' ? (unsigned)(digit - 'a' + 10) : 16;
}

static bool bytes_read(const char *text, uint8_t *bytes, size_t size) {
    unsigned wrong = 0;

    for (size_t i = 0; i < size; i++) {
        unsigned high = digit_value(text[2 * i]), low = digit_value(text[2 * i + 1]);
        wrong |= (high | low) & 16;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return wrong == 0;
}

PH__HOT static void bytes_write(char *text, const uint8_t *bytes, size_t size) {
    static const char digits[16] = "0123456789abcdef";

    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
}

/* ---- the headers --------------------------------------------------------------------------------------- */

bool ph__traceparent_read(const char *text, struct ph__traceparent *parent) {
    uint8_t version, flags;
    /* One more than the longest that matters: whether there is more behind version 00. */
    size_t length = text ? strnlen(text, LENGTH + 1) : 0;

    if (length < LENGTH || !bytes_read(text + VERSION_AT, &version, 1) || version == VERSION_NONE)
        return false;
    /* Nothing follows version 00. Later ones may have more fields behind the ones that are known. */
    if (length > LENGTH && (version == 0 || text[LENGTH] != '-'))
        return false;
    if (text[TRACE_AT - 1] != '-' || text[PARENT_AT - 1] != '-' || text[FLAGS_AT - 1] != '-')
        return false;
    if (!bytes_read(text + TRACE_AT, parent->trace_id, sizeof parent->trace_id) ||
        !bytes_read(text + PARENT_AT, parent->parent, sizeof parent->parent) ||
        !bytes_read(text + FLAGS_AT, &flags, 1))
        return false;
    parent->sampled = flags & FLAG_SAMPLED;
    return ph__id_is_set(parent->trace_id, sizeof parent->trace_id) &&
           ph__id_is_set(parent->parent, sizeof parent->parent);
}

bool ph_traceparent_is_valid(const char *traceparent) {
    struct ph__traceparent parent;

    return ph__traceparent_read(traceparent, &parent);
}

PH__HOT void ph__traceparent_write(char text[PH_TRACEPARENT_SIZE], const struct ph__traceparent *parent) {
    const uint8_t version = 0;

    bytes_write(text + VERSION_AT, &version, 1);
    text[TRACE_AT - 1] = '-';
    bytes_write(text + TRACE_AT, parent->trace_id, sizeof parent->trace_id);
    text[PARENT_AT - 1] = '-';
    bytes_write(text + PARENT_AT, parent->parent, sizeof parent->parent);
    text[FLAGS_AT - 1] = '-';
    memcpy(text + FLAGS_AT, parent->sampled ? "01" : "00", sizeof "00");
}

bool ph__tracestate_is_valid(const char *text) {
    size_t length = text ? strnlen(text, PH__TRACESTATE_MAX + 1) : 0;

    if (length == 0 || length > PH__TRACESTATE_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return true;
}

bool ph__caller_set(struct ph__caller *caller, const char *traceparent, const char *tracestate) {
    struct ph__caller made = {.known = false};

    if (ph__traceparent_read(traceparent, &made.parent)) {
        made.known = true;
        /* A later version is passed on as the version that is known here, with what that says. */
        if (memcmp(traceparent, "00", 2) == 0)
            memcpy(made.traceparent, traceparent, LENGTH);
        else
            ph__traceparent_write(made.traceparent, &made.parent);
        if (ph__tracestate_is_valid(tracestate)) {
            made.tracestate = strdup(tracestate);
            if (!made.tracestate)
                return false;
        }
    }
    ph__caller_end(caller);
    *caller = made;
    return true;
}

void ph__caller_end(struct ph__caller *caller) {
    free(caller->tracestate);
    *caller = (struct ph__caller){.known = false};
}

/* ---- samplers ------------------------------------------------------------------------------------------ */

/* OpenTelemetry takes the last 56 bits of a trace id for random, and has a sampler record what is not below
 * (1 - ratio) * 2^56 (https://opentelemetry.io/docs/specs/otel/trace/sdk/#traceidratiobased). */
#define RANDOM_BYTES 7u
#define RANDOM_END ((double)(1ull << (8 * RANDOM_BYTES)))

uint64_t ph__ratio_threshold(double ratio) {
    return (uint64_t)((1 - ratio) * RANDOM_END + 0.5);
}

PH__HOT static bool ratio_takes(uint64_t threshold, const uint8_t *trace_id) {
    uint64_t random = 0;

    for (size_t i = PH__TRACE_ID_SIZE - RANDOM_BYTES; i < PH__TRACE_ID_SIZE; i++)
        random = random << 8 | trace_id[i];
    return random >= threshold;
}

PH__HOT bool ph__sampling_takes(const struct ph__sampling *sampling, const struct ph__traceparent *parent,
                                const uint8_t trace_id[PH__TRACE_ID_SIZE]) {
    if (parent && sampling->sampler <= PH_SAMPLER_PARENT_RATIO)
        return parent->sampled;
    switch (sampling->sampler) {
    case PH_SAMPLER_PARENT_RATIO:
    case PH_SAMPLER_RATIO:
        return ratio_takes(sampling->threshold, trace_id);
    case PH_SAMPLER_PARENT_ALWAYS_OFF:
    case PH_SAMPLER_ALWAYS_OFF:
        return false;
    default:
        return true;
    }
}
