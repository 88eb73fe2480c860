/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Putting a sandbox back to a snapshot (snapshot.h). Pages that the guest has written are copied back, and
 * stay mapped: writing them again then costs the next call nothing, where a page that was given back costs it
 * a fault. Only what is far more than calls seem to need is given back.
 *
 * Page tables are not copied, but compared, and changed by ring 0 (vm/paging_snapshot.h).
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/process.h"
#include "base/system.h"
#include "sandbox/snapshot.h"

/* Pages that stay the sandbox's own though what lies below them is as good. Each costs the next restore a
 * look, so of those that a call left unused only few stay, and of a call that wrote more than so many above
 * what is usual only the usual ones do. */
#define WARM_MAX 1024u
#define UNUSED_MAX 64u

/* After so many restores to one snapshot in a row a sandbox that was started is laid on it. All that its
 * start has written is looked at in each restore until then; afterwards only what calls write is its own. */
#define LAY_AFTER 4u

/* ---- does it fit? -------------------------------------------------------------------------------------- */

/* What of a config makes the two layouts differ. */
static const char *layout_difference(const struct ph__layout *one, const struct ph__layout *other) {
    if (ph__layout_memory(one) != ph__layout_memory(other))
        return "memory";
    if (one->stack.size != other->stack.size)
        return "stack";
    if (one->max_message != other->max_message)
        return "max_message";
    if (one->trace_ring != other->trace_ring)
        return "trace_ring";
    return "the image's place";
}

/* Whether (snapshot)'s guest can go on on (vcpu). All else about its processor was checked when it was
 * loaded. */
static ph_status processor_check(const struct ph__vcpu *vcpu, const ph_snapshot *snapshot, ph_error *error) {
    ph_status status = ph__features_check(&snapshot->features, vcpu->features, vcpu->backend->name, error);

    return status == PH_OK ? ph__processor_state_check(&snapshot->processor, vcpu->xcr0, error) : status;
}

