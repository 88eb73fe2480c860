/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Checked access to the guest's memory (user.h). The check keeps a mistaken pointer off the monitor's own
 * pages, which ring 3 can write; whether a page is there at all, user_copy.S finds out by touching it.
 */
#include "monitor/files.h"
#include "monitor/monitor.h"

static bool within(uint64_t address, uint64_t size, uint64_t base, uint64_t length) {
    return address >= base && size <= length && address - base <= length - size;
}

bool ph__user_range(uint64_t address, uint64_t size) {
    if (within(address, size, 0, PH__WINDOW_GVA))
        return true;
    const volatile struct ph__control *control = ph__control();
    /* Arguments and results are read and written in place, so a guest may pass the boxes' bytes on. */
    return within(address, size, control->arena_gva, control->arena_size) ||
           within(address, size, control->stack_gva, control->stack_size) ||
           within(address, size, control->inbox_gva, control->box_size) ||
           within(address, size, control->host_inbox_gva, control->box_size) ||
           within(address, size, control->outbox_gva, control->box_size) ||
           /* Which can only be read: a store faults, as in any other read-only page. */
           ph__in_file_window(address, size);
}

int64_t ph__copy_from_user(void *to, uint64_t from, size_t size) {
    return ph__user_range(from, size) ? ph__fixup_copy(to, (const void *)from, size) : -EFAULT;
}

int64_t ph__copy_to_user(uint64_t to, const void *from, size_t size) {
    return ph__user_range(to, size) ? ph__fixup_copy((void *)to, from, size) : -EFAULT;
}

int64_t ph__copy_in_user(uint64_t to, uint64_t from, size_t size) {
    if (!ph__user_range(to, size) || !ph__user_range(from, size))
        return -EFAULT;
    return ph__fixup_copy((void *)to, (const void *)from, size);
}

int64_t ph__zero_user(uint64_t to, size_t size) {
    return ph__user_range(to, size) ? ph__fixup_zero((void *)to, size) : -EFAULT;
}

int64_t ph__length_user(uint64_t string, size_t most) {
    /* The string may end right before the window, so only its first byte has to be the guest's; what is
     * read beyond, up to its NUL, can only be read. */
    return ph__user_range(string, 1) ? ph__fixup_length((const char *)string, most) : -EFAULT;
}
