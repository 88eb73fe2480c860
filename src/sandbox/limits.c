/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Limits of a call, and the report of what it has used. The truth about processor time is the count of
 * cycles; the timer only brings the vCPU back at about the time at which that count will have reached the
 * limit. So a mark of the timer's that arrives late, while a host function runs for example, ends nothing: it
 * is taken back, and the count is asked.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "sandbox/sandbox.h"
#include "vm/boot.h"

__extension__ typedef unsigned __int128 wide;

static uint64_t or_unlimited(uint64_t limit) {
    return limit ? limit : UINT64_MAX;
}

void ph__limits_init(ph_sandbox *sandbox) {
    const ph_config *config = &sandbox->config;
    /* Rounded up: a little time is not none, which would be no limit at all. */
    wide cycles = ((wide)config->cpu_time_ns * sandbox->tsc_khz + 999999u) / 1000000u;

    sandbox->processor_max = cycles < UINT64_MAX ? (uint64_t)cycles : UINT64_MAX;
    sandbox->output_max = or_unlimited(config->output_bytes_max);
    sandbox->host_calls_max = or_unlimited(config->host_calls_max);
}

PH__HOT void ph__limits_begin(ph_sandbox *sandbox) {
    memset(&sandbox->used, 0, sizeof sandbox->used);
    sandbox->used.pages_copied = sandbox->pages_copied;
    sandbox->pages_copied = 0;
}

PH__HOT ph_status ph__limits_check_time(ph_sandbox *sandbox) {
    return sandbox->used.processor < sandbox->processor_max ? PH_OK
                                                            : ph__fault_stopped(sandbox, PH_E_CPU_TIME);
}

PH__HOT ph_status ph__limits_watch(ph_sandbox *sandbox) {
    ph__window_unmark(&sandbox->window, PH__WINDOW_CPU_TIME);
    ph_status status = ph__limits_check_time(sandbox);
    if (status != PH_OK)
        return status;
    uint64_t left_ns = ph__clock_ns(sandbox, sandbox->processor_max - sandbox->used.processor);
    uint64_t now_ns = ph__time_ns(CLOCK_MONOTONIC);
    return ph__window_watch(&sandbox->window, left_ns < UINT64_MAX - now_ns ? now_ns + left_ns : UINT64_MAX,
                            sandbox->config.cpu_time_ns, &sandbox->error);
}

PH__HOT void ph__limits_look_away(ph_sandbox *sandbox) {
    atomic_store_explicit(&sandbox->window.cpu_deadline_ns, 0, memory_order_relaxed);
}

/* An end that a program comes to when it does not, or cannot, go on without memory. */
static bool is_end_without_memory(ph_status status) {
    switch (status) {
    case PH_E_ABORTED:
    case PH_E_EXITED:
    case PH_E_SIGNALLED:
    case PH_E_PAGE_FAULT:
    case PH_E_UNDEFINED_INSTRUCTION: /* a compiler's trap */
        return true;
    default:
        return false;
    }
}

ph_status ph__limits_blame_memory(ph_sandbox *sandbox, ph_status status) {
    char text[PH_ERROR_MESSAGE_MAX + 96]; /* the reason, and what is said in front of it */

    if (!is_end_without_memory(status) || !sandbox->used.begin)
        return status;
    /* The guest's word for it, and its own end that it is about. */
    uint64_t untrusted_refused =
        __atomic_load_n(&ph__monitor_state(&sandbox->memory)->memory_refused, __ATOMIC_RELAXED);
    const uint64_t offset = (uint64_t)sandbox->vcpu->tsc_offset;
    /* From another boot of the machine, in a snapshot's file, it may be later than now. */
    if (untrusted_refused < sandbox->used.begin + offset || untrusted_refused > ph__clock_cycles() + offset)
        return status;
    snprintf(text, sizeof text, "the guest had used up its memory of %llu MiB; then: %s",
             (unsigned long long)ph__layout_memory(&sandbox->memory.layout) >> 20, sandbox->error.message);
    /* Which knows where characters end. */
    ph__text_copy_printable(sandbox->error.message, sizeof sandbox->error.message, text, strlen(text));
    sandbox->error.status = PH_E_MEMORY_LIMIT;
    return PH_E_MEMORY_LIMIT;
}