ph_status ph__snapshot_check(const ph_sandbox *sandbox, const struct ph__layout *layout,
                             const ph_snapshot *snapshot, ph_error *error) {
    if (snapshot->owner != ph__process_id())
        return ph__error_set(error, PH_E_FORKED, "the snapshot was made before fork()");
    if (snapshot->image != sandbox->image)
        return ph__error_set(error, PH_E_SNAPSHOT, "the snapshot is of another image (%s)",
                             snapshot->image->name);
    if ((layout->trace_ring == 0) != (snapshot->layout.trace_ring == 0))
        return ph__error_set(
            error, PH_E_SNAPSHOT, "the snapshot is of another layout: its guest was %s, and this one is %s",
            snapshot->layout.trace_ring ? "traced" : "not traced", layout->trace_ring ? "traced" : "not");
    if (layout->files.size != snapshot->layout.files.size || sandbox->files.number != snapshot->files)
        return ph__error_set(
            error, PH_E_SNAPSHOT,
            "the snapshot is of other files: their paths in the guest, their order and their "
            "sizes in whole 2 MiB must be the same");
    if (memcmp(layout, &snapshot->layout, sizeof *layout) != 0)
        return ph__error_set(error, PH_E_SNAPSHOT, "the snapshot is of another layout: %s must be the same",
                             layout_difference(layout, &snapshot->layout));
    return sandbox->vcpu ? processor_check(sandbox->vcpu, snapshot, error) : PH_OK;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

#define NOT_WANTED SIZE_MAX

/* One page and what is known of it. */
struct page {
    uint64_t number;
    bool own;      /* the sandbox has written it */
    bool mapped;   /* the snapshot that is mapped below holds it */
    size_t wanted; /* its position in the snapshot's list, or NOT_WANTED */
};

/* The restore of memory under way. */
struct walk {
    ph_sandbox *sandbox;
    ph_snapshot *snapshot;
    size_t own, wanted, mapped; /* positions in the three lists */
    uint64_t warm, unused;      /* pages that stay beside the snapshot's */
    bool dropped;               /* a page has been given back */
    bool greedy;                /* the call has written far more than is usual */
    uint64_t drop, drop_count;  /* a run of pages to give back */
    bool drop_renews;           /* below them is nothing, and so no page of theirs is needed again */
    uint8_t buffer[PH__PAGE_SIZE];
    uint8_t now[PH__PAGE_SIZE];
};

/* The first page at or behind the positions; false at the end. What nobody has written on the very snapshot
 * that is mapped is as it should be, and is not looked at. */
static bool page_next(struct walk *walk, struct page *page) {
    const struct ph__restore *restore = walk->sandbox->restore;
    const struct ph__page_list *own = &restore->pages;
    const struct ph__page_list *wanted = &walk->snapshot->pages;
    const struct ph__page_list *mapped = restore->mapped ? &restore->mapped->pages : NULL;
    const bool same = restore->mapped == walk->snapshot;
    uint64_t first = walk->own < own->count ? own->pages[walk->own] : UINT64_MAX;

    if (same) {
        while (walk->wanted < wanted->count && wanted->pages[walk->wanted] < first)
            walk->wanted++;
    } else {
        if (walk->wanted < wanted->count && wanted->pages[walk->wanted] < first)
            first = wanted->pages[walk->wanted];
        if (mapped && walk->mapped < mapped->count && mapped->pages[walk->mapped] < first)
            first = mapped->pages[walk->mapped];
    }
    if (first == UINT64_MAX)
        return false;
    *page = (struct page){.number = first, .wanted = NOT_WANTED};
    if (walk->own < own->count && own->pages[walk->own] == first) {
        page->own = true;
        walk->own++;
    }
    if (walk->wanted < wanted->count && wanted->pages[walk->wanted] == first)
        page->wanted = walk->wanted++;
    if (same)
        page->mapped = page->wanted != NOT_WANTED;
    else if (mapped && walk->mapped < mapped->count && mapped->pages[walk->mapped] == first) {
        page->mapped = true;
        walk->mapped++;
    }
    return true;
}

/* From so many pages on a run is mapped anew instead of given back: the kernel's page tables for it would
 * stay, and every later look for written pages would go through them. */
#define RENEW_MIN (PH__LARGE_PAGE_SIZE / PH__PAGE_SIZE)

#define DROPPED UINT64_MAX

/* Gives back the run of pages, which then are what they were at first. */
static ph_status drop_run(struct walk *walk) {
    const struct ph__memory *memory = &walk->sandbox->memory;
    const uint64_t offset = walk->drop * PH__PAGE_SIZE;
    const uint64_t count = walk->drop_count;

    walk->drop_count = 0;
    if (count == 0)
        return PH_OK;
    if (count >= RENEW_MIN && walk->drop_renews
            ? ph__memory_renew(memory, offset, count * PH__PAGE_SIZE)
            : ph__system.madvise(memory->base + offset, count * PH__PAGE_SIZE, MADV_DONTNEED) == 0)
        return PH_OK;
    return ph__error_set_system(&walk->sandbox->error, errno == ENOMEM ? PH_E_MEMORY : PH_E_SYSTEM, errno,
                                "giving pages back failed");
}

/* Adds a page of the sandbox's own to the run. (renews): what it shall be is zeroes, and nothing else lies
 * below. */
static ph_status drop(struct walk *walk, uint64_t number, bool renews) {
    ph_status status = PH_OK;

    if (walk->drop_count && (walk->drop + walk->drop_count != number || walk->drop_renews != renews))
        status = drop_run(walk);
    if (!walk->drop_count)
        walk->drop = number;
    walk->drop_renews = renews;
    walk->drop_count++;
    walk->sandbox->restore->pages.pages[walk->own - 1] = DROPPED;
    walk->dropped = true;
    return status;
}

/* Takes what was dropped out of the list. */
static void dropped_remove(struct ph__page_list *list) {
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++)
        if (list->pages[i] != DROPPED)
            list->pages[kept++] = list->pages[i];
    list->count = kept;
}

