/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The caller's traceparent, and the ELF note by which the host knows that this program can ask for it
 * (abi/table.h). Alone in its object, so that the linker takes the note from the archive only into a program
 * that refers to ph_traceparent: for all others the host has nothing to write.
 */
#include "internal.h"

/* clang-format off */
__asm__(
    ".pushsection .note.pinhole, \"aR\", @note\n"
    ".balign 4\n"
    ".long 2f - 1f\n"                   /* bytes of the name */
    ".long 0\n"                         /* bytes of the description */
    ".long " PH__TEXT(PH__NOTE_TRACEPARENT) "\n"
    "1: .asciz \"" PH__NOTE_NAME "\"\n"
    "2: .balign 4\n"
    ".popsection");
/* clang-format on */

const char *ph_traceparent(void) {
    const struct ph__control *control = ph__control_find();

    return control ? control->traceparent : "";
}
