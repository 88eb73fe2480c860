/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The ELF note that says where the program's tables are (abi/table.h), and the tables themselves, empty, so
 * that the linker makes their start and end in a program without exports or imports too. Every row of a
 * table, and ph_serve, refer to ph__note, which brings this object into the link.
 */
#include "internal.h"

/* clang-format off */
__asm__(
    ".pushsection ph_exports, \"aR\", @progbits\n"
    ".balign 4\n"
    ".popsection\n"
    ".pushsection ph_imports, \"aR\", @progbits\n"
    ".balign 4\n"
    ".popsection\n"

    ".pushsection ph_sites, \"aR\", @progbits\n"
    ".balign 8\n"
    ".popsection\n"
    ".pushsection ph_site_words, \"aR\", @progbits\n"
    ".balign 8\n"
    ".popsection\n"

    ".hidden __start_ph_exports, __stop_ph_exports, __start_ph_imports, __stop_ph_imports\n"
    ".hidden __start_ph_sites, __stop_ph_sites, __start_ph_site_words, __stop_ph_site_words\n"

    ".pushsection .note.pinhole, \"aR\", @note\n"
    ".balign 4\n"
    ".long 2f - 1f\n"                   /* bytes of the name */
    ".long 4f - 3f\n"                   /* bytes of the description */
    ".long " PH__TEXT(PH__NOTE_TABLES) "\n"
    "1: .asciz \"" PH__NOTE_NAME "\"\n"
    "2: .balign 4\n"
    ".globl ph__note\n"
    ".hidden ph__note\n"
    "ph__note:\n"
    "3: .long " PH__TEXT(PH__ABI_VERSION) "\n"
    ".long __start_ph_exports - .\n"
    ".long __stop_ph_exports - .\n"
    ".long __start_ph_imports - .\n"
    ".long __stop_ph_imports - .\n"
    ".long __start_ph_sites - .\n"
    ".long __stop_ph_sites - .\n"
    ".long __start_ph_site_words - .\n"
    ".long __stop_ph_site_words - .\n"
    "4:\n"
    ".size ph__note, . - ph__note\n"
    ".popsection");
/* clang-format on */

_Static_assert(sizeof(struct ph__note) == 36, "the note's nine words");
