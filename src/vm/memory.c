/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Lays out and maps guest memory (memory.h). The sandbox calls it once at creation; nothing here knows of a
 * vCPU. Everything is mapped lazily and without reserving swap: a page costs memory when somebody touches it.
 */
#include "vm/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "abi/files.h"
#include "abi/frame.h"
#include "abi/trace.h"
#include "base/error.h"
#include "base/system.h"

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

static struct ph__region region_after(const struct ph__region *before, uint64_t gva, uint64_t size) {
    return (struct ph__region){.offset = before->offset + before->size, .gva = gva, .size = size};
}

/* Page tables that a VM can need at the most: one for each 2 MiB that may be split into single pages, one for
 * each GiB above them, and the few at the top. Files are in large pages alone, which nothing splits. */
static uint64_t page_tables_size(uint64_t memory, uint64_t window, uint64_t files) {
    uint64_t bytes = memory + window;
    uint64_t leaves = bytes / PH__LARGE_PAGE_SIZE + 4;
    uint64_t directories = bytes / (1ull << 30) + 8;
    if (files)
        directories += files / (1ull << 30) + 4;
    return round_up((leaves + directories + 8) * PH__PAGE_SIZE, PH__LARGE_PAGE_SIZE);
}

static uint64_t default_stack(uint64_t memory) {
    uint64_t eighth = memory / 8 / PH__LARGE_PAGE_SIZE * PH__LARGE_PAGE_SIZE;
    uint64_t stack = eighth < PH__STACK_DEFAULT ? eighth : PH__STACK_DEFAULT;
    return stack ? stack : PH__LARGE_PAGE_SIZE;
}

/* The pages of the image that hold site words; none without tracing. */
static struct ph__region site_words(const struct ph__layout_request *request,
                                    const struct ph__layout *layout) {
    struct ph__region region = {0};

    if (!request->trace_ring || !request->site_words_size)
        return region;
    region.gva = request->site_words_gva / PH__PAGE_SIZE * PH__PAGE_SIZE;
    region.size = round_up(request->site_words_gva + request->site_words_size, PH__PAGE_SIZE) - region.gva;
    region.offset = layout->image.offset + (region.gva - request->image_gva);
    return region;
}

ph_status ph__layout_compute(const struct ph__layout_request *request, struct ph__layout *layout,
                             ph_error *error) {
    const uint64_t large = PH__LARGE_PAGE_SIZE;
    uint64_t memory = request->memory ? request->memory : PH__MEMORY_DEFAULT;
    uint64_t max_message = request->max_message ? request->max_message : PH__MESSAGE_DEFAULT;

    if (memory > PH__MEMORY_MAX)
        return ph__error_set(error, PH_E_ARGUMENT, "memory of %llu bytes is more than the limit of %llu",
                             (unsigned long long)memory, PH__MEMORY_MAX);
    if (max_message > PH__MESSAGE_MAX)
        return ph__error_set(error, PH_E_ARGUMENT, "a message limit of %llu bytes is more than %llu",
                             (unsigned long long)max_message, PH__MESSAGE_MAX);
    if (request->stack > memory)
        return ph__error_set(error, PH_E_ARGUMENT, "a stack of %llu bytes does not fit into memory of %llu",
                             (unsigned long long)request->stack, (unsigned long long)memory);

    memory = round_up(memory, large);
    uint64_t image = round_up(request->image_size, large);
    uint64_t stack = request->stack ? round_up(request->stack, large) : default_stack(memory);
    uint64_t least = image + stack + large;
    if (memory < least)
        return ph__error_set(
            error, PH_E_ARGUMENT,
            "memory of %llu MiB is too small: the image and its stack need at least %llu MiB",
            (unsigned long long)(memory >> 20), (unsigned long long)(least >> 20));
    uint64_t arena = memory - image - stack;

    uint64_t box = round_up(max_message + PH__FRAME_OVERHEAD, PH__PAGE_SIZE);
    uint64_t messages = round_up(3 * box, large);
    uint64_t bookkeeping = round_up(arena / PH__PAGE_SIZE / 4, large);
    uint64_t trace = request->trace_ring ? round_up(PH__PAGE_SIZE + request->trace_ring, large) : 0;
    uint64_t tables =
        page_tables_size(memory, 2 * large + messages + bookkeeping + 2 * trace, request->files);

    *layout =
        (struct ph__layout){.box_size = box, .max_message = max_message, .trace_ring = request->trace_ring};
    layout->system = (struct ph__region){.offset = 0, .gva = PH__WINDOW_GVA, .size = PH__SYSTEM_SIZE};
    layout->page_tables = region_after(&layout->system, PH__WINDOW_GVA + PH__SYSTEM_SIZE, tables);
    layout->messages = region_after(&layout->page_tables, layout->page_tables.gva + tables, messages);
    layout->bookkeeping = region_after(&layout->messages, layout->messages.gva + messages, bookkeeping);
    layout->trace = region_after(&layout->bookkeeping, PH__TRACE_GVA, trace);
    layout->image = region_after(&layout->trace, request->image_gva, image);
    layout->image.size = request->image_size;
    layout->site_words = site_words(request, layout);

    uint64_t arena_gva = round_up(request->image_gva + request->image_size, large);
    struct ph__region image_slot = {.offset = layout->image.offset, .size = image};
    layout->arena = region_after(&image_slot, arena_gva, arena);
    layout->stack = region_after(&layout->arena, arena_gva + arena + large, stack);
    layout->files = region_after(&layout->stack, PH__FILES_GVA, request->files);
    layout->size = layout->files.offset + layout->files.size;

    if (layout->stack.gva + stack > PH__WINDOW_GVA)
        return ph__error_set(error, PH_E_ARGUMENT,
                             "the image lies so high that %llu MiB of memory do not fit above it",
                             (unsigned long long)(memory >> 20));
    return PH_OK;
}

