/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * brk, mmap and what belongs to them. The arena is one stretch of memory: brk grows from its bottom,
 * mappings are placed from its top. Only a protection other than read-write costs an exit.
 *
 * The image and the main stack lie outside the arena and stay as they are, but for mprotect.
 */
#include <linux/mman.h>

#include "monitor/files.h"
#include "monitor/monitor.h"
#include "monitor/system_calls.h"

#define READ_WRITE ((uint64_t)(PROT_READ | PROT_WRITE))
#define PAGE_MASK (PH__PAGE_SIZE - 1)

/* The program break, 0 until brk is first asked for. */
static uint64_t break_address;

static uint64_t page_up(uint64_t size) {
    return (size + PAGE_MASK) & ~PAGE_MASK;
}

static uint64_t current_break(void) {
    if (break_address == 0)
        break_address = ph__control()->arena_gva;
    return break_address;
}

static size_t break_page(void) {
    return ph__page_of(page_up(current_break()));
}

/* Rounds (length) up to pages. False if it is not a range of addresses then. */
static bool range_is_sound(uint64_t address, uint64_t *length) {
    if (*length > PH__WINDOW_GVA * 2)
        return false;
    *length = page_up(*length);
    return address + *length >= address;
}

static bool overlaps(uint64_t address, uint64_t size, uint64_t base, uint64_t length) {
    return address < base + length && base < address + size;
}

static bool overlaps_arena(uint64_t address, uint64_t size) {
    return overlaps(address, size, ph__control()->arena_gva, ph__control()->arena_size);
}

/* True for ranges of the image or the main stack: mapped by the host, not ours to hand out. */
static bool in_program(uint64_t address, uint64_t size) {
    const volatile struct ph__control *control = ph__control();
    uint64_t image_end = control->image_gva + control->image_size;
    uint64_t stack_end = control->stack_gva + control->stack_size;
    return (address >= control->image_gva && address + size <= image_end) ||
           (address >= control->stack_gva && address + size <= stack_end);
}

/* There is no room. When, the host is told, which may have to say why the guest came to its end. */
static int64_t out_of_memory(void) {
    ph__state.memory_refused = ph__tsc_read();
    return -ENOMEM;
}

int64_t ph__sys_brk(struct ph__regs *regs) {
    uint64_t wanted = regs->rdi;
    uint64_t now = current_break();
    uint64_t arena = ph__control()->arena_gva;
    if (wanted < arena)
        return (int64_t)now;
    if (wanted > arena + ph__control()->arena_size) {
        out_of_memory();
        return (int64_t)now;
    }
    size_t old_end = break_page();
    size_t new_end = ph__page_of(page_up(wanted));
    if (new_end > old_end) {
        if (!ph__pages_all_free(old_end, new_end) || ph__pages_take(old_end, new_end) != 0) {
            out_of_memory();
            return (int64_t)now;
        }
    } else {
        ph__pages_give(new_end, old_end);
    }
    break_address = wanted;
    return (int64_t)wanted;
}

/* ----------------------------------------------------------------- mmap -- */

/* Finds (count) pages for a mapping with (flags) at (address). Pages that MAP_FIXED replaces are taken
 * back. Returns -errno or 0. */
static int64_t mapping_place(uint64_t address, size_t count, uint64_t flags, size_t *start) {
    uint64_t size = count * PH__PAGE_SIZE;
    if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) {
        if (address & PAGE_MASK)
            return -EINVAL;
        bool inside = ph__in_arena(address, size);
        if (flags & MAP_FIXED_NOREPLACE) {
            bool taken = inside ? !ph__pages_all_free(ph__page_of(address), ph__page_of(address) + count)
                                : address + size > address && in_program(address, size);
            if (taken)
                return -EEXIST;
        }
        if (!inside)
            return -ENOMEM;
        *start = ph__page_of(address);
        ph__pages_give(*start, *start + count);
        return 0;
    }
    address &= ~PAGE_MASK;
    if (address != 0 && ph__in_arena(address, size)) {
        *start = ph__page_of(address);
        if (ph__pages_all_free(*start, *start + count))
            return 0;
    }
    *start = ph__pages_find(break_page(), count);
    return *start == PH__NO_PAGE ? out_of_memory() : 0;
}

/* Hands out the pages with (protection); all or nothing. */
static int64_t mapping_make(size_t start, size_t count, uint64_t protection) {
    int64_t answer = ph__pages_take(start, start + count);
    if (answer != 0)
        return answer;
    /* A page whose last owner made it read-write-execute was zeroed without a fault, so that has to be
     * undone here; any other protection was undone then. */
    bool stale = (ph__control()->flags & PH__CONTROL_ALLOW_WX) && ph__pages_protected(start, start + count);
    if (protection == READ_WRITE && !stale)
        return 0;
    answer = ph__protect(ph__page_address(start), count * PH__PAGE_SIZE, protection);
    if (answer != 0)
        ph__pages_give(start, start + count);
    return answer;
}

