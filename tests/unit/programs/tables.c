/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A program with the note and the tables of a guest (abi/table.h), spelt out and without any library, so that
 * the loader's tests and fuzzers have a real one that is small. It is never run.
 */

/* clang-format off */
__asm__(
    ".pushsection .text\n"
    ".globl _start\n"
    ".type _start, @function\n"
    "_start: ud2\n"
    ".size _start, . - _start\n"
    ".type thunk, @function\n"
    "thunk: ret\n" /* no size: it reaches to the end */
    ".popsection\n"

    ".pushsection .note.pinhole, \"a\", @note\n"
    ".balign 4\n"
    ".long 8, 28, 1\n"
    ".asciz \"pinhole\"\n"
    ".long 1\n" /* PH__ABI_VERSION */
    ".long exports - ., exports_end - ., imports - ., imports_end - ., imports_end - ., imports_end - .\n"
    ".popsection\n"

    ".pushsection .rodata\n"
    ".balign 4\n"
    "exports:\n"
    ".long greet - ., thunk - .\n"
    ".byte 8, 1, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0\n"     /* string greet(string) */
    ".long mixed - ., thunk - .\n"
    ".byte 0, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 0, 0\n"    /* void mixed(...) */
    "exports_end:\n"
    "imports:\n"
    ".long weekday - ., 0\n"
    ".byte 8, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0\n"     /* string weekday(i32) */
    ".long log - ., 0\n"
    ".byte 0, 2, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0\n"     /* void log(i32, bytes) */
    ".long weekday - ., 0\n"
    ".byte 8, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0\n"     /* the same once more */
    "imports_end:\n"
    "greet: .asciz \"greet\"\n"
    "mixed: .asciz \"mixed\"\n"
    "weekday: .asciz \"weekday\"\n"
    "log: .asciz \"log\"\n"
    ".popsection\n"

    ".pushsection .data\n"
    ".quad 1, 2, 3\n"
    ".popsection\n"
    ".pushsection .bss\n"
    ".skip 0x5000\n"
    ".popsection");
/* clang-format on */
