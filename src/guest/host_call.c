/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Calls a function of the host: a CALL frame in the outbox, one doorbell, and the answer in the host inbox.
 * What the answer holds moves to the arena, since the next host call overwrites the box.
 */
#include "internal.h"

static const char *last_message;

const char *ph_error_message(void) {
    return last_message ? last_message : "";
}

void ph__error_message_clear(void) {
    last_message = NULL;
}

/* Copies what (value) points at out of the box. */
static void value_keep(ph_value *value) {
    if (value->type == PH_STR)
        value->str = ph_str_copy(value->str);
    else if (value->type == PH_BYTES)
        value->bytes = ph_bytes_copy(value->bytes.data, value->bytes.size);
}

/* Reads the answer to a call of (entry) into (result) or (error). */
static bool answer_take(const struct ph__control *control, const struct ph__function_entry *entry,
                        ph_value *result, struct ph__error *error) {
    static const ph_type error_types[] = {PH_STR};
    const ph_type result_types[] = {(ph_type)entry->result};
    const void *box = (const void *)control->host_inbox_gva;
    const struct ph__frame *head = box;
    ph_value message;

    if (head->kind == PH__FRAME_RESULT &&
        ph__frame_decode(box, control->box_size, result_types, entry->result != PH_VOID, result) ==
            PH__FRAME_OK) {
        value_keep(result);
        return true;
    }
    if (head->kind == PH__FRAME_ERROR &&
        ph__frame_decode(box, control->box_size, error_types, 1, &message) == PH__FRAME_OK) {
        /* 0 is no failure to who calls a ph_try_ function. */
        ph__error_set(error, head->code != 0 ? head->code : PH_GUEST_E_HOST, "%s", message.str);
        return false;
    }
    ph_abort(PH_GUEST_E_PROTOCOL, "the host's answer to a call of %s is malformed", ph__entry_name(entry));
}

/* Calls (entry) with values[1...]; the result goes to values[0]. On failure sets (error). */
static bool host_call(const struct ph__function_entry *entry, ph_value *values, struct ph__error *error) {
    const struct ph__control *control = ph__control_find();
    struct ph__frame head = {.kind = PH__FRAME_CALL};

    if (!control) {
        ph__error_set(error, PH_GUEST_E_NATIVE,
                      "%s is a function of the host, and this program does not run in pinhole",
                      ph__entry_name(entry));
        return false;
    }
    head.index = (uint32_t)(entry - ph__imports);
    for (unsigned i = 0; i < entry->count; i++)
        values[1 + i].type = (ph_type)entry->args[i];
    if (ph__frame_encode((void *)control->outbox_gva, control->box_size, control->max_message, &head,
                         values + 1, entry->count) != PH__FRAME_OK) {
        ph__error_set(error, PH_GUEST_E_TOO_LARGE,
                      "the arguments of the host function %s are larger than the message limit of %llu bytes",
                      ph__entry_name(entry), (unsigned long long)control->max_message);
        return false;
    }
    ph__doorbell_ring(PH__DOORBELL_HOST_CALL, 0, 0, 0);
    return answer_take(control, entry, &values[0], error);
}

void ph__host_call(const void *entry, ph_value *values) {
    struct ph__error error;

    if (!host_call(entry, values, &error))
        ph__error_throw(&error);
}

int32_t ph__host_call_try(const void *entry, ph_value *values) {
    struct ph__error error;

    if (host_call(entry, values, &error))
        return 0;
    last_message = ph_str_copy(error.message);
    values[0] = (ph_value){.type = PH_VOID};
    return error.code;
}
