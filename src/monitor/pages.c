/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Handing out the arena's pages. The whole arena is mapped read-write once, when the VM is made, so handing
 * out and taking back is bookkeeping here and causes no exit. A page that was handed out before is dirty, and
 * is zeroed when it is handed out again; one that never was is known to be zero.
 */
#include <linux/mman.h>

#include "monitor/page_map.h"

/* No page at or above this one is free. */
static size_t all_used_from = SIZE_MAX;

/* The hull of all pages whose protection was ever changed. */
static size_t protected_start = SIZE_MAX;
static size_t protected_end;

uint64_t ph__page_address(size_t page) {
    return ph__control()->arena_gva + page * PH__PAGE_SIZE;
}

size_t ph__page_count(void) {
    return ph__control()->arena_size / PH__PAGE_SIZE;
}

bool ph__in_arena(uint64_t address, uint64_t size) {
    uint64_t base = ph__control()->arena_gva;
    uint64_t length = ph__control()->arena_size;
    return address >= base && size <= length && address - base <= length - size;
}

size_t ph__page_of(uint64_t address) {
    return (address - ph__control()->arena_gva) / PH__PAGE_SIZE;
}

bool ph__pages_all_used(size_t start, size_t end) {
    return ph__page_map_run_start(start, end, true) == start;
}

bool ph__pages_all_free(size_t start, size_t end) {
    return ph__page_map_run_start(start, end, false) == start;
}

size_t ph__pages_used(void) {
    return ph__page_map_used();
}

size_t ph__pages_find(size_t low, size_t count) {
    size_t end = all_used_from < ph__page_count() ? all_used_from : ph__page_count();
    if (low > end)
        return PH__NO_PAGE;
    end = ph__page_map_run_start(low, end, true);
    all_used_from = end;
    while (end - low >= count) {
        size_t start = ph__page_map_run_start(end - count, end, false);
        if (start == end - count)
            return start;
        end = ph__page_map_run_start(low, start, true);
    }
    return PH__NO_PAGE;
}

/* -------------------------------------------------------------- protection -- */

int64_t ph__protect(uint64_t address, uint64_t size, uint64_t protection) {
    int64_t answer = (int64_t)ph__doorbell_ring(PH__DOORBELL_PROTECT, address, size, protection);
    if (answer == 0 && ph__in_arena(address, size)) {
        size_t start = ph__page_of(address);
        size_t end = start + size / PH__PAGE_SIZE;
        protected_start = start < protected_start ? start : protected_start;
        protected_end = end > protected_end ? end : protected_end;
    }
    return answer;
}

bool ph__pages_protected(size_t start, size_t end) {
    return start < protected_end && protected_start < end;
}

/* ------------------------------------------------------------- zero, take, give -- */

/* From how many pages on (4 MiB) the host is asked to zero them. It knows which of them were never touched,
 * and to touch them here would cost a page fault each; and it can give their memory back. */
#define HOST_ZEROES_FROM 1024u

static bool host_zeroes(size_t start, size_t end) {
    return end - start >= HOST_ZEROES_FROM;
}

int64_t ph__pages_zero(size_t start, size_t end) {
    uint64_t address = ph__page_address(start);
    uint64_t size = (end - start) * PH__PAGE_SIZE;
    if (host_zeroes(start, end))
        return (int64_t)ph__doorbell_ring(PH__DOORBELL_ZERO, address, size, 0);
    return ph__zero_user(address, size);
}

/* Makes pages as new. Their last owner may have taken the right to write away: to find out by a fault costs
 * nothing for the many pages where nobody has, but the host has no such fault. */
static int64_t pages_renew(size_t start, size_t end) {
    bool is_protected = host_zeroes(start, end) && ph__pages_protected(start, end);
    if (!is_protected && ph__pages_zero(start, end) == 0)
        return 0;
    uint64_t size = (end - start) * PH__PAGE_SIZE;
    if (ph__protect(ph__page_address(start), size, PROT_READ | PROT_WRITE) != 0)
        return -ENOMEM;
    return ph__pages_zero(start, end) == 0 ? 0 : -ENOMEM;
}

int64_t ph__pages_take(size_t start, size_t end) {
    size_t page = ph__page_map_find_dirty(start, end, true);
    while (page < end) {
        size_t stop = ph__page_map_find_dirty(page, end, false);
        if (pages_renew(page, stop) != 0)
            return -ENOMEM;
        page = ph__page_map_find_dirty(stop, end, true);
    }
    ph__page_map_take(start, end);
    return 0;
}

void ph__pages_give(size_t start, size_t end) {
    if (end > all_used_from)
        all_used_from = end;
    /* Many at once are zeroed right away, which is the last time that they are known to belong together. */
    if (host_zeroes(start, end) && !ph__pages_protected(start, end) && ph__pages_zero(start, end) == 0)
        ph__page_map_release(start, end);
    else
        ph__page_map_give(start, end);
}
