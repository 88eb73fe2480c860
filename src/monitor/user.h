/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Access to memory at addresses that the guest chose. Each function returns 0 (or what it says), or
 * -EFAULT when the range is not the guest's or touches a page that it cannot use.
 */
#ifndef PH_MONITOR_USER_H
#define PH_MONITOR_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if [address, address + size) may be the guest's: not in the window, but for boxes, files and
 * memory. */
bool ph__user_range(uint64_t address, uint64_t size);

int64_t ph__copy_from_user(void *to, uint64_t from, size_t size);
int64_t ph__copy_to_user(uint64_t to, const void *from, size_t size);
int64_t ph__copy_in_user(uint64_t to, uint64_t from, size_t size);
int64_t ph__zero_user(uint64_t to, size_t size);
/* Bytes before the NUL, or (most) if there is none among the first (most). */
int64_t ph__length_user(uint64_t string, size_t most);

/* user_copy.S: the instructions that may fault. Ranges are not checked. */
int64_t ph__fixup_copy(void *to, const void *from, uint64_t size);
int64_t ph__fixup_zero(void *to, uint64_t size);
int64_t ph__fixup_length(const char *string, uint64_t most);
int64_t ph__fixup_xsave(void *area, uint32_t features);
int64_t ph__fixup_xrstor(const void *area, uint32_t features);
int64_t ph__fixup_fxsave(void *area);
int64_t ph__fixup_fxrstor(const void *area);

#endif
