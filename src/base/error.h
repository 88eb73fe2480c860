/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Filling a ph_error. Every message that leaves the library goes through here, so that text which came from a
 * guest, from its file or from a path cannot move a terminal's cursor, forge a second line or break a log's
 * encoding.
 */
#ifndef PH_BASE_ERROR_H
#define PH_BASE_ERROR_H

#include <pinhole/pinhole.h>

#include "abi/hot.h"

/* Clears (error), which may be NULL, and fills in (status) and a message in printf's form, made printable.
 * Arguments may point into (error) itself. Returns (status), for `return ph__error_set(...)`. */
PH__COLD ph_status ph__error_set(ph_error *error, ph_status status, const char *format, ...) PH_PRINTF(3, 4);

/* As ph__error_set, for a host system call that failed with (system_error), an errno: the message gets its
 * description appended. */
PH__COLD ph_status ph__error_set_system(ph_error *error, ph_status status, int system_error,
                                        const char *format, ...) PH_PRINTF(4, 5);

/* Fills in (error)'s function with the (name) of a function of the guest, made printable, and the distance
 * (offset) from its start. (error) may be NULL; a NULL (name) leaves the fields empty. */
void ph__error_set_function(ph_error *error, const char *name, uint64_t offset);

/* Copies the (length) bytes of untrusted text at (text) to the (capacity) bytes at (out), NUL included: every
 * control character and every byte that is not valid UTF-8 becomes a '?', and what does not fit is cut at a
 * character's boundary. A NUL within the text is a control character like any other. Returns the bytes
 * written without the NUL; they are never more than (length). (capacity) is at least 1. (out) may be (text)
 * itself. */
size_t ph__text_copy_printable(char *out, size_t capacity, const char *text, size_t length);

/* The code point at the start of the (length) bytes at (text), at least one, and in (*size) how many bytes it
 * takes. -1, with (*size) unchanged, when they do not start with one in shortest form: overlong forms,
 * surrogates and what is above U+10FFFF are not valid (RFC 3629). */
int32_t ph__text_take_code_point(const uint8_t *text, size_t length, size_t *size);

/* Whether (point) is C0, DEL or C1; a line or paragraph separator; or one of the marks that turn the
 * direction of text around, with which a name can be made to look like another. */
bool ph__text_is_control(int32_t point);

#endif
