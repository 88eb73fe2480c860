/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Text from a guest, made valid.
 */
#ifndef PH_TRACE_TEXT_H
#define PH_TRACE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Copies (length) bytes at (bytes) to (text), with a NUL; each maximal run of bytes that begin no UTF-8
 * character becomes U+FFFD (Unicode, chapter 3.9, "maximal subpart"), and so does a NUL. (text) has room for
 * 3 * (length) + 1 bytes. Returns the bytes written, without the NUL. A character that the end of the bytes
 * cuts is left out when (cut) says that there were more. */
size_t ph__text_make_valid(char *text, const char *bytes, size_t length, bool cut);

#endif
