/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The page in libpinhole-export (page.h).
 */
    .section .rodata.ph__page, "a", @progbits
    .globl ph__page
    .hidden ph__page
    .type ph__page, @object
ph__page:
    .incbin "page.html"
ph__page_end:
    .size ph__page, . - ph__page

    .balign 8
    .globl ph__page_size
    .hidden ph__page_size
    .type ph__page_size, @object
ph__page_size:
    .quad ph__page_end - ph__page
    .size ph__page_size, . - ph__page_size

    .section .note.GNU-stack, "", @progbits