static ph_status map_failed(ph_error *error, const char *what) {
    int number = errno;
    ph_status status = number == ENOMEM ? PH_E_MEMORY : PH_E_SYSTEM;
    return ph__error_set_system(error, status, number, "mapping %s failed", what);
}

/* The host's writable mapping of control page, poke list and site words is behind guest memory, so that one
 * call unmaps both. */
static uint64_t range_size(const struct ph__layout *layout) {
    return layout->size + PH__HOST_WRITTEN_SIZE + layout->site_words.size;
}

static bool map_fixed(uint8_t *address, uint64_t size, int protection, int flags, int file, uint64_t offset) {
    return ph__system.mmap(address, size, protection, flags | MAP_FIXED | MAP_NORESERVE, file,
                           (off_t)offset) != MAP_FAILED;
}

/* Maps the pages that are shared with the guest while it runs: those that only the host writes, writable for
 * the host and read-only where KVM looks, the boxes and the trace ring. Shared, so that boxes are never
 * counted as pages that a snapshot must copy back. One file holds them all, since making and dropping one
 * takes longer than mapping it. */
static bool map_shared(struct ph__memory *memory) {
    const struct ph__region *messages = &memory->layout.messages;
    const struct ph__region *trace = &memory->layout.trace;
    const struct ph__region *words = &memory->layout.site_words;
    const uint64_t host_written = ph__memory_shared_start(&memory->layout);
    const int read_write = PROT_READ | PROT_WRITE;
    int pages = ph__system.memfd_create("pinhole-shared", MFD_CLOEXEC);

    if (pages < 0)
        return false;
    memory->host_written = memory->base + memory->layout.size;
    bool mapped =
        ph__system.ftruncate(pages, (off_t)(host_written + messages->size + trace->size)) == 0 &&
        map_fixed(memory->host_written, host_written, read_write, MAP_SHARED, pages, 0) &&
        map_fixed(memory->base + PH__CONTROL_GPA, PH__HOST_WRITTEN_SIZE, PROT_READ, MAP_SHARED, pages, 0) &&
        map_fixed(memory->base + messages->offset, messages->size, read_write, MAP_SHARED, pages,
                  host_written);
    if (mapped && trace->size)
        mapped = map_fixed(memory->base + trace->offset, trace->size, read_write, MAP_SHARED, pages,
                           host_written + messages->size);
    if (mapped && words->size) {
        /* What else is on these pages is as constant as the words are to the guest, so a copy will do. */
        memcpy(ph__memory_site_words(memory), memory->base + words->offset, words->size);
        mapped = map_fixed(memory->base + words->offset, words->size, PROT_READ, MAP_SHARED, pages,
                           PH__HOST_WRITTEN_SIZE);
    }
    memory->shared = pages;
    return mapped;
}

