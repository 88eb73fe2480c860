/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Mapping files. A mapping that is only read is the file window itself, so it costs nothing and all of a
 * file's mappings are one. The window is always there: to unmap it does nothing.
 */
#include <linux/mman.h>

#include "monitor/files.h"
#include "monitor/monitor.h"

static uint64_t round_up(uint64_t size, uint64_t unit) {
    return (size + unit - 1) & ~(unit - 1);
}

bool ph__in_file_window(uint64_t address, uint64_t size) {
    uint64_t window = ph__control()->files_size;
    return address >= PH__FILES_GVA && size <= window && address - PH__FILES_GVA <= window - size;
}

uint64_t ph__file_room(uint64_t address) {
    for (uint32_t i = 0; i < ph__control()->file_count; i++) {
        const struct ph__file_entry *entry = ph__file_entry(i);
        uint64_t room = round_up(entry->size, PH__LARGE_PAGE_SIZE);
        if (address >= entry->gva && address - entry->gva < room)
            return room - (address - entry->gva);
    }
    return 0;
}

int64_t ph__file_piece(const struct ph__regs *regs, struct ph__file_piece *piece) {
    const uint64_t length = regs->rsi, protection = regs->rdx, flags = regs->r10, offset = regs->r9;
    const uint64_t type = flags & MAP_TYPE;
    const struct ph__open_file *open = ph__descriptor_file(regs->r8);
    *piece = (struct ph__file_piece){0};
    if (!open)
        return ph__descriptor_get(regs->r8) == PH__CLOSED ? -EBADF : -ENODEV;
    if (length == 0 || offset % PH__PAGE_SIZE != 0 || (type != MAP_PRIVATE && type != MAP_SHARED))
        return -EINVAL;
    if (offset + length < offset)
        return -EOVERFLOW;
    if (type == MAP_SHARED && (protection & PROT_WRITE))
        return -EACCES;
    if (protection & PROT_EXEC)
        return -EPERM; /* as from a file system that is mounted noexec */
    const struct ph__file_entry *entry = ph__file_entry(open->file);
    const uint64_t room = round_up(entry->size, PH__LARGE_PAGE_SIZE);
    const uint64_t fixed = MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT;
    if ((protection & (PROT_READ | PROT_WRITE)) == PROT_READ && !(flags & fixed) && offset <= room &&
        length <= room - offset) {
        piece->window = entry->gva + offset;
    } else if (offset < entry->size) {
        piece->gva = entry->gva + offset;
        piece->size = entry->size - offset < length ? entry->size - offset : length;
    }
    return 0;
}