/* What the image has at page (number), copied to (bytes); false when that is nothing. */
static bool image_read(ph_sandbox *sandbox, uint64_t number, uint8_t *bytes, ph_status *status) {
    const ph_image *image = sandbox->image;
    uint64_t gva = image->gva + (number * PH__PAGE_SIZE - sandbox->memory.layout.image.offset);

    for (uint32_t i = 0; i < image->extent_count; i++) {
        const struct ph__image_extent *extent = &image->extents[i];
        if (gva < extent->gva || gva - extent->gva >= extent->size)
            continue;
        ssize_t got = ph__system.pread(image->content, bytes, PH__PAGE_SIZE,
                                       (off_t)(extent->file_offset + (gva - extent->gva)));
        if (got < 0)
            *status = ph__error_set_system(&sandbox->error, PH_E_SYSTEM, errno,
                                           "reading the image's memory failed");
        /* The last page of the file may be a part of one. */
        else if (got < (ssize_t)PH__PAGE_SIZE)
            memset(bytes + got, 0, PH__PAGE_SIZE - (size_t)got);
        return true;
    }
    return false;
}

/* What (page) shall be: (*content), or NULL for zeroes. */
static ph_status page_content(struct walk *walk, const struct page *page, const uint8_t **content) {
    ph_error *error = &walk->sandbox->error;
    ph_status status = PH_OK;

    if (page->wanted != NOT_WANTED) {
        *content = ph__snapshot_page(walk->snapshot, page->wanted, walk->buffer, error);
        return *content ? PH_OK : error->status;
    }
    *content = image_read(walk->sandbox, page->number, walk->buffer, &status) ? walk->buffer : NULL;
    return status;
}

static bool is_usual(const struct walk *walk, uint64_t number) {
    const struct ph__page_list *usual = &walk->sandbox->restore->usual;
    size_t at = ph__page_list_find(usual, number);

    return at < usual->count && usual->pages[at] == number;
}

/* Whether the sandbox keeps its own copy of a page that what lies below is as good as. */
static bool is_kept(struct walk *walk, bool unused) {
    return walk->greedy || (walk->warm++ < WARM_MAX && (!unused || walk->unused++ < UNUSED_MAX));
}

/* What is at (page) now. Where the sandbox lies on a file it is a copy: a page that the file has lost
 * meanwhile is gone, and what was written on it too. NULL then. */
static const uint8_t *page_now(struct walk *walk, const uint8_t *bytes) {
    const struct ph__memory *memory = &walk->sandbox->memory;

    if (!memory->in_file)
        return bytes;
    return ph__memory_copy(memory, walk->now, bytes, PH__PAGE_SIZE) ? walk->now : NULL;
}

static const uint8_t zeroes[PH__PAGE_SIZE];

/* Makes (page) what it shall be. */
static ph_status page_restore(struct walk *walk, const struct page *page) {
    ph_sandbox *sandbox = walk->sandbox;
    uint8_t *bytes = sandbox->memory.base + page->number * PH__PAGE_SIZE;
    /* Given back, it shows what lies below: is that what it shall be? */
    const bool droppable = page->own && (page->wanted == NOT_WANTED) == !page->mapped &&
                           (page->wanted == NOT_WANTED || sandbox->restore->mapped == walk->snapshot);
    const uint8_t *content;
    ph_status status = page_content(walk, page, &content);

    if (status != PH_OK)
        return status;
    const bool renews = !content && !page->mapped;
    if (droppable && walk->greedy && !is_usual(walk, page->number))
        return drop(walk, page->number, renews);
    const uint8_t *now = page_now(walk, bytes);
    if (!now)
        return ph__page_store_lost(&sandbox->error);
    bool unused =
        content ? memcmp(now, content, PH__PAGE_SIZE) == 0 : ph__content_is_zero(now, PH__PAGE_SIZE);
    if (droppable && !is_kept(walk, unused))
        return drop(walk, page->number, renews);
    if (unused)
        return PH_OK;
    if (!ph__memory_store(&sandbox->memory, bytes, content ? content : zeroes, PH__PAGE_SIZE))
        return ph__page_store_lost(&sandbox->error);
    sandbox->pages_copied += page->wanted != NOT_WANTED;
    return PH_OK;
}

/* Sees to what lies below the sandbox's own pages. */
static ph_status lay(ph_sandbox *sandbox, ph_snapshot *snapshot) {
    struct ph__restore *restore = sandbox->restore;
    const ph_snapshot *below = restore->mapped;
    ph_status status = PH_OK;

    restore->restores = restore->protections == snapshot ? restore->restores + 1 : 1;
    /* Who asked learns of it here, and not from the guest's next fault. */
    if (ph__snapshot_is_cut(snapshot))
        return ph__page_store_lost(&sandbox->error);
    /* Pages of a file that is no longer wanted are not even looked at: it may have lost them. */
    if (restore->mapped && restore->mapped != snapshot && ph__snapshot_in_file(restore->mapped))
        status = ph__snapshot_unmap_pages(sandbox, &sandbox->error);
    if (status == PH_OK && !restore->mapped && restore->restores == LAY_AFTER)
        status = ph__snapshot_map_pages(sandbox, snapshot, &sandbox->error);
    if (below != restore->mapped)
        restore->watched = false;
    return status;
}

