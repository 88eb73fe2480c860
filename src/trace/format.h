/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * printf on the host, later, from values that a guest recorded: what its format says, as C's printf would
 * have printed it there. Nothing of the format or the values is trusted: a conversion that no value is left
 * for, or whose value is of another type, is printed as it stands in the format.
 */
#ifndef PH_TRACE_FORMAT_H
#define PH_TRACE_FORMAT_H

#include <stddef.h>

#include <pinhole/trace.h>

#define PH__TRACE_MESSAGE_MAX 2048u /* bytes of a formatted log, its NUL included */

/* Formats (format) with (count) (values) into (text), (size) bytes with a NUL; what does not fit is cut
 * between characters. The result is valid UTF-8 as long as format and strings are. One final newline is left
 * out. Returns its length. Widths and precisions beyond PH__TRACE_MESSAGE_MAX are taken as that. `%n`
 * consumes nothing and prints nothing; `*` consumes an i64. */
size_t ph__trace_format(char *text, size_t size, const char *format, const ph_field *values, size_t count);

#endif
