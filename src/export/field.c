/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Names of fields (field.h).
 */
#include "export/field.h"

#include <stdio.h>
#include <string.h>

#define OWN_MOST 250u /* bytes of a name behind its position */

size_t ph__text_fit(const char *text, size_t length, size_t most) {
    if (length <= most)
        return length;
    /* Of a character's four bytes the last three begin like that; where more do, it is none. */
    for (size_t back = 0; back <= 3 && back <= most; back++)
        if (((uint8_t)text[most - back] & 0xc0) != 0x80)
            return most - back;
    return most;
}

bool ph__field_is_ours(const char *name, const char *const *ours) {
    for (; *ours; ours++) {
        if (**ours != *name)
            continue;
        size_t length = strlen(*ours);
        if (strncmp(name, *ours, length) == 0 && ((*ours)[length - 1] == '.' || !name[length]))
            return true;
    }
    return false;
}

/* Whether (name) begins like one that got its position. */
static bool has_position(const char *name) {
    size_t digits = 0;

    while (name[digits] >= '0' && name[digits] <= '9')
        digits++;
    return digits > 0 && name[digits] == ':';
}

static bool came_before(const ph_field *fields, size_t i) {
    for (size_t j = 0; j < i; j++)
        if (fields[j].name && strcmp(fields[i].name, fields[j].name) == 0)
            return true;
    return false;
}

const char *ph__field_name(const ph_field *fields, size_t i, const char *const *ours,
                           char name[PH__FIELD_NAME_SIZE]) {
    const char *own = fields[i].name ? fields[i].name : "";

    if (*own && !ph__field_is_ours(own, ours) && !has_position(own) && !came_before(fields, i))
        return own;
    size_t length = ph__text_fit(own, strnlen(own, OWN_MOST + 1), OWN_MOST);
    snprintf(name, PH__FIELD_NAME_SIZE, "%zu:%.*s", i, (int)length, own);
    return name;
}
