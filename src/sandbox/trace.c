/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A sandbox's side of its trace: where the guest's ring is. The guest's addresses are never taken for
 * anything else: each page of the ring is looked up in the page tables that the processor walks, and has to
 * be the very memory that was mapped for it.
 */
#include <pinhole/trace.h>

#include "base/error.h"
#include "sandbox/sandbox.h"

/* (*config)'s ring, checked. */
static ph_status check_config(ph_config *config, ph_error *error) {
    uint64_t ring = config->trace_ring ? config->trace_ring : PH__RING_SIZE_DEFAULT;

    if (ring < PH__RING_SIZE_MIN || ring > PH__RING_SIZE_MAX || (ring & (ring - 1)) != 0)
        return ph__error_set(error, PH_E_ARGUMENT,
                             "a trace ring of %llu bytes is not possible: it is a power of two from %llu KiB "
                             "to %llu MiB",
                             (unsigned long long)ring, PH__RING_SIZE_MIN >> 10, PH__RING_SIZE_MAX >> 20);
    if ((unsigned)config->trace_policy > PH_TRACE_FLIGHT)
        return ph__error_set(error, PH_E_ARGUMENT, "there is no trace policy number %d",
                             (int)config->trace_policy);
    config->trace_ring = ring;
    return PH_OK;
}

static const char *symbol(const void *context, uint64_t address) {
    uint64_t offset;
    return ph__image_symbol(context, address, &offset);
}

static bool stopped(const void *context) {
    const ph_sandbox *sandbox = context;
    return ph__window_marks(&sandbox->window) != 0;
}

ph_status ph__trace_open(ph_sandbox *sandbox, ph_error *error) {
    const ph_image *image = sandbox->image;
    const struct ph__stream_options options = {
        .config = &sandbox->config,
        .sites = image->sites,
        .site_count = image->site_count,
        .exports = image->exports,
        .export_count = image->export_count,
        .program = image->name,
        .symbol = symbol,
        .symbol_context = image,
        .stopped = stopped,
        .stopped_context = sandbox,
    };

    if (!sandbox->config.tracer)
        return PH_OK;
    ph_status status = check_config(&sandbox->config, error);
    return status == PH_OK ? ph__stream_open(&options, &sandbox->stream, error) : status;
}

/* The host address of the guest's page at (gva), NULL unless ring 3 can write it. */
static uint8_t *page_at(const struct ph__memory *memory, uint64_t gva) {
    struct ph__translation at;

    if (!ph__paging_walk(memory, ph__paging_root(memory), (ph_gva){gva}, &at) || !at.access.user ||
        !at.access.writable || at.contiguous < PH__PAGE_SIZE)
        return NULL;
    return ph__memory_at(memory, at.gpa, PH__PAGE_SIZE);
}

/* The host address of [gva, gva + size), NULL unless all of it lies in one piece there too. */
static uint8_t *pages_at(const struct ph__memory *memory, uint64_t gva, uint64_t size) {
    uint8_t *first = page_at(memory, gva);

    for (uint64_t done = PH__PAGE_SIZE; first && done < size; done += PH__PAGE_SIZE)
        if (page_at(memory, gva + done) != first + done)
            return NULL;
    return first;
}

ph_status ph__trace_attach(ph_sandbox *sandbox, ph_error *error) {
    const struct ph__memory *memory = &sandbox->memory;
    const struct ph__layout *layout = &memory->layout;
    uint64_t ring = layout->trace_ring;

    if (!sandbox->stream)
        return PH_OK;
    uint8_t *bytes = pages_at(memory, PH__TRACE_RING_GVA, ring);
    struct ph__ring_view view = {
        .ring = (struct ph__ring *)page_at(memory, PH__TRACE_GVA),
        .bytes = bytes,
        .size = ring,
        .control = &ph__memory_control(memory)->trace,
        .tsc_khz = sandbox->tsc_khz,
        .tsc_offset = sandbox->vcpu->tsc_offset,
    };
    if (!view.ring || !bytes || pages_at(memory, PH__TRACE_RING_GVA + ring, ring) != bytes)
        return ph__error_set(error, PH_E_SYSTEM, "the guest's page tables do not lead to its trace ring");
    if (layout->site_words.size)
        view.words = (uint64_t *)(ph__memory_site_words(memory) +
                                  (sandbox->image->words_gva - layout->site_words.gva));
    ph__stream_attach(sandbox->stream, &view);
    return PH_OK;
}

ph_status ph__trace_batch_serve(ph_sandbox *sandbox) {
    if (!sandbox->stream)
        return ph__fault_protocol(sandbox, "a trace ring that is not there");
    ph__stream_make_room(sandbox->stream);
    ph__answer(sandbox, 0);
    return PH_OK;
}

void ph_sandbox_trace_stats(const ph_sandbox *sandbox, ph_trace_stats *stats) {
    ph__stream_stats(sandbox->owner == ph__process_id() ? sandbox->stream : NULL, stats);
}

uint64_t ph_sandbox_trace_number(const ph_sandbox *sandbox) {
    return ph__stream_number(sandbox->stream);
}