uint64_t ph__limits_output_left(const ph_sandbox *sandbox, uint64_t size) {
    uint64_t left = sandbox->output_max - sandbox->used.output_bytes;

    return size < left ? size : left;
}

/* ---- the report ---------------------------------------------------------------------------------------- */

#define OF_KIND(kind) (PH__USED_DOORBELLS + (unsigned)(kind))

const uint8_t ph__used_exit_shown[PH__USED_EXITS] = {
    /* clang-format off: a line each. All else is PH__COUNTED_OTHER */
    [PH__DOORBELL_HOST_CALL] = PH__COUNTED_HOST_CALL,
    [PH__DOORBELL_WRITE] = PH__COUNTED_WRITE,
    [PH__DOORBELL_READ] = PH__COUNTED_READ,
    [PH__DOORBELL_SLEEP] = PH__COUNTED_SLEEP,
    [PH__DOORBELL_PROTECT] = PH__COUNTED_PROTECT,
    [PH__DOORBELL_ZERO] = PH__COUNTED_ZERO,
    [PH__DOORBELL_TRACE_BATCH] = PH__COUNTED_TRACE,
    [PH__DOORBELL_READY] = PH__COUNTED_END,
    [PH__DOORBELL_RETURN] = PH__COUNTED_END,
    [PH__DOORBELL_EXIT] = PH__COUNTED_END,
    [PH__DOORBELL_ABORT] = PH__COUNTED_END,
    [PH__DOORBELL_KILL] = PH__COUNTED_END,
    [OF_KIND(PH__EXIT_EXCEPTION)] = PH__COUNTED_EXCEPTION,
    [OF_KIND(PH__EXIT_KICKED)] = PH__COUNTED_KICK,
    /* clang-format on */
};

static void exits_fill(const struct ph__used *used, ph_call_stats *stats) {
    uint64_t shown[PH__COUNTED_EXITS] = {0};

    for (size_t i = 0; i < PH__USED_EXITS; i++) {
        shown[ph__used_exit_shown[i]] += used->exits[i];
        stats->exits += used->exits[i];
    }
    stats->exits_host_call = shown[PH__COUNTED_HOST_CALL];
    stats->exits_write = shown[PH__COUNTED_WRITE];
    stats->exits_read = shown[PH__COUNTED_READ];
    stats->exits_sleep = shown[PH__COUNTED_SLEEP];
    stats->exits_protect = shown[PH__COUNTED_PROTECT];
    stats->exits_zero = shown[PH__COUNTED_ZERO];
    stats->exits_trace = shown[PH__COUNTED_TRACE];
    stats->exits_end = shown[PH__COUNTED_END];
    stats->exits_exception = shown[PH__COUNTED_EXCEPTION];
    stats->exits_kick = shown[PH__COUNTED_KICK];
    stats->exits_other = shown[PH__COUNTED_OTHER];
}

ph_status ph_sandbox_call_stats(const ph_sandbox *sandbox, ph_call_stats *stats) {
    ph_call_stats full = PH_CALL_STATS_INIT;

    if (!sandbox || !stats || stats->size < offsetof(ph_call_stats, trace_records) ||
        stats->size > sizeof full)
        return PH_E_ARGUMENT;
    if (sandbox->owner != ph__process_id())
        return PH_E_FORKED;
    const struct ph__used *used = &sandbox->used;
    full.size = stats->size;
    exits_fill(used, &full);
    full.guest_ns = ph__clock_ns(sandbox, used->processor);
    full.host_ns = ph__clock_ns(sandbox, used->host);
    full.sleep_ns = ph__clock_ns(sandbox, used->sleep);
    full.host_calls = used->host_calls;
    full.output_bytes = used->output_bytes;
    full.pages_copied = used->pages_copied;
    if (stats->size > offsetof(ph_call_stats, trace_records))
        ph__stream_call_counts(sandbox->stream, &full.trace_records, &full.trace_dropped);
    memcpy(stats, &full, full.size);
    return PH_OK;
}
