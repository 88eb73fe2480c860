/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The mirror: what our page tables let ring 3 reach, or only execute, as runs of pages (soft_parts.h). Made
 * when a vCPU is made, and again when page tables change. Whoever follows it is told only what differs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "vm/soft_parts.h"

static ph_status no_memory(ph_error *error) {
    return ph__error_set(error, PH_E_MEMORY, "no memory for the emulator's map of guest memory");
}

/* ---- what there should be ------------------------------------------------------------------------------ */

/* Parts of the host range that the host itself may only read: a store there is the guest's fault on every
 * backend, and here it would be the host's. */
static void read_only(const struct ph__memory *memory, uint64_t parts[3][2]) {
    const struct ph__layout *layout = &memory->layout;

    parts[0][0] = PH__CONTROL_GPA;
    parts[0][1] = PH__CONTROL_GPA + PH__HOST_WRITTEN_SIZE;
    parts[1][0] = layout->site_words.offset;
    parts[1][1] = layout->site_words.offset + layout->site_words.size;
    parts[2][0] = layout->files.offset;
    parts[2][1] = layout->files.offset + layout->files.size;
}

bool ph__soft_host_writes(const struct ph__memory *memory, uint64_t offset, uint64_t *size) {
    uint64_t parts[3][2];

    read_only(memory, parts);
    for (size_t i = 0; i < 3; i++) {
        if (offset >= parts[i][0] && offset < parts[i][1]) {
            *size = *size < parts[i][1] - offset ? *size : parts[i][1] - offset;
            return false;
        }
        if (offset < parts[i][0] && parts[i][0] - offset < *size && parts[i][1] > parts[i][0])
            *size = parts[i][0] - offset;
    }
    return true;
}

static bool add(struct ph__soft_ranges *list, const struct ph__soft_range *range) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 32;
        struct ph__soft_range *ranges = realloc(list->ranges, capacity * sizeof *ranges);
        if (!ranges)
            return false;
        list->ranges = ranges;
        list->capacity = capacity;
    }
    list->ranges[list->count++] = *range;
    return true;
}

/* Adds (from), in pieces where the host's own right to write begins or ends. */
static bool add_pieces(const struct ph__memory *memory, struct ph__soft_ranges *list,
                       const struct ph__range *from) {
    for (uint64_t done = 0; done < from->size;) {
        struct ph__soft_range range = {
            .gva = from->gva + done,
            .size = from->size - done,
            .host = memory->base + from->offset + done,
            .protection = UC_PROT_READ,
        };
        bool writes = ph__soft_host_writes(memory, from->offset + done, &range.size);
        if (from->access.writable && writes)
            range.protection |= UC_PROT_WRITE;
        if (from->access.executable)
            range.protection |= UC_PROT_EXEC;
        if (!add(list, &range))
            return false;
        done += range.size;
    }
    return true;
}

static bool wanted(const struct ph__soft_vcpu *vcpu, struct ph__soft_ranges *list) {
    const struct ph__memory *memory = vcpu->memory;
    struct ph__range range;
    uint64_t gva = 0;

    while (ph__paging_next(memory, ph__paging_root(memory), &gva, &range))
        if ((vcpu->way->mirrors_data || range.access.executable) && !add_pieces(memory, list, &range))
            return false;
    return true;
}

/* ---- making it so -------------------------------------------------------------------------------------- */

static bool same(const struct ph__soft_range *one, const struct ph__soft_range *other) {
    return one->gva == other->gva && one->size == other->size && one->host == other->host &&
           one->protection == other->protection;
}

/* Whether (range) is in (list), which both are by address: (*at) is where the search goes on. */
static bool has(const struct ph__soft_ranges *list, size_t *at, const struct ph__soft_range *range) {
    while (*at < list->count && list->ranges[*at].gva < range->gva)
        ++*at;
    return *at < list->count && same(&list->ranges[*at], range);
}

/* Unicorn keeps translations of what has gone, and takes them again for what comes to the same place. Its
 * other way to drop them, all at once, writes a gigabyte in most versions. */
static void forget_range(struct ph__soft_vcpu *vcpu, const struct ph__soft_range *range) {
    if (range->protection & UC_PROT_EXEC)
        uc_ctl_remove_cache(vcpu->engine, range->gva, range->gva + range->size);
}

void ph__soft_forget(struct ph__soft_vcpu *vcpu) {
    for (size_t i = 0; i < vcpu->mirror.count; i++)
        forget_range(vcpu, &vcpu->mirror.ranges[i]);
}

/* Whether code differs between the mirror and (list): translations of what is no longer there are dropped. */
static bool code_differs(struct ph__soft_vcpu *vcpu, const struct ph__soft_ranges *list) {
    const struct ph__soft_ranges *mirror = &vcpu->mirror;
    bool differs = false;
    size_t at = 0;

    for (size_t i = 0; i < mirror->count; i++)
        if ((mirror->ranges[i].protection & UC_PROT_EXEC) && !has(list, &at, &mirror->ranges[i])) {
            forget_range(vcpu, &mirror->ranges[i]);
            differs = true;
        }
    at = 0;
    for (size_t i = 0; i < list->count; i++)
        if ((list->ranges[i].protection & UC_PROT_EXEC) && !has(mirror, &at, &list->ranges[i]))
            differs = true;
    return differs;
}

