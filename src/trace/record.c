/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reading the values of records (record.h). Every size and type in them was written by a guest.
 */
#include "trace/record.h"

#include <string.h>

#include "trace/text.h"

/* Reads a string or bytes from the (available) words at (words) into (field). (*text) moves behind what a
 * string takes there. Returns how many words they take, 0 when they are not all there. */
static uint32_t sized_take(const uint64_t *words, uint32_t available, uint8_t type, ph_field *field,
                           char **text) {
    uint64_t untrusted_sizes = words[0];
    uint32_t size = (uint32_t)(untrusted_sizes & 0xffff);
    uint64_t full_size = untrusted_sizes >> 32;
    uint32_t taken = 1 + (size + 7) / 8;
    const char *bytes = (const char *)(words + 1);
    bool cut = full_size > size;

    if (size > PH__TRACE_STRING_MAX || taken > available)
        return 0;
    if (type == PH_BYTES) {
        field->value = (ph_value){.type = PH_BYTES, .bytes = {size ? bytes : NULL, size}};
        field->size = size;
        field->full_size = cut ? full_size : size;
        return taken;
    }
    size_t length = ph__text_make_valid(*text, bytes, size, cut);
    field->value = (ph_value){.type = PH_STR, .str = *text};
    field->size = length;
    /* Larger than (size) for what was cut, also when the repair has made it longer. */
    field->full_size = !cut ? length : full_size > length ? full_size : length + (full_size - size);
    *text += length + 1;
    return taken;
}

bool ph__record_values(const uint64_t *words, uint32_t word_count, const uint8_t *types, uint32_t count,
                       ph_field *fields, char *text) {
    uint32_t taken = 0;

    /* More would not fit (text). */
    if (word_count > PH__RECORD_WORDS_MAX || count > PH__TRACE_FIELDS_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        ph_field *field = &fields[i];
        uint32_t used = 1;

        if (taken == word_count)
            return false;
        uint64_t word = words[taken];
        switch (types[i]) {
        case PH_I64:
        case PH_U64:
        case PH_F64:
        case PH_POINTER:
            /* One word, whichever member it is read by. */
            field->value = (ph_value){.type = (ph_type)types[i], .u64 = word};
            field->size = field->full_size = 0;
            break;
        case PH_BOOL:
            field->value = (ph_value){.type = PH_BOOL, .boolean = word != 0};
            field->size = field->full_size = 0;
            break;
        case PH_STR:
        case PH_BYTES:
            used = sized_take(words + taken, word_count - taken, types[i], field, &text);
            if (used == 0)
                return false;
            break;
        default:
            return false;
        }
        taken += used;
    }
    return taken == word_count;
}

bool ph__record_log_values(const uint64_t *words, uint32_t word_count, ph_field *fields, uint32_t *count,
                           char *text) {
    uint8_t types[PH__TRACE_FIELDS_MAX];
    uint32_t found = 0;

    *count = 0;
    if (word_count == 0)
        return false;
    uint64_t untrusted_types = words[0];
    while (found < PH__TRACE_FIELDS_MAX && (untrusted_types & 0xf) != PH_VOID) {
        types[found++] = untrusted_types & 0xf;
        untrusted_types >>= 4;
    }
    if (untrusted_types != 0)
        return false;
    if (!ph__record_values(words + 1, word_count - 1, types, found, fields, text))
        return false;
    *count = found;
    return true;
}
