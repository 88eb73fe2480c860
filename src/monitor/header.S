/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The blob's first bytes: struct ph__monitor_header (abi/monitor.h). Each field is a distance from here,
 * filled in by the linker.
 */
#include "asm.h"

    .section .header, "a", @progbits
header:
    .long ASM_MONITOR_MAGIC
    .long ASM_ABI_VERSION
    .long ph__stubs - header
    .long ph__exception_return - header
    .long ph__poke - header
    .long ph__system_call_entry - header /* the first byte of the text part */
    .long ph__data - header
    .long ph__data_end - header
    .long ph__bss_end - header
    .long ph__start - header
    .long ph__system_call_entry - header
    .long ph__exception_entry - header
    .long ph__fixup_start - header
    .long ph__fixup_end - header
    .long ph__fixup_landing - header
    .long ph__user_rip - header
    .long ph__state - header

    .section .note.GNU-stack, "", @progbits