/* Whether one mapping can have (next) too, which comes behind (last). Between them there may be pages that
 * the guest has taken all rights from; those in the window are not its own. */
static bool joins(const struct ph__soft_range *last, const struct ph__soft_range *next) {
    return next->protection == last->protection && next->host > last->host &&
           (uint64_t)(next->host - last->host) == next->gva - last->gva &&
           (next->gva == last->gva + last->size || next->gva < PH__WINDOW_GVA);
}

/* Adds what Unicorn is to map for (list), with (more) rights for what is the guest's own. */
static bool join(const struct ph__memory *memory, const struct ph__soft_ranges *list,
                 struct ph__soft_ranges *joined, uint32_t more) {
    joined->count = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct ph__soft_range range = list->ranges[i];
        struct ph__soft_range *last = joined->count ? &joined->ranges[joined->count - 1] : NULL;
        uint64_t size = range.size;
        if (ph__soft_host_writes(memory, (uint64_t)(range.host - memory->base), &size))
            range.protection |= UC_PROT_WRITE | (range.gva < PH__WINDOW_GVA ? more : 0);
        if (last && joins(last, &range))
            last->size = range.gva + range.size - last->gva;
        else if (!add(joined, &range))
            return false;
    }
    return true;
}

/* Unicorn ends the process for more than 4096 mappings, and each takes as long as there are others. So it has
 * few: rights to write, and pages without any, are the page tables' business (soft_tables.c), and of a guest
 * with very many runs of executable pages, rights to execute are no more than asked for. */
static bool map_joined(struct ph__soft_vcpu *vcpu, const struct ph__soft_ranges *list) {
    struct ph__soft_ranges joined = {0};
    size_t at = 0;

    bool done = join(vcpu->memory, list, &joined, 0) &&
                (joined.count <= PH__SOFT_MAPPINGS || join(vcpu->memory, list, &joined, UC_PROT_EXEC));
    for (size_t i = 0; done && i < vcpu->mapped.count; i++) {
        const struct ph__soft_range *range = &vcpu->mapped.ranges[i];
        if (has(&joined, &at, range))
            continue;
        forget_range(vcpu, range);
        done = vcpu->way->remove(vcpu, range);
    }
    at = 0;
    for (size_t i = 0; done && i < joined.count; i++)
        if (!has(&vcpu->mapped, &at, &joined.ranges[i]))
            done = vcpu->way->add(vcpu, &joined.ranges[i]);
    free(vcpu->mapped.ranges);
    vcpu->mapped = joined;
    return done;
}

static ph_status mirror(struct ph__soft_vcpu *vcpu, ph_error *error) {
    struct ph__soft_ranges list = {0};

    if (!wanted(vcpu, &list)) {
        free(list.ranges);
        return no_memory(error);
    }
    const bool code = code_differs(vcpu, &list);
    const bool mapped = map_joined(vcpu, &list);
    free(vcpu->mirror.ranges);
    vcpu->mirror = list;
    vcpu->recoded = vcpu->recoded || code;
    /* What Unicorn has mapped is then not known. */
    vcpu->given_up = vcpu->given_up || !mapped;
    if (!mapped)
        return no_memory(error);
    return code ? ph__soft_hook_doorbells(vcpu, error) : PH_OK;
}

ph_status ph__soft_mirror(struct ph__soft_vcpu *vcpu, bool code, ph_error *error) {
    ph_status status = code || vcpu->way->mirrors_data ? mirror(vcpu, error) : PH_OK;

    return status == PH_OK ? vcpu->way->changed(vcpu, error) : status;
}

/* ---- asking it ----------------------------------------------------------------------------------------- */

/* The range that (gva) is in, NULL if none. */
static const struct ph__soft_range *find(const struct ph__soft_vcpu *vcpu, uint64_t gva) {
    size_t low = 0, high = vcpu->mirror.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct ph__soft_range *range = &vcpu->mirror.ranges[middle];
        if (gva < range->gva)
            high = middle;
        else if (gva - range->gva >= range->size)
            low = middle + 1;
        else
            return range;
    }
    return NULL;
}

size_t ph__soft_fetch(const struct ph__soft_vcpu *vcpu, uint64_t gva, uint8_t *bytes, size_t size) {
    size_t got = 0;

    for (; got < size; got++) {
        const struct ph__soft_range *range = find(vcpu, gva + got);
        if (!range || !(range->protection & UC_PROT_EXEC))
            break;
        bytes[got] = range->host[gva + got - range->gva];
    }
    return got;
}

void ph__soft_mirror_free(struct ph__soft_vcpu *vcpu) {
    free(vcpu->mirror.ranges);
    free(vcpu->mapped.ranges);
    vcpu->mirror = vcpu->mapped = (struct ph__soft_ranges){0};
}
