/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The exit loop: runs the vCPU and serves what it comes back with, until the doorbell that the caller waits
 * for. Every number in the guest's registers is hostile; each handler checks its own.
 */
#include "base/error.h"
#include "sandbox/sandbox.h"

/* One KVM_RUN, with the clock kept fresh and the time accounted for. */
static void run(ph_sandbox *sandbox, struct ph__exit *exit) {
    uint64_t start = ph__clock_cycles();

    if (!sandbox->used.begin)
        sandbox->used.begin = start;
    ph__clock_renew(sandbox, start);
    sandbox->vcpu->backend->run(sandbox->vcpu, exit);
    uint64_t cycles = ph__clock_elapsed(start);
    sandbox->stats.guest_ns += cycles; /* cycles; converted when asked for */
    sandbox->stats.exits++;
    sandbox->used.processor += cycles;
    const unsigned place = ph__used_count_exit(&sandbox->used, exit);
    ph__count(sandbox->counts, PH__CELL_EXITS + ph__used_exit_shown[place], 1);
}

/* The program ended while something else was waited for. */
static ph_status exited(ph_sandbox *sandbox, enum ph__doorbell until, uint64_t untrusted_status) {
    int32_t code = (int32_t)(untrusted_status & 0xff);

    if (until == PH__DOORBELL_READY)
        ph__error_set(&sandbox->error, PH_E_EXITED,
                      "the program ended with status %d instead of waiting for calls; run it as a program, "
                      "or link it "
                      "with the guest library and export something",
                      code);
    else
        ph__error_set(&sandbox->error, PH_E_EXITED,
                      "the guest ended its program with status %d during the call", code);
    sandbox->error.code = code;
    ph__fault_locate(sandbox);
    return ph__sandbox_poison(sandbox, PH_E_EXITED);
}

static ph_status aborted(ph_sandbox *sandbox) {
    const struct ph__frame *frame;
    ph_status status = ph__frame_receive(sandbox, "an abort without its message", &frame);
    if (status != PH_OK)
        return status;
    const char *message = frame->kind == PH__FRAME_ERROR ? ph__frame_message(sandbox) : NULL;

    if (!message)
        return ph__fault_protocol(sandbox, "an abort without its message");
    ph__error_set(&sandbox->error, PH_E_ABORTED, "%s",
                  message[0] ? message : ph_status_message(PH_E_ABORTED));
    sandbox->error.code = frame->code;
    ph__fault_locate(sandbox);
    return ph__sandbox_poison(sandbox, PH_E_ABORTED);
}

#define SIGABRT_NUMBER 6
#define SIGNALS_MAX 64

/* The default action of a signal ended the program. */
static ph_status killed(ph_sandbox *sandbox, uint64_t untrusted_signal) {
    if (untrusted_signal == 0 || untrusted_signal > SIGNALS_MAX)
        return ph__fault_protocol(sandbox, "a signal that does not exist");
    int32_t number = (int32_t)untrusted_signal;
    ph_status status = number == SIGABRT_NUMBER ? PH_E_ABORTED : PH_E_SIGNALLED;
    if (status == PH_E_ABORTED)
        ph__error_set(&sandbox->error, status, "the guest called abort()");
    else
        ph__error_set(&sandbox->error, status, "signal %d ended the guest", number);
    sandbox->error.signal = number;
    ph__fault_locate(sandbox);
    return ph__sandbox_poison(sandbox, status);
}

/* The guest waits for calls, and nobody asked for that: it was to run as a program. */
static ph_status waits_for_calls(ph_sandbox *sandbox) {
    ph__error_set(
        &sandbox->error, PH_E_STATE,
        "the program waits for calls and does not end by itself; call its functions instead of running it");
    return ph__sandbox_poison(sandbox, PH_E_STATE);
}

/* The host works long for one doorbell here, if the guest wants it so: that is its own processor time. */
static ph_status serve_memory(ph_sandbox *sandbox, uint32_t operation) {
    const struct ph__regs *regs = sandbox->vcpu->regs;
    uint64_t start = ph__clock_cycles();
    ph_status status = operation == PH__DOORBELL_PROTECT
                           ? ph__protect_serve(sandbox, regs->rdi, regs->rsi, regs->rdx)
                           : ph__zero_serve(sandbox, regs->rdi, regs->rsi);

    sandbox->used.processor += ph__clock_elapsed(start);
    return status;
}

