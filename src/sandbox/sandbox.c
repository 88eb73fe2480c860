/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The life of a sandbox: made, used by one thread at a time, poisoned, destroyed. Its calls are in call.c,
 * its start in start.c.
 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/table.h"
#include "base/error.h"
#include "base/system.h"
#include "sandbox/snapshot.h"
#include "vm/backend.h"
#include "vm/boot.h"

/* ---- the caller's configuration ------------------------------------------------------------------------ */

static void free_strings(const char *const *strings) {
    for (size_t i = 0; strings && strings[i]; i++)
        free((void *)strings[i]);
    free((void *)strings);
}

/* A copy of the NULL-terminated (strings), which may be NULL. False when there is no memory. */
static bool copy_strings(const char *const *strings, const char *const **copy) {
    size_t count = 0;

    *copy = NULL;
    if (!strings)
        return true;
    while (strings[count])
        count++;
    const char **made = calloc(count + 1, sizeof *made);
    if (!made)
        return false;
    for (size_t i = 0; i < count; i++) {
        made[i] = strdup(strings[i]);
        if (!made[i]) {
            free_strings(made);
            return false;
        }
    }
    *copy = made;
    return true;
}

/* Takes the caller's struct, which may be older and shorter than ours. */
static ph_status take_config(ph_sandbox *sandbox, const ph_config *config, ph_error *error) {
    const ph_config defaults = PH_CONFIG_INIT;

    sandbox->config = defaults;
    if (!config)
        return PH_OK;
    if (config->size < offsetof(ph_config, backend) + sizeof config->backend || config->size > sizeof *config)
        return ph__error_set(error, PH_E_ARGUMENT,
                             "the config's size is not one of this library: use PH_CONFIG_INIT");
    memcpy(&sandbox->config, config, config->size);
    sandbox->config.argv = sandbox->config.envp = NULL;
    sandbox->config.files = NULL;
    sandbox->config.file_count = 0;
    if (sandbox->config.input_bytes.size && !sandbox->config.input_bytes.data)
        return ph__error_set(error, PH_E_ARGUMENT, "input_bytes has a size and no data");
    ph_config taken = defaults;
    memcpy(&taken, config, config->size);
    if (!copy_strings(taken.argv, &sandbox->config.argv) || !copy_strings(taken.envp, &sandbox->config.envp))
        return ph__error_set(error, PH_E_MEMORY, "no memory for the program's arguments");
    return ph__files_open(&sandbox->files, taken.files, taken.file_count, error);
}

/* ---- making -------------------------------------------------------------------------------------------- */

static ph_status map_memory(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error) {
    const ph_image *image = sandbox->image;
    const struct ph__layout_request request = {
        .memory = sandbox->config.memory,
        .stack = sandbox->config.stack,
        .max_message = sandbox->config.max_message,
        .image_gva = image->gva,
        .image_size = image->size,
        .trace_ring = sandbox->stream ? sandbox->config.trace_ring : 0,
        .site_words_gva = image->words_gva,
        .site_words_size = image->word_count * sizeof(uint64_t),
        .files = sandbox->files.size,
    };
    struct ph__file_extent extents[PH__ELF_SEGMENTS_MAX];
    struct ph__layout layout;

    ph_status status = ph__layout_compute(&request, &layout, error);
    if (status == PH_OK && snapshot)
        status = ph__snapshot_check(sandbox, &layout, snapshot, error);
    if (status != PH_OK)
        return status;
    for (uint32_t i = 0; i < image->extent_count; i++)
        extents[i] = (struct ph__file_extent){
            .offset = layout.image.offset + (image->extents[i].gva - image->gva),
            .size = image->extents[i].size,
            .file_offset = image->extents[i].file_offset,
        };
    return ph__memory_map(&sandbox->memory, &layout, image->content, extents, image->extent_count, error);
}

static ph_status map_image(ph_sandbox *sandbox, ph_error *error) {
    const ph_image *image = sandbox->image;
    const struct ph__region *region = &sandbox->memory.layout.image;

    for (uint32_t i = 0; i < image->range_count; i++) {
        const struct ph__image_range *range = &image->ranges[i];
        const struct ph__access access = {
            .user = true, .writable = range->writable, .executable = range->executable};
        ph_status status =
            ph__paging_map(&sandbox->memory, range->gva, region->offset + (range->gva - image->gva),
                           range->size, access, error);
        if (status != PH_OK)
            return status;
    }
    return PH_OK;
}