/* Whether the list of the sandbox's own pages is still right. A page becomes its own by a page fault, and the
 * kernel counts page faults for each thread, those of a guest with the thread that is in KVM_RUN. So when the
 * sandbox was with this thread alone since the list was made, and the count is the same, there is no new one.
 */
static bool nothing_new(ph_sandbox *sandbox) {
    struct ph__restore *restore = sandbox->restore;
    uint64_t faults = 0;
    const bool counted = ph__process_faults(&faults);
    const bool here = sandbox->thread == ph__process_thread_number();
    const bool same = counted && restore->watched && here &&
                      restore->thread_changes == sandbox->thread_changes && restore->faults == faults;

    ph__sandbox_note_thread(sandbox);
    restore->watched = counted;
    restore->faults = faults;
    restore->thread_changes = sandbox->thread_changes;
    return same;
}

/* Whether the call has written far more pages than is usual. What two calls in a row write is usual. */
static bool is_greedy(struct ph__restore *restore) {
    const bool before = restore->much;

    restore->much = restore->pages.count > restore->usual.count + WARM_MAX;
    return restore->much && !before;
}

/* The list of the sandbox's own pages, as this restore has changed it. On the snapshot itself nothing else
 * than own pages is written, so it is right again. */
static void list_renew(ph_sandbox *sandbox, const ph_snapshot *snapshot) {
    struct ph__restore *restore = sandbox->restore;

    dropped_remove(&restore->pages);
    restore->watched =
        restore->watched && restore->mapped == snapshot && ph__process_faults(&restore->faults);
}

/* Remembers what a call with usual needs has written. Without memory for all of it, the first pages of it. */
static void note_usual(struct ph__restore *restore) {
    restore->usual.count = 0;
    for (size_t i = 0; i < restore->pages.count; i++)
        if (!ph__page_list_add(&restore->usual, restore->pages.pages[i]))
            return;
}

static ph_status restore_memory(ph_sandbox *sandbox, ph_snapshot *snapshot) {
    struct ph__restore *restore = sandbox->restore;
    struct walk walk = {.sandbox = sandbox, .snapshot = snapshot};
    struct page page;
    ph_status status = lay(sandbox, snapshot);
    const bool same = status == PH_OK && nothing_new(sandbox);

    sandbox->pages_copied = 0;
    /* Another snapshot may have other code in the same place, with the same protection. */
    if (restore->protections != snapshot)
        sandbox->vcpu->code_changed = true;
    if (status == PH_OK && !same)
        status = ph__private_pages_scan(&sandbox->memory, restore->plain, &restore->pages, &sandbox->error);
    walk.greedy = is_greedy(restore);
    if (!same && !walk.greedy)
        note_usual(restore);
    if (status == PH_OK && restore->mapped == snapshot)
        ph__snapshot_learn(snapshot, &restore->pages);
    while (status == PH_OK && page_next(&walk, &page))
        status = page_restore(&walk, &page);
    if (status == PH_OK)
        status = drop_run(&walk);
    if (!same || walk.dropped)
        list_renew(sandbox, snapshot);
    if (status != PH_OK)
        restore->watched = false;
    return status;
}

/* ---- processor ----------------------------------------------------------------------------------------- */

static ph_status restore_protections(ph_sandbox *sandbox, ph_snapshot *snapshot) {
    const struct ph__restore *restore = sandbox->restore;
    struct ph__protections_plan plan = {.saved = &snapshot->protections};
    ph_status status;
    uint32_t count;

    if (restore->protections == snapshot &&
        restore->protections_changed == sandbox->memory.protections_changed)
        return PH_OK;
    for (;;) {
        status = ph__protections_plan(&sandbox->memory, &plan, &count, &sandbox->error);
        if (status != PH_OK || count == 0)
            break;
        status = sandbox->vcpu->backend->poke(sandbox->vcpu, count, &sandbox->error);
        if (status != PH_OK)
            return status;
    }
    if (status == PH_OK)
        ph__restore_note_protections(sandbox, snapshot);
    return status;
}