/* The same with a copy of a file's bytes in them. */
static int64_t mapping_make_filled(size_t start, size_t count, uint64_t protection,
                                   const struct ph__file_piece *piece) {
    uint64_t address = ph__page_address(start);
    int64_t answer = mapping_make(start, count, READ_WRITE);
    if (answer != 0)
        return answer;
    answer = ph__copy_in_user(address, piece->gva, piece->size);
    if (answer == 0 && protection != READ_WRITE)
        answer = ph__protect(address, count * PH__PAGE_SIZE, protection);
    if (answer != 0)
        ph__pages_give(start, start + count);
    return answer;
}

int64_t ph__sys_mmap(struct ph__regs *regs) {
    uint64_t length = regs->rsi;
    uint64_t protection = regs->rdx & (PROT_READ | PROT_WRITE | PROT_EXEC);
    uint64_t flags = regs->r10;
    struct ph__file_piece piece = {0};
    if (!(flags & MAP_ANONYMOUS)) {
        int64_t answer = ph__file_piece(regs, &piece);
        if (answer != 0 || piece.window != 0)
            return answer != 0 ? answer : (int64_t)piece.window;
    }
    uint64_t type = flags & MAP_TYPE;
    if (length == 0 || (type != MAP_PRIVATE && type != MAP_SHARED))
        return -EINVAL;
    if (flags & MAP_HUGETLB)
        return -ENOMEM;
    if (length > ph__control()->arena_size)
        return out_of_memory();
    size_t count = page_up(length) / PH__PAGE_SIZE;
    size_t start;
    int64_t answer = mapping_place(regs->rdi, count, flags, &start);
    if (answer != 0)
        return answer;
    if ((flags & MAP_32BIT) && ph__page_address(start + count) > 1ull << 31)
        return -ENOMEM;
    answer = piece.size == 0 ? mapping_make(start, count, protection)
                             : mapping_make_filled(start, count, protection, &piece);
    return answer != 0 ? answer : (int64_t)ph__page_address(start);
}

int64_t ph__sys_munmap(struct ph__regs *regs) {
    uint64_t address = regs->rdi;
    uint64_t length = regs->rsi;
    if ((address & PAGE_MASK) || length == 0 || !range_is_sound(address, &length) ||
        address + length > PH__WINDOW_GVA * 2)
        return -EINVAL;
    if (!overlaps_arena(address, length))
        return 0;
    uint64_t arena = ph__control()->arena_gva;
    uint64_t start = address > arena ? address : arena;
    uint64_t end = address + length;
    if (end > arena + ph__control()->arena_size)
        end = arena + ph__control()->arena_size;
    ph__pages_give(ph__page_of(start), ph__page_of(end));
    return 0;
}

/* --------------------------------------------------------------- mremap -- */

/* Copies a mapping to pages that were found for it, and takes the old ones back. */
static int64_t mapping_move(size_t old_start, size_t old_count, size_t start, size_t count) {
    if (ph__pages_take(start, start + count) != 0)
        return -ENOMEM;
    size_t copied = old_count < count ? old_count : count;
    if (ph__copy_in_user(ph__page_address(start), ph__page_address(old_start), copied * PH__PAGE_SIZE) != 0) {
        ph__pages_give(start, start + count);
        return -ENOMEM;
    }
    ph__pages_give(old_start, old_start + old_count);
    return (int64_t)ph__page_address(start);
}

static int64_t mapping_move_fixed(size_t old_start, size_t old_count, uint64_t address, size_t count) {
    uint64_t size = count * PH__PAGE_SIZE;
    if ((address & PAGE_MASK) || address + size < address ||
        overlaps(address, size, ph__page_address(old_start), old_count * PH__PAGE_SIZE))
        return -EINVAL;
    if (!ph__in_arena(address, size))
        return -ENOMEM;
    size_t start = ph__page_of(address);
    ph__pages_give(start, start + count);
    return mapping_move(old_start, old_count, start, count);
}

/* The file window stays where it is. Programs that map a file that grows ask first whether the mapping can,
 * and then map it anew. */
static int64_t file_mapping_resize(uint64_t address, uint64_t length, uint64_t flags) {
    if (flags & MREMAP_FIXED)
        return -ENOMEM;
    return length <= ph__file_room(address) ? (int64_t)address : -ENOMEM;
}