/* The guest's memory with the image in it, or (snapshot). */
static ph_status load(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error) {
    ph_status status;

    ph__stream_begin(sandbox->stream, PH__HOST_LOAD, NULL, NULL);
    status = map_memory(sandbox, snapshot, error);
    if (status == PH_OK)
        status = ph__files_map(&sandbox->files, &sandbox->memory, error);
    if (status == PH_OK)
        status = ph__paging_build(&sandbox->memory, error);
    if (status == PH_OK)
        status = map_image(sandbox, error);
    if (status == PH_OK && snapshot)
        status = ph__snapshot_map(sandbox, snapshot, error);
    else if (status == PH_OK)
        ph__boot_write(&sandbox->memory);
    ph__stream_end(sandbox->stream, status, error);
    return status;
}

static ph_status make_vm(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error) {
    const struct ph__vcpu_options options = {
        .memory = &sandbox->memory,
        .monitor = ph__monitor(),
        .diagnostics = sandbox->config.diagnostics,
        .diagnostics_context = sandbox->config.diagnostics_context,
    };
    const struct ph__backend *backend;
    ph_status status = ph__backend_find(sandbox->config.backend, options.diagnostics,
                                        options.diagnostics_context, &backend, error);

    if (status == PH_OK)
        status = load(sandbox, snapshot, error);
    if (status == PH_OK)
        status = backend->create(&options, &sandbox->vcpu, error);
    if (status == PH_OK && snapshot)
        status = ph__snapshot_check(sandbox, &sandbox->memory.layout, snapshot, error);
    if (status == PH_OK) {
        ph__touch_ahead(sandbox);
        status = ph__window_init(&sandbox->window, sandbox->vcpu, sandbox->config.interrupt_signal, error);
    }
    return status;
}

/* What a config leaves open is as in (snapshot). */
static void take_defaults(ph_config *config, const ph_snapshot *snapshot) {
    config->memory = config->memory ? config->memory : snapshot->memory;
    config->stack = config->stack ? config->stack : snapshot->stack;
    config->max_message = config->max_message ? config->max_message : snapshot->max_message;
    if (config->tracer && !config->trace_ring)
        config->trace_ring = snapshot->layout.trace_ring;
}

/* Makes a sandbox of (image), as it is at first or in (snapshot). */
static ph_status create(ph_image *image, const ph_config *config, ph_snapshot *snapshot, ph_sandbox **result,
                        ph_error *error) {
    ph_status status = ph__process_init(error);
    if (status != PH_OK)
        return status;
    ph_sandbox *sandbox = calloc(1, sizeof *sandbox);
    if (!sandbox)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a sandbox");
    ph__image_retain(image);
    sandbox->image = image;
    sandbox->owner = ph__process_id();
    sandbox->host_functions = calloc(image->import_count + 1, sizeof *sandbox->host_functions);
    if (!sandbox->host_functions)
        status = ph__error_set(error, PH_E_MEMORY, "no memory for the host functions");
    if (status == PH_OK)
        status = take_config(sandbox, config, error);
    if (status == PH_OK && snapshot)
        take_defaults(&sandbox->config, snapshot);
    if (status == PH_OK)
        status = ph__trace_open(sandbox, error);
    if (status == PH_OK)
        status = ph__context_open(sandbox, error);
    if (status == PH_OK) {
        ph__stream_begin(sandbox->stream, PH__HOST_CREATE, NULL, NULL);
        status = make_vm(sandbox, snapshot, error);
        if (status == PH_OK) {
            ph__clock_init(sandbox);
            ph__limits_init(sandbox);
            status = ph__trace_attach(sandbox, error);
        }
        if (status == PH_OK && snapshot)
            status = ph__snapshot_begin(sandbox, snapshot, error);
        if (status == PH_OK)
            status = ph__counts_open(sandbox->config.metrics, sandbox->tsc_khz, &sandbox->counts, error);
        ph__stream_end(sandbox->stream, status, error);
    }
    if (status != PH_OK) {
        ph_sandbox_destroy(sandbox);
        return status;
    }
    *result = sandbox;
    return PH_OK;
}

ph_status ph_sandbox_create(ph_image *image, const ph_config *config, ph_sandbox **result, ph_error *error) {
    if (!image || !result)
        return ph__error_set(error, PH_E_ARGUMENT, "an image and a place for the sandbox are needed");
    *result = NULL;
    return create(image, config, NULL, result, error);
}

