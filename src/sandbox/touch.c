/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Touching guest memory before the guest does, under shadow paging. KVM then takes a fault of 10 to 30 us for
 * each page that a guest touches for the first time. It maps up to seven neighbours along, but only those
 * that the host could write without a fault of its own. So what nearly every start touches is made the
 * sandbox's own beforehand, which takes the host 1 to 2 us a page.
 */
#include "sandbox/snapshot.h"

/* An image of up to this size is copied as a whole. Of a larger one only the writable part is, up to this
 * size: where in the rest its start goes is not known. */
#define IMAGE_MAX (1ull << 20)

/* The neighbours that KVM maps together (PTE_PREFETCH_NUM in arch/x86/kvm/mmu/mmu.c). */
#define STACK_SIZE (8 * PH__PAGE_SIZE)

static void touch_image(const struct ph__memory *memory, const ph_image *image) {
    uint64_t whole = 0;
    uint64_t left = IMAGE_MAX;

    for (uint32_t i = 0; i < image->extent_count; i++)
        whole += image->extents[i].size;
    for (uint32_t i = 0; i < image->extent_count; i++) {
        const struct ph__image_extent *extent = &image->extents[i];
        if (whole > IMAGE_MAX && !extent->writable)
            continue;
        uint64_t size = extent->size < left ? extent->size : left;
        ph__memory_touch(memory, memory->layout.image.offset + (extent->gva - image->gva), size);
        left -= size;
    }
}

/* What a call has written on the snapshot before, each in a page fault, and often in two: one that reads and
 * maps the snapshot's page, and one that copies it. */
static void touch_written(const struct ph__memory *memory, ph_snapshot *snapshot) {
    for (uint32_t i = 0; ph__snapshot_has_learnt(snapshot) && i < snapshot->written_count; i++)
        ph__memory_touch(memory, snapshot->written[i] * PH__PAGE_SIZE, PH__PAGE_SIZE);
}

void ph__touch_ahead(const ph_sandbox *sandbox) {
    const struct ph__region *stack = &sandbox->memory.layout.stack;

    if (!sandbox->vcpu->shadow_paging)
        return;
    if (sandbox->restore && sandbox->restore->mapped) {
        touch_written(&sandbox->memory, sandbox->restore->mapped);
        return;
    }
    touch_image(&sandbox->memory, sandbox->image);
    ph__memory_touch(&sandbox->memory, stack->offset + stack->size - STACK_SIZE, STACK_SIZE);
}
