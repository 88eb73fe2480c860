/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reading records (abi/trace.h) out of bytes that were copied from a guest's ring. Every number in them is
 * hostile; nothing here reads outside the bytes that it is given, allocates, or keeps state.
 */
#ifndef PH_TRACE_RECORD_H
#define PH_TRACE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pinhole/trace.h>

#include "abi/trace.h"

struct ph__record {
    enum ph__record_type type;
    uint32_t site;           /* of SPAN_END: 0 */
    uint64_t stack;          /* bits 4..35 of the stack pointer, 0 for none; of SPAN_END: 0 */
    uint64_t begin_position; /* of SPAN_END */
    uint64_t tsc;
    const uint64_t *words; /* behind the head */
    uint32_t count;        /* of (words) */
};

/* Takes the record at (bytes), of which (size), a multiple of 8, may be read; (bytes) is aligned to 8.
 * Returns its length in bytes, at most (size), with (record) filled in; its type may be none that there is.
 * 0 when no record can be told there: its length is impossible. Inline: ten million a second go through it.
 */
static inline size_t ph__record_take(const uint8_t *bytes, size_t size, struct ph__record *record) {
    const uint64_t *words = (const uint64_t *)(const void *)bytes;

    if (size < 8 * PH__RECORD_WORDS_MIN)
        return 0;
    uint64_t head = words[0];
    uint32_t length = (uint32_t)(head & PH__RECORD_LENGTH_MASK);
    if (length < PH__RECORD_WORDS_MIN || length > size / 8)
        return 0;
    record->type = (enum ph__record_type)(head >> PH__RECORD_TYPE_SHIFT & PH__RECORD_TYPE_MASK);
    record->site = (uint32_t)(head >> PH__RECORD_SITE_SHIFT) & PH__SITE_MAX;
    record->stack = head >> PH__RECORD_STACK_SHIFT;
    record->begin_position = 0;
    if (record->type == PH__RECORD_SPAN_END) {
        record->site = 0;
        record->stack = 0;
        record->begin_position = head >> PH__RECORD_SITE_SHIFT << 3;
    }
    record->tsc = words[1];
    record->words = words + PH__RECORD_WORDS_MIN;
    record->count = length - PH__RECORD_WORDS_MIN;
    return (size_t)length * 8;
}

/* Room for the texts of one record: every string made valid UTF-8 (at most three bytes for one that was none)
 * with a NUL. */
#define PH__RECORD_TEXT_MAX (3 * 8 * PH__RECORD_WORDS_MAX + 8 * PH__TRACE_FIELDS_MAX)

/* Reads (count) values of (types) from the (word_count) words at (words) into (fields), their names left
 * alone. Strings are put into (text), PH__RECORD_TEXT_MAX bytes, as valid UTF-8 with a NUL; bytes point into
 * (words). Any bool that is not 0 is true. False when the words are not exactly these values; (fields) and
 * (text) then hold nothing of use. */
bool ph__record_values(const uint64_t *words, uint32_t word_count, const uint8_t *types, uint32_t count,
                       ph_field *fields, char *text);

/* Reads the values of a log: first the word of their types, of which (*count) are found. (fields) has room
 * for PH__TRACE_FIELDS_MAX. */
bool ph__record_log_values(const uint64_t *words, uint32_t word_count, ph_field *fields, uint32_t *count,
                           char *text);

#endif