/* PH_OK to go on, or the status that ends the loop. */
static ph_status serve_doorbell(ph_sandbox *sandbox, uint32_t operation, enum ph__doorbell until) {
    const struct ph__regs *regs = sandbox->vcpu->regs;

    switch (operation) {
    case PH__DOORBELL_HOST_CALL:
        return ph__host_call_serve(sandbox);
    case PH__DOORBELL_WRITE:
        return ph__io_write(sandbox, regs->rdi, regs->rsi);
    case PH__DOORBELL_READ:
        return ph__io_read(sandbox, regs->rdi, regs->rsi);
    case PH__DOORBELL_SLEEP:
        return ph__io_sleep(sandbox, regs->rdi);
    case PH__DOORBELL_PROTECT:
    case PH__DOORBELL_ZERO:
        return serve_memory(sandbox, operation);
    case PH__DOORBELL_TRACE_BATCH:
        return ph__trace_batch_serve(sandbox);
    case PH__DOORBELL_READY:
        return until == PH__DOORBELL_EXIT ? waits_for_calls(sandbox)
                                          : ph__fault_protocol(sandbox, "a second start");
    case PH__DOORBELL_EXIT:
        return exited(sandbox, until, regs->rdi);
    case PH__DOORBELL_ABORT:
        return aborted(sandbox);
    case PH__DOORBELL_KILL:
        return killed(sandbox, regs->rdi);
    case PH__DOORBELL_UNHANDLED:
        return ph__fault_unhandled(sandbox);
    default:
        return ph__fault_protocol(sandbox, "a doorbell that means nothing here");
    }
}

static ph_status backend_failed(ph_sandbox *sandbox, const struct ph__exit *exit) {
    if (exit->system_error)
        ph__error_set_system(&sandbox->error, PH_E_SYSTEM, exit->system_error, "%s", exit->what);
    else
        ph__error_set(&sandbox->error, PH_E_SYSTEM, "%s", exit->what);
    return ph__sandbox_poison(sandbox, PH_E_SYSTEM);
}

static ph_status serve(ph_sandbox *sandbox, const struct ph__exit *exit, enum ph__doorbell until) {
    switch (exit->kind) {
    case PH__EXIT_DOORBELL:
        return serve_doorbell(sandbox, exit->operation, until);
    case PH__EXIT_EXCEPTION:
        return ph__fault_serve(sandbox, exit);
    case PH__EXIT_KICKED:
        /* Perhaps a late one, for a call that has ended. The marks are asked for before the next entry. */
        sandbox->vcpu->backend->unkick(sandbox->vcpu);
        return PH_OK;
    case PH__EXIT_MEMORY:
    case PH__EXIT_SHUTDOWN:
        return ph__fault_serve(sandbox, exit);
    case PH__EXIT_PROTOCOL:
        return ph__fault_protocol(sandbox, exit->what);
    default:
        return backend_failed(sandbox, exit);
    }
}

PH__HOT ph_status ph__sandbox_enter(ph_sandbox *sandbox, enum ph__doorbell until) {
    const bool watched = sandbox->processor_max != 0;

    ph__sandbox_note_thread(sandbox);
    sandbox->handled_regs.rip = 0; /* what a handler was given in an earlier call is over */
    for (;;) {
        struct ph__exit exit;
        uint32_t marks = ph__window_marks(&sandbox->window);

        if (marks)
            return ph__fault_stopped(sandbox, ph__window_status(marks));
        ph_status status = watched ? ph__limits_watch(sandbox) : PH_OK;
        if (status != PH_OK)
            return status;
        run(sandbox, &exit);
        if (watched)
            ph__limits_look_away(sandbox);
        if (exit.kind == PH__EXIT_DOORBELL && exit.operation == (uint32_t)until)
            /* The end of the call's span drains the trace. */
            return watched ? ph__limits_check_time(sandbox) : PH_OK;
        ph__stream_drain(sandbox->stream, false);
        status = serve(sandbox, &exit, until);
        if (status != PH_OK)
            return status;
    }
}