/* What is new in every restored guest. */
static ph_status renew(ph_sandbox *sandbox, const ph_snapshot *snapshot, ph_error *error) {
    uint64_t seen = snapshot->seed_generation > sandbox->seed_generation ? snapshot->seed_generation
                                                                         : sandbox->seed_generation;
    sandbox->seed_generation = seen + 1;
    ph__clock_renew(sandbox, ph__clock_cycles());
    return ph__seed_renew(sandbox, error);
}

ph_status ph__snapshot_begin(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error) {
    ph__control_write(sandbox);
    ph__stream_restart(sandbox->stream, snapshot->trace_position);
    ph_status status = renew(sandbox, snapshot, error);
    if (status == PH_OK)
        status = sandbox->vcpu->backend->load(sandbox->vcpu, &snapshot->processor, true, error);
    if (status == PH_OK) {
        atomic_store_explicit(&sandbox->unentered, true, memory_order_relaxed);
        atomic_store_explicit(&sandbox->state, PH_STATE_READY, memory_order_relaxed);
    }
    return status;
}

static ph_status restore(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_state state) {
    ph_error *error = &sandbox->error;

    if (state == PH_STATE_NEW)
        ph__control_write(sandbox);
    ph__stream_restart(sandbox->stream, snapshot->trace_position);
    /* First the processor: what its last exit still owes may go to memory. */
    ph_status status =
        sandbox->vcpu->backend->load(sandbox->vcpu, &snapshot->processor, state != PH_STATE_READY, error);
    if (status == PH_OK)
        status = restore_memory(sandbox, snapshot);
    if (status == PH_OK)
        status = ph__shared_pages_clear(&sandbox->restore->shared, &sandbox->memory, error);
    if (status == PH_OK)
        status = restore_protections(sandbox, snapshot);
    if (status == PH_OK)
        status = renew(sandbox, snapshot, error);
    return status;
}

/* Counts a restore that ended with (status). */
static void count(ph_sandbox *sandbox, uint64_t begin, ph_status status) {
    if (status != PH_OK) {
        ph__count(sandbox->counts, PH__CELL_RESTORE_ERRORS, 1);
        return;
    }
    ph__count_since(sandbox->counts, PH__CELL_RESTORE, begin);
    ph__count(sandbox->counts, PH__CELL_RESTORE_PAGES, sandbox->pages_copied);
}

ph_status ph_sandbox_restore(ph_sandbox *sandbox, ph_snapshot *snapshot) {
    if (!sandbox || !snapshot)
        return PH_E_ARGUMENT;
    ph_state state;
    ph_status status = ph__sandbox_acquire_restore(sandbox, &state);
    if (status != PH_OK) {
        if (status != PH_E_FORKED)
            ph__count_shared(sandbox->config.metrics, PH__CELL_RESTORE_ERRORS, 1);
        return status;
    }
    const uint64_t begin = ph__count_begin(sandbox->counts);
    ph__stream_begin(sandbox->stream, PH__HOST_RESTORE, NULL, NULL);
    status = ph__snapshot_check(sandbox, &sandbox->memory.layout, snapshot, &sandbox->error);
    if (status == PH_OK)
        status = ph__restore_open(sandbox, &sandbox->error);
    if (status == PH_OK) {
        status = restore(sandbox, snapshot, state);
        if (status != PH_OK) {
            ph__sandbox_poison(sandbox, status);
        } else {
            sandbox->handled_regs.rip = 0;
            sandbox->input_taken = snapshot->input_taken < sandbox->config.input_bytes.size
                                       ? snapshot->input_taken
                                       : sandbox->config.input_bytes.size;
            if (state == PH_STATE_NEW)
                atomic_store_explicit(&sandbox->unentered, true, memory_order_relaxed);
            atomic_store_explicit(&sandbox->state, PH_STATE_READY, memory_order_relaxed);
        }
    }
    ph__stream_end(sandbox->stream, status, &sandbox->error);
    count(sandbox, begin, status);
    ph__sandbox_release(sandbox);
    return status;
}
