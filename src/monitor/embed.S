/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The monitor's blob inside libpinhole (blob.h). Page-aligned, so that whoever copies or maps it may
 * count in pages.
 */
    .section .rodata.ph__monitor_blob, "a", @progbits
    .balign 4096
    .globl ph__monitor_blob
    .hidden ph__monitor_blob
    .type ph__monitor_blob, @object
ph__monitor_blob:
    .incbin "monitor.bin"
    .globl ph__monitor_blob_end
    .hidden ph__monitor_blob_end
ph__monitor_blob_end:
    .size ph__monitor_blob, . - ph__monitor_blob

    .section .note.GNU-stack, "", @progbits
