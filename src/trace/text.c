/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Makes text from a guest valid UTF-8 (text.h). The decoder calls it for every string of every record, so
 * plain ASCII, which nearly all of it is, is copied eight bytes at a time.
 */
#include "trace/text.h"

#include <stdint.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

/* Takes what starts at (bytes): a character, or the longest start of one (Unicode, table 3-7). Returns how
 * many bytes that are, at least 1. (*whole) says that it is a character, (*cut) that it was one up to the end
 * of the bytes. */
static size_t sequence_take(const uint8_t *bytes, size_t length, bool *whole, bool *cut) {
    uint8_t first = bytes[0];
    uint8_t low = 0x80;
    uint8_t high = 0xbf;
    size_t need;

    *cut = false;
    *whole = first > 0 && first < 0x80;
    if (first < 0xc2 || first > 0xf4)
        return 1;
    need = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    /* The second byte tells overlong forms, surrogates and what is above U+10FFFF. */
    if (first == 0xe0)
        low = 0xa0;
    else if (first == 0xed)
        high = 0x9f;
    else if (first == 0xf0)
        low = 0x90;
    else if (first == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < need; i++) {
        if (i == length) {
            *cut = true;
            return i;
        }
        if (bytes[i] < low || bytes[i] > high)
            return i;
        low = 0x80;
        high = 0xbf;
    }
    *whole = true;
    return need;
}

/* Whether none of the eight bytes of (word) is 0 or above 0x7f. A borrow only leaves a byte that is 0. */
static bool is_plain(uint64_t word) {
    return ((word | (word - 0x0101010101010101ull)) & 0x8080808080808080ull) == 0;
}

size_t ph__text_make_valid(char *text, const char *bytes, size_t length, bool cut) {
    const uint8_t *from = (const uint8_t *)bytes;
    char *to = text;

    while (length > 0) {
        uint64_t word;
        bool whole, was_cut;

        while (length >= sizeof word) {
            memcpy(&word, from, sizeof word);
            if (!is_plain(word))
                break;
            memcpy(to, &word, sizeof word);
            from += sizeof word;
            to += sizeof word;
            length -= sizeof word;
        }
        if (length == 0)
            break;
        size_t size = sequence_take(from, length, &whole, &was_cut);
        if (whole) {
            memcpy(to, from, size);
            to += size;
        } else if (!was_cut || !cut) {
            memcpy(to, REPLACEMENT, 3);
            to += 3;
        }
        from += size;
        length -= size;
    }
    *to = 0;
    return (size_t)(to - text);
}