ph_status ph_sandbox_create_from(ph_snapshot *snapshot, const ph_config *config, ph_sandbox **result,
                                 ph_error *error) {
    if (!snapshot || !result)
        return ph__error_set(error, PH_E_ARGUMENT, "a snapshot and a place for the sandbox are needed");
    *result = NULL;
    return create(snapshot->image, config, snapshot, result, error);
}

void ph_sandbox_destroy(ph_sandbox *sandbox) {
    if (!sandbox)
        return;
    bool forked = sandbox->owner != ph__process_id();
    if (!forked) {
        ph__stream_detach(sandbox->stream);
        ph__stream_begin(sandbox->stream, PH__HOST_DESTROY, NULL, NULL);
        ph__window_destroy(&sandbox->window);
        ph__restore_leave(sandbox);
    }
    if (sandbox->vcpu)
        sandbox->vcpu->backend->destroy(sandbox->vcpu, forked);
    ph__memory_unmap(&sandbox->memory, forked);
    ph__files_close(&sandbox->files);
    if (!forked)
        ph__stream_end(sandbox->stream, PH_OK, NULL);
    ph__restore_close(sandbox);
    ph__stream_close(sandbox->stream, forked);
    ph__context_close(sandbox);
    ph__counts_close(sandbox->counts, forked);
    free_strings(sandbox->config.argv);
    free_strings(sandbox->config.envp);
    free(sandbox->host_functions);
    free(sandbox->received);
    free(sandbox->kept[0].bytes);
    free(sandbox->kept[1].bytes);
    ph_image_close(sandbox->image);
    free(sandbox);
}

ph_status ph_sandbox_register(ph_sandbox *sandbox, const char *name, const ph_signature *signature,
                              ph_host_fn function, void *context) {
    if (!sandbox || !name || !signature || !function)
        return PH_E_ARGUMENT;
    bool unentered = atomic_load_explicit(&sandbox->unentered, memory_order_relaxed);
    ph_status status = ph__sandbox_acquire(sandbox, unentered ? PH_STATE_READY : PH_STATE_NEW,
                                           "registering a host function");
    if (status != PH_OK)
        return status;
    for (size_t i = 0; i < sandbox->image->import_count; i++) {
        const ph_function *import = &sandbox->image->imports[i];
        if (strcmp(import->name, name) != 0)
            continue;
        bool same =
            import->signature.result == signature->result && import->signature.count == signature->count;
        for (uint32_t j = 0; same && j < signature->count; j++)
            same = import->signature.args[j] == signature->args[j];
        if (same)
            sandbox->host_functions[i] = (struct ph__host_function){function, context};
        else
            status =
                ph__error_set(&sandbox->error, PH_E_SIGNATURE,
                              "the image imports `%s` with other types than it is registered with", name);
    }
    ph__sandbox_release(sandbox);
    return status;
}

/* ---- using -----------------------------------------------------------------------------------------------
 */

/* Why a sandbox in (state) does not do (what), which wants the state (wanted). */
static ph_status refuse(ph_sandbox *sandbox, ph_state state, ph_state wanted, const char *what) {
    ph_error *error = &sandbox->error;

    if (state == PH_STATE_POISONED)
        return ph__error_set(
            error, PH_E_POISONED,
            "the sandbox came to an end earlier (%s); restore a snapshot, or destroy it and make another",
            sandbox->poisoned_by);
    if (state == PH_STATE_BROKEN)
        return ph__error_set(error, PH_E_BROKEN, "the host side failed earlier (%s); destroy the sandbox",
                             sandbox->poisoned_by);
    if (wanted == PH_STATE_READY)
        return ph__error_set(error, PH_E_STATE, "%s needs a started sandbox: call ph_sandbox_start first",
                             what);
    return ph__error_set(error, PH_E_STATE, "%s is only possible before the sandbox is started", what);
}

PH__HOT ph_status ph__sandbox_acquire(ph_sandbox *sandbox, ph_state wanted, const char *what) {
    if (sandbox->owner != ph__process_id())
        return PH_E_FORKED;
    if (atomic_exchange_explicit(&sandbox->busy, true, memory_order_acquire))
        return PH_E_BUSY;
    ph_state state = atomic_load_explicit(&sandbox->state, memory_order_relaxed);
    if (state == wanted)
        return PH_OK;
    ph_status status = refuse(sandbox, state, wanted, what);
    ph__sandbox_release(sandbox);
    return status;
}

