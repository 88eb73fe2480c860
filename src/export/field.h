/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a guest's field goes by in a format where names are unique, and where some names are ours.
 */
#ifndef PH_EXPORT_FIELD_H
#define PH_EXPORT_FIELD_H

#include <pinhole/trace.h>

/* Bytes for a name that is not the field's own. */
#define PH__FIELD_NAME_SIZE 280u

/* Whether (name) is one of (ours), which ends with a NULL: what ends in a point there is the beginning of all
 * names that are ours. */
bool ph__field_is_ours(const char *name, const char *const *ours);

/* The name of the field (i): its own, or `POSITION:NAME` in (name) for one whose name came before, is empty
 * or is one of (ours). A name that begins like that itself gets its position too, so that no two are ever the
 * same. */
const char *ph__field_name(const ph_field *fields, size_t i, const char *const *ours,
                           char name[PH__FIELD_NAME_SIZE]);

/* How many of the (length) bytes at (text) are at most (most), cut between characters. */
size_t ph__text_fit(const char *text, size_t length, size_t most);

#endif
