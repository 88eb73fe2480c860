/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Finds private pages through /proc/self/pagemap: by PAGEMAP_SCAN, which skips what was never touched, or by
 * reading a word for each page (Documentation/admin-guide/mm/pagemap.rst).
 */
#include "sandbox/private_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/error.h"
#include "base/process.h"
#include "base/system.h"

/* Linux 6.7 (include/uapi/linux/fs.h); older headers do not have it. */
struct scan_region {
    uint64_t start, end, categories;
};
struct scan_argument {
    uint64_t size, flags, start, end, walk_end, regions, region_count, max_pages;
    uint64_t inverted, all_of, any_of, returned;
};
#define SCAN_IOCTL _IOWR('f', 16, struct scan_argument)
#define SCAN_FILE (1ull << 2)
#define SCAN_PRESENT (1ull << 3)
#define SCAN_SWAPPED (1ull << 4)
#define SCAN_ZERO_PAGE (1ull << 5)

#define WORD_PRESENT (1ull << 63)
#define WORD_SWAPPED (1ull << 62)
#define WORD_FILE (1ull << 61)

bool ph__page_list_add(struct ph__page_list *list, uint64_t page) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 256;
        uint64_t *pages = realloc(list->pages, capacity * sizeof *pages);
        if (!pages)
            return false;
        list->pages = pages;
        list->capacity = capacity;
    }
    list->pages[list->count++] = page;
    return true;
}

/* /proc/self/pagemap, opened once for a process: it goes on being about the process that opened it. */
static ph_status pagemap_open(int *result, ph_error *error) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int file = -1;
    static uint64_t owner;
    ph_status status = PH_OK;

    pthread_mutex_lock(&lock);
    if (file >= 0 && owner != ph__process_id()) {
        ph__system.close(file);
        file = -1;
    }
    if (file < 0) {
        file = ph__system.open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        owner = ph__process_id();
        if (file < 0)
            status = ph__error_set_system(error, PH_E_SYSTEM, errno, "opening /proc/self/pagemap failed");
    }
    *result = file;
    pthread_mutex_unlock(&lock);
    return status;
}

/* Adds the pages [first, end) but for the page tables'. */
static ph_status add(const struct ph__memory *memory, struct ph__page_list *list, uint64_t first,
                     uint64_t end, ph_error *error) {
    const struct ph__region *tables = &memory->layout.page_tables;

    for (uint64_t page = first; page < end; page++) {
        if (page * PH__PAGE_SIZE - tables->offset < tables->size)
            continue;
        if (!ph__page_list_add(list, page))
            return ph__error_set(error, PH_E_MEMORY, "no memory for a list of pages");
    }
    return PH_OK;
}

static ph_status read_words(int file, const struct ph__memory *memory, struct ph__page_list *list,
                            ph_error *error) {
    uint64_t words[512];
    uint64_t first = (uint64_t)memory->base / PH__PAGE_SIZE;
    uint64_t count = ph__memory_own(memory) / PH__PAGE_SIZE;

    for (uint64_t done = 0; done < count;) {
        uint64_t step = count - done < 512 ? count - done : 512;
        ssize_t got = ph__system.pread(file, words, step * 8, (off_t)((first + done) * 8));
        if (got <= 0)
            return ph__error_set_system(error, PH_E_SYSTEM, errno, "reading /proc/self/pagemap failed");
        for (uint64_t i = 0; i < (uint64_t)got / 8; i++) {
            if (!(words[i] & (WORD_PRESENT | WORD_SWAPPED)) || (words[i] & WORD_FILE))
                continue;
            ph_status status = add(memory, list, done + i, done + i + 1, error);
            if (status != PH_OK)
                return status;
        }
        done += (uint64_t)got / 8;
    }
    return PH_OK;
}

ph_status ph__private_pages_scan(const struct ph__memory *memory, bool plain, struct ph__page_list *list,
                                 ph_error *error) {
    const uint64_t base = (uint64_t)memory->base;
    struct scan_region regions[128] = {0}; /* by the kernel, of which valgrind knows nothing */
    struct scan_argument argument = {
        .size = sizeof argument,
        .start = base,
        .end = base + ph__memory_own(memory),
        .regions = (uint64_t)(uintptr_t)regions,
        .region_count = sizeof regions / sizeof regions[0],
        .inverted = SCAN_FILE | SCAN_ZERO_PAGE,
        .all_of = SCAN_FILE | SCAN_ZERO_PAGE,
        .any_of = SCAN_PRESENT | SCAN_SWAPPED,
        .returned = SCAN_FILE,
    };

    int file;
    ph_status opened = pagemap_open(&file, error);

    if (opened != PH_OK)
        return opened;
    list->count = 0;
    while (!plain && argument.start < argument.end) {
        int count = ph__system.ioctl(file, SCAN_IOCTL, &argument);
        if (count < 0 && (errno == ENOTTY || errno == EINVAL)) {
            plain = true;
            list->count = 0;
            break;
        }
        if (count < 0 && errno != EINTR)
            return ph__error_set_system(error, PH_E_SYSTEM, errno, "PAGEMAP_SCAN failed");
        for (int i = 0; i < count; i++) {
            ph_status status = add(memory, list, (regions[i].start - base) / PH__PAGE_SIZE,
                                   (regions[i].end - base) / PH__PAGE_SIZE, error);
            if (status != PH_OK)
                return status;
        }
        if (count >= 0)
            argument.start = argument.walk_end;
    }
    return plain ? read_words(file, memory, list, error) : PH_OK;
}