int64_t ph__sys_mremap(struct ph__regs *regs) {
    uint64_t address = regs->rdi;
    uint64_t old_length = regs->rsi;
    uint64_t new_length = regs->rdx;
    uint64_t flags = regs->r10;
    if ((address & PAGE_MASK) || (flags & ~(uint64_t)(MREMAP_MAYMOVE | MREMAP_FIXED)) ||
        ((flags & MREMAP_FIXED) && !(flags & MREMAP_MAYMOVE)) || !range_is_sound(address, &old_length) ||
        old_length == 0 || new_length == 0)
        return -EINVAL;
    if (ph__in_file_window(address, old_length))
        return file_mapping_resize(address, new_length, flags);
    if (!ph__in_arena(address, old_length))
        return -EFAULT;
    if (new_length > ph__control()->arena_size)
        return out_of_memory();
    size_t start = ph__page_of(address);
    size_t old_count = old_length / PH__PAGE_SIZE;
    size_t count = page_up(new_length) / PH__PAGE_SIZE;
    if (!ph__pages_all_used(start, start + old_count))
        return -EFAULT;
    if (flags & MREMAP_FIXED)
        return mapping_move_fixed(start, old_count, regs->r8, count);
    if (count <= old_count) {
        ph__pages_give(start + count, start + old_count);
        return (int64_t)address;
    }
    if (start + count <= ph__page_count() && ph__pages_all_free(start + old_count, start + count)) {
        int64_t answer = ph__pages_take(start + old_count, start + count);
        return answer != 0 ? answer : (int64_t)address;
    }
    if (!(flags & MREMAP_MAYMOVE))
        return -ENOMEM;
    /* Pages are copied, where Linux moves page-table entries. With as much room behind the new place as
     * it takes itself, a block that grows in small steps is copied once per doubling, not once per step. */
    size_t place = ph__pages_find(break_page(), count * 2);
    if (place == PH__NO_PAGE)
        place = ph__pages_find(break_page(), count);
    return place == PH__NO_PAGE ? out_of_memory() : mapping_move(start, old_count, place, count);
}

/* ------------------------------------------------------- protection, advice -- */

int64_t ph__sys_mprotect(struct ph__regs *regs) {
    uint64_t address = regs->rdi;
    uint64_t length = regs->rsi;
    uint64_t protection = regs->rdx;
    if ((address & PAGE_MASK) || (protection & ~(uint64_t)(PROT_READ | PROT_WRITE | PROT_EXEC | PROT_SEM)))
        return -EINVAL;
    if (length == 0)
        return 0;
    if (!range_is_sound(address, &length))
        return -ENOMEM;
    protection &= PROT_READ | PROT_WRITE | PROT_EXEC;
    if (ph__in_file_window(address, length))
        return protection == PROT_READ ? 0 : -EACCES;
    if (!ph__in_arena(address, length)) {
        return in_program(address, length) ? ph__protect(address, length, protection) : -ENOMEM;
    }
    size_t start = ph__page_of(address);
    size_t end = ph__page_of(address + length);
    if (!ph__pages_all_used(start, end))
        return -ENOMEM;
    if (protection == READ_WRITE && !ph__pages_protected(start, end))
        return 0;
    return ph__protect(address, length, protection);
}

int64_t ph__sys_madvise(struct ph__regs *regs) {
    uint64_t address = regs->rdi;
    uint64_t length = regs->rsi;
    if ((address & PAGE_MASK) || !range_is_sound(address, &length))
        return -EINVAL;
    if (length == 0)
        return 0;
    bool in_arena = ph__in_arena(address, length);
    bool in_files = ph__in_file_window(address, length);
    bool mapped = in_arena ? ph__pages_all_used(ph__page_of(address), ph__page_of(address + length))
                           : in_files || in_program(address, length);
    if (!mapped)
        return -ENOMEM;
    switch (regs->rdx) {
    case MADV_DONTNEED:
        /* What a file gave the image cannot be had again; the arena's and the stack's pages become zero. */
        if (in_arena)
            return ph__pages_zero(ph__page_of(address), ph__page_of(address + length)) == 0 ? 0 : -EINVAL;
        if (in_files)
            return 0;
        if (address < ph__control()->stack_gva)
            return -EINVAL;
        return ph__zero_user(address, length) == 0 ? 0 : -EINVAL;
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_WILLNEED:
    case MADV_FREE:
    case MADV_DONTFORK:
    case MADV_DOFORK:
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_COLD:
    case MADV_PAGEOUT:
        return 0;
    default:
        return -EINVAL;
    }
}

/* True if something is mapped at (address), whatever its protection. For si_code. */
bool ph__is_mapped(uint64_t address) {
    if (ph__in_arena(address, 1)) {
        size_t page = ph__page_of(address);
        return ph__pages_all_used(page, page + 1);
    }
    return in_program(address, 1) || ph__in_file_window(address, 1);
}