ph_status ph__sandbox_acquire_restore(ph_sandbox *sandbox, ph_state *state) {
    if (sandbox->owner != ph__process_id())
        return PH_E_FORKED;
    if (atomic_exchange_explicit(&sandbox->busy, true, memory_order_acquire))
        return PH_E_BUSY;
    *state = atomic_load_explicit(&sandbox->state, memory_order_relaxed);
    if (*state != PH_STATE_BROKEN)
        return PH_OK;
    ph_status status = refuse(sandbox, *state, PH_STATE_READY, "a restore");
    ph__sandbox_release(sandbox);
    return status;
}

PH__HOT void ph__sandbox_release(ph_sandbox *sandbox) {
    atomic_store_explicit(&sandbox->busy, false, memory_order_release);
}

ph_status ph__sandbox_poison(ph_sandbox *sandbox, ph_status status) {
    status = ph__limits_blame_memory(sandbox, status);
    ph__stream_drain(sandbox->stream, status != PH_OK);
    bool ours = status == PH_E_SYSTEM || status == PH_E_MEMORY || status == PH_E_BACKEND;

    atomic_store_explicit(&sandbox->state, ours ? PH_STATE_BROKEN : PH_STATE_POISONED, memory_order_relaxed);
    snprintf(sandbox->poisoned_by, sizeof sandbox->poisoned_by, "%.255s", sandbox->error.message);
    return status;
}

void ph_interrupt(ph_sandbox *sandbox) {
    int saved = errno;
    uint32_t seen = atomic_load(&sandbox->window.word);

    if (sandbox->owner == ph__process_id() && (seen & PH__WINDOW_OPEN))
        ph__window_mark(&sandbox->window, seen, PH__WINDOW_INTERRUPTED);
    errno = saved;
}

const ph_error *ph_sandbox_error(const ph_sandbox *sandbox) {
    return &sandbox->error;
}

ph_state ph_sandbox_state(const ph_sandbox *sandbox) {
    return atomic_load_explicit(&((ph_sandbox *)sandbox)->state, memory_order_relaxed);
}

const char *ph_sandbox_backend(const ph_sandbox *sandbox) {
    return sandbox->vcpu->backend->name;
}

void ph_sandbox_stats(const ph_sandbox *sandbox, ph_stats *stats) {
    *stats = sandbox->stats;
    stats->guest_ns = ph__clock_ns(sandbox, sandbox->stats.guest_ns);
    stats->host_ns = ph__clock_ns(sandbox, sandbox->stats.host_ns);
}

uint32_t ph_sandbox_unserved(const ph_sandbox *sandbox, uint32_t number) {
    const struct ph__monitor_state *state = ph__monitor_state(&sandbox->memory);
    uint32_t last = PH__SYSTEM_CALLS_MAX - 1;

    if (sandbox->owner != ph__process_id())
        return 0;
    return __atomic_load_n(&state->unserved[number < last ? number : last], __ATOMIC_RELAXED);
}

/* Bits of a word of /proc/self/pagemap: present, swapped, and "file page or shared anonymous"
 * (Documentation/admin-guide/mm/pagemap.rst). */
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_SWAPPED (1ull << 62)
#define PAGEMAP_FILE (1ull << 61)

ph_status ph_sandbox_pages(ph_sandbox *sandbox, uint64_t *pages) {
    uint64_t words[512];
    uint64_t first = (uint64_t)sandbox->memory.base / PH__PAGE_SIZE;
    uint64_t count = sandbox->memory.layout.size / PH__PAGE_SIZE;
    ph_status status = PH_OK;

    if (sandbox->owner != ph__process_id())
        return PH_E_FORKED;
    if (atomic_exchange_explicit(&sandbox->busy, true, memory_order_acquire))
        return PH_E_BUSY;
    *pages = 0;
    int file = ph__system.open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    for (uint64_t done = 0; done < count;) {
        uint64_t step = count - done < 512 ? count - done : 512;
        ssize_t got = file < 0 ? -1 : ph__system.pread(file, words, step * 8, (off_t)((first + done) * 8));
        if (got <= 0) {
            status = ph__error_set_system(&sandbox->error, PH_E_SYSTEM, errno,
                                          "reading /proc/self/pagemap failed");
            break;
        }
        for (uint64_t i = 0; i < (uint64_t)got / 8; i++)
            *pages += (words[i] & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED)) && !(words[i] & PAGEMAP_FILE);
        done += (uint64_t)got / 8;
    }
    if (file >= 0)
        ph__system.close(file);
    ph__sandbox_release(sandbox);
    return status;
}
