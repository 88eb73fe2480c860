/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The loop in which a guest waits for calls. The doorbell that hands over one call's result is also the one
 * that returns with the next call in the inbox, so a call costs one exit.
 */
#include "internal.h"

static struct ph__init *inits;
static struct ph__init **inits_tail = &inits;
static struct ph__init *hooks; /* PH_ON_RESTORE */
static struct ph__init **hooks_tail = &hooks;

void ph__init_add(struct ph__init *init) {
    *inits_tail = init;
    inits_tail = &init->next;
}

void ph__on_restore_add(struct ph__init *init) {
    *hooks_tail = init;
    hooks_tail = &init->next;
}

/* The host renews the seed at every start and every restore, and never else. What the guest has seen is in
 * its memory, and so comes from the snapshot. */
static uint64_t seed_seen(const struct ph__control *control) {
    return *(const volatile uint64_t *)&control->seed_generation;
}

static void hooks_run(void) {
    for (const struct ph__init *hook = hooks; hook; hook = hook->next)
        hook->run();
    ph__error_message_clear();
    ph__arena_reset();
}

/* Says in the outbox that the result of (entry) does not fit. */
static void too_large_send(const struct ph__control *control, const struct ph__function_entry *entry,
                           const ph_value *result) {
    struct ph__error error;
    size_t size = result->type == PH_STR ? strlen(result->str) : result->bytes.size;

    ph__error_set(&error, PH_GUEST_E_TOO_LARGE,
                  "the result of %s has %zu bytes, more than the message limit of %llu",
                  ph__entry_name(entry), size, (unsigned long long)control->max_message);
    ph__error_send(control, &error);
}

/* Makes the call in the inbox, and leaves its RESULT or ERROR frame in the outbox. */
static void call_serve(const struct ph__control *control) {
    static const struct ph__frame result_head = {.kind = PH__FRAME_RESULT};
    const void *inbox = (const void *)control->inbox_gva;
    const struct ph__frame *head = inbox;
    const size_t export_count = ((uintptr_t)ph__exports_end - (uintptr_t)ph__exports) / sizeof ph__exports[0];
    ph_type types[PH_MAX_ARGS];
    ph_value args[PH_MAX_ARGS];
    ph_value result;

    if (head->kind != PH__FRAME_CALL || head->index >= export_count)
        ph_abort(PH_GUEST_E_PROTOCOL, "the inbox holds no call of this program");
    const struct ph__function_entry *entry = &ph__exports[head->index];
    for (unsigned i = 0; i < entry->count; i++)
        types[i] = (ph_type)entry->args[i];
    if (ph__frame_decode(inbox, control->box_size, types, entry->count, args) != PH__FRAME_OK)
        ph_abort(PH_GUEST_E_PROTOCOL, "the arguments of %s are malformed", ph__entry_name(entry));

    uint64_t span = ph__trace_call_begin(control, head->index);
    int left = ph__guard_call(ph__entry_thunk(entry), args, &result);
    ph__trace_span_end(span);
    if (left) {
        ph__error_send(control, ph__error_thrown());
    } else {
        result.type = (ph_type)entry->result;
        if (ph__frame_encode((void *)control->outbox_gva, control->box_size, control->max_message,
                             &result_head, &result, entry->result != PH_VOID) != PH__FRAME_OK)
            too_large_send(control, entry, &result);
    }
    ph__error_message_clear();
    ph__arena_reset();
    /* What the call has printed belongs to it: the next one may never come. */
    fflush(stdout);
}

int ph_serve(void) {
    static const char native[] =
        "This program serves calls in a pinhole sandbox and does nothing by itself. Try:"
        " pinhole functions FILE; pinhole call FILE FUNCTION [ARG...]\n";
    static bool serving;
    const struct ph__control *control = ph__control_find();

    if (!control) {
        (void)!write(2, native, sizeof native - 1);
        return 1;
    }
    if (control->abi_version != ph__note.abi_version)
        ph_abort(PH_GUEST_E_PROTOCOL, "the host speaks version %u of the protocol, this program %u",
                 control->abi_version, ph__note.abi_version);
    if (serving)
        ph_abort(PH_GUEST_E_PROTOCOL, "ph_serve was called while it runs");
    serving = true;

    for (const struct ph__init *init = inits; init; init = init->next)
        init->run();
    ph__error_message_clear();
    ph__arena_reset();
    /* By lines, as on a terminal, so that a fault does not swallow what was printed before it. */
    fflush(stdout);
    setvbuf(stdout, NULL, PH__LINE_BUFFERED, 0);

    uint64_t seen = seed_seen(control);
    ph__trace_start_end(control);
    ph__doorbell_ring(PH__DOORBELL_READY, 0, 0, 0);
    for (;;) {
        if (seed_seen(control) != seen) {
            seen = seed_seen(control);
            hooks_run();
        }
        call_serve(control);
        ph__doorbell_ring(PH__DOORBELL_RETURN, 0, 0, 0);
    }
}
