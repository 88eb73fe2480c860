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
    ".long 8, 36, 1\n"
    ".asciz \"pinhole\"\n"
    ".long 4\n" /* PH__ABI_VERSION */
    ".long exports - ., exports_end - ., imports - ., imports_end - .\n"
    ".long sites - ., sites_end - ., words - ., words_end - .\n"
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

    "sites:\n"
    ".long query - ., file - ., main - ., query_fields - ., words + 8 - ., 10\n"
    ".byte 1, 3, 2, 0, 0, 0, 0, 0\n"                            /* span query(i64, string) */
    ".long format - ., file - ., main - ., 0, words - ., 11\n"
    ".byte 3, 4, 0, 0, 0, 0, 0, 0\n"                            /* log, debug */
    ".long weight - ., file - ., main - ., weight_fields - ., words + 16 - ., 12\n"
    ".byte 5, 3, 1, 0, 0, 0, 0, 0\n"                            /* counter weight(f64) */
    "sites_end:\n"
    ".balign 8\n"
    "words: .quad 0, 0, 0\n"
    "words_end:\n"
    "query: .asciz \"query\"\n"
    "query_fields: .asciz \"\\3rows\"; .asciz \"\\10table\"\n"
    "format: .asciz \"%d rows of %s\\n\"\n"
    "weight: .asciz \"weight\"\n"
    "weight_fields: .asciz \"\\6value\"\n"
    "file: .asciz \"src/main.c\"\n"
    "main: .asciz \"main\"\n"

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
