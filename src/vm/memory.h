/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guest memory: where each region lies (the layout), and the host mappings behind it. One host range holds
 * all of guest-physical space; a GPA below the hole is a distance from its start, one above 4 GiB goes on
 * where the hole begins, so the hole costs nothing.
 */
#ifndef PH_VM_MEMORY_H
#define PH_VM_MEMORY_H

#include <pinhole/pinhole.h>

#include "abi/control.h"
#include "abi/layout.h"

/* Addresses of the two spaces are distinct types wherever they could be mixed up. */
typedef struct ph_gva {
    uint64_t value;
} ph_gva;

typedef struct ph_gpa {
    uint64_t value;
} ph_gpa;

/* A run of guest memory. (offset) is the distance from the start of the host range. */
struct ph__region {
    uint64_t offset;
    uint64_t gva;
    uint64_t size;
};

/* The regions, in the order of their offsets. All but the image are multiples of 2 MiB. */
struct ph__layout {
    struct ph__region system;      /* layout.h names what is inside */
    struct ph__region page_tables; /* PML4 first; supervisor only */
    struct ph__region messages;    /* inbox, host inbox, outbox; shared mapping */
    struct ph__region bookkeeping; /* the monitor's */
    struct ph__region trace;       /* a page, and the trace ring; shared mapping; empty without tracing */
    struct ph__region image;       /* at the ELF file's own addresses */
    struct ph__region arena;
    struct ph__region stack; /* the gap of 2 MiB below it is the guard */
    struct ph__region files; /* abi/files.h; the last one, and empty without files. The host never reads it:
                                a file that has become shorter would be a SIGBUS */
    struct ph__region
        site_words;      /* within the image: whole pages that the host writes, none without tracing */
    uint64_t trace_ring; /* bytes of the ring */
    uint64_t box_size;
    uint64_t max_message;
    uint64_t size; /* bytes of the host range */
};

/* What a layout depends on. */
struct ph__layout_request {
    uint64_t memory;
    uint64_t stack; /* 0: the default */
    uint64_t max_message;
    uint64_t image_gva;
    uint64_t image_size;
    uint64_t trace_ring; /* 0: no tracing */
    uint64_t site_words_gva;
    uint64_t site_words_size; /* bytes */
    uint64_t files;           /* bytes of the file window, a multiple of 2 MiB; 0: none */
};

#define PH__MEMORY_DEFAULT (64ull << 20)
#define PH__MEMORY_MAX (1ull << 40)
#define PH__STACK_DEFAULT (8ull << 20)
#define PH__MESSAGE_DEFAULT (64ull << 10)
#define PH__MESSAGE_MAX (256ull << 20)

/* Computes where everything goes. PH_E_ARGUMENT, with a message that names the least that would do, when the
 * image and a stack do not fit into the memory asked for. Pure. */
ph_status ph__layout_compute(const struct ph__layout_request *request, struct ph__layout *layout,
                             ph_error *error);

/* A run of image pages whose first content is in a file: (offset) is a distance from the start of the host
 * range. */
struct ph__file_extent {
    uint64_t offset;
    uint64_t size;
    uint64_t file_offset;
};

struct ph__memory {
    struct ph__layout layout;
    uint8_t *base;         /* the host range; the first page of it is never mapped into the guest */
    uint8_t *host_written; /* the host's writable mapping of control page, poke list and site words */
    int shared;           /* the file behind what is shared with the guest, from ph__memory_shared_start on */
    uint64_t tables_used; /* bytes of the page-table region that are handed out */
    uint64_t protections_changed; /* counts changes of protection, at least */
    bool in_file;                 /* parts of it are mapped from a file that may become shorter */
};

/* Maps the memory for (layout), with the (count) extents of (content) copy-on-write in the image. (memory) is
 * filled on success, and released with ph__memory_unmap. PH_E_MEMORY or PH_E_SYSTEM. */
ph_status ph__memory_map(struct ph__memory *memory, const struct ph__layout *layout, int content,
                         const struct ph__file_extent *extents, size_t count, ph_error *error);

/* Has the kernel put pages that can be written behind [offset, offset + size) of the host range, all at once,
 * where they would otherwise come one page fault at a time. Only ever saves time: a kernel that refuses (it
 * takes Linux 5.14) is as good. */
void ph__memory_touch(const struct ph__memory *memory, uint64_t offset, uint64_t size);

/* Maps the bytes [offset, offset + size) of the host range anew: nobody has written there then. It takes with
 * it what the kernel kept for them, page tables among it. False, with errno set, when there is no memory. */
bool ph__memory_renew(const struct ph__memory *memory, uint64_t offset, uint64_t size);

/* Copies (size) bytes at (from), a pointer from ph__memory_at. False when it is mapped from a file that has
 * lost them. */
bool ph__memory_copy(const struct ph__memory *memory, void *to, const void *from, size_t size);

/* The other way round: copies (size) bytes to (to), in guest memory. */
bool ph__memory_store(const struct ph__memory *memory, void *to, const void *from, size_t size);

/* Maps (size) bytes of the open (file), read-only and shared with everybody who maps it, at (offset) of the
 * file window. False, with errno set, when the kernel does not. */
bool ph__memory_map_file(const struct ph__memory *memory, uint64_t offset, uint64_t size, int file);

/* Releases it. (forked): in a child of the process that mapped it, where the kernel has already taken the
 * mappings away (MADV_DONTFORK), so that only other things can be at these addresses. */
void ph__memory_unmap(struct ph__memory *memory, bool forked);

/* Bytes of memory that the guest has: what the config asked for, in whole large pages. */
static inline uint64_t ph__layout_memory(const struct ph__layout *layout) {
    const uint64_t large = PH__LARGE_PAGE_SIZE;
    return (layout->image.size + large - 1) / large * large + layout->arena.size + layout->stack.size;
}

/* Where messages begin in the shared file, and behind them the trace region: before it is what only the host
 * writes. */
static inline uint64_t ph__memory_shared_start(const struct ph__layout *layout) {
    return PH__HOST_WRITTEN_SIZE + layout->site_words.size;
}

static inline struct ph__control *ph__memory_control(const struct ph__memory *memory) {
    return (struct ph__control *)memory->host_written;
}

static inline struct ph__poke *ph__memory_pokes(const struct ph__memory *memory) {
    return (struct ph__poke *)(memory->host_written + PH__CONTROL_SIZE);
}

/* The host's writable mapping of the pages with the image's site words. */
static inline uint8_t *ph__memory_site_words(const struct ph__memory *memory) {
    return memory->host_written + PH__HOST_WRITTEN_SIZE;
}

static inline uint64_t ph__gpa_of_offset(uint64_t offset) {
    return offset < PH__HOLE_GPA ? offset : offset - PH__HOLE_GPA + PH__HIGH_GPA;
}

/* Bytes of the host range that the host may look at: all but the file window. */
static inline uint64_t ph__memory_own(const struct ph__memory *memory) {
    return memory->layout.size - memory->layout.files.size;
}

/* The host address of [gpa, gpa + size), or NULL when it is not all guest memory that the host may touch. The
 * one way from a GPA to a pointer. */
static inline void *ph__memory_at(const struct ph__memory *memory, ph_gpa gpa, uint64_t size) {
    uint64_t offset = gpa.value;
    uint64_t end = ph__memory_own(memory);
    if (offset >= PH__HIGH_GPA)
        offset = offset - PH__HIGH_GPA + PH__HOLE_GPA;
    else if (end > PH__HOLE_GPA)
        end = PH__HOLE_GPA;
    if (offset > end || size > end - offset)
        return NULL;
    return memory->base + offset;
}

#endif