ph_status ph__memory_map(struct ph__memory *memory, const struct ph__layout *layout, int content,
                         const struct ph__file_extent *extents, size_t count, ph_error *error) {
    const int read_write = PROT_READ | PROT_WRITE;
    ph_status status = PH_OK;

    *memory = (struct ph__memory){.layout = *layout, .shared = -1};
    memory->base = ph__system.mmap(NULL, range_size(layout), read_write,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory->base == MAP_FAILED) {
        memory->base = NULL;
        return map_failed(error, "guest memory");
    }
    /* Where huge pages are the system's default, the few pages that a small guest touches would cost 2 MiB
     * each, to be cleared first. A kernel without huge pages refuses, and that is as good. */
    ph__system.madvise(memory->base, layout->size, MADV_NOHUGEPAGE);

    for (size_t i = 0; i < count; i++) {
        if (!map_fixed(memory->base + extents[i].offset, extents[i].size, read_write, MAP_PRIVATE, content,
                       extents[i].file_offset)) {
            status = map_failed(error, "the image");
            goto unmap;
        }
    }
    if (!map_shared(memory)) {
        status = map_failed(error, "the pages shared with the guest");
        goto unmap;
    }
    /* A child must not see, let alone copy, guest memory. */
    if (ph__system.madvise(memory->base, range_size(layout), MADV_DONTFORK) != 0) {
        status = map_failed(error, "guest memory outside children");
        goto unmap;
    }
    return PH_OK;

unmap:
    ph__memory_unmap(memory, false);
    return status;
}

bool ph__memory_map_file(const struct ph__memory *memory, uint64_t offset, uint64_t size, int file) {
    uint8_t *address = memory->base + memory->layout.files.offset + offset;

    return map_fixed(address, size, PROT_READ, MAP_SHARED, file, 0) &&
           ph__system.madvise(address, size, MADV_DONTFORK) == 0;
}

/* Older C libraries do not name it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void ph__memory_touch(const struct ph__memory *memory, uint64_t offset, uint64_t size) {
    ph__system.madvise(memory->base + offset, size, MADV_POPULATE_WRITE);
}

bool ph__memory_renew(const struct ph__memory *memory, uint64_t offset, uint64_t size) {
    uint8_t *bytes = memory->base + offset;

    if (!map_fixed(bytes, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
        return false;
    ph__system.madvise(bytes, size, MADV_NOHUGEPAGE);
    return ph__system.madvise(bytes, size, MADV_DONTFORK) == 0;
}

bool ph__memory_copy(const struct ph__memory *memory, void *to, const void *from, size_t size) {
    if (!memory->in_file) {
        memcpy(to, from, size);
        return true;
    }
    /* The kernel looks first: what the file has lost would be a SIGBUS for us. */
    const struct iovec local = {to, size}, remote = {(void *)from, size};
    return ph__system.process_vm_readv(ph__system.getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

bool ph__memory_store(const struct ph__memory *memory, void *to, const void *from, size_t size) {
    if (!memory->in_file) {
        memcpy(to, from, size);
        return true;
    }
    const struct iovec local = {(void *)from, size}, remote = {to, size};
    return ph__system.process_vm_writev(ph__system.getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

void ph__memory_unmap(struct ph__memory *memory, bool forked) {
    if (!forked && memory->base)
        ph__system.munmap(memory->base, range_size(&memory->layout));
    if (memory->base && memory->shared >= 0)
        ph__system.close(memory->shared);
    memory->host_written = NULL;
    memory->base = NULL;
}
