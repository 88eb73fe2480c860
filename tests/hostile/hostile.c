/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The frame of every test of a hostile guest (hostile.h).
 */
#include "hostile/hostile.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory that no guest may change ------------------------------------------------------------------- */

/* Control page up to the clock, which the host renews; descriptor tables; monitor up to its data; page
 * tables. The poke list is left out: the host writes it for every change of protection. */
#define CONTROL_SIZE offsetof(struct ph__control, clock)

static size_t constant_size(void) {
    return CONTROL_SIZE + PH__PAGE_SIZE + ph__monitor()->data;
}

static uint8_t *constant_copy(const struct hostile *hostile, size_t page_tables_size) {
    const ph_sandbox *sandbox = hostile->sandbox;
    uint8_t *copy = malloc(constant_size() + page_tables_size);
    uint8_t *at = copy;

    assert_non_null(copy);
    memcpy(at, hostile_memory(hostile, PH__CONTROL_GPA), CONTROL_SIZE);
    at += CONTROL_SIZE;
    memcpy(at, hostile_memory(hostile, PH__TABLES_GPA), PH__PAGE_SIZE);
    at += PH__PAGE_SIZE;
    memcpy(at, hostile_memory(hostile, PH__MONITOR_GPA), ph__monitor()->data);
    at += ph__monitor()->data;
    memcpy(at, sandbox->memory.base + sandbox->memory.layout.page_tables.offset, page_tables_size);
    return copy;
}

static void constant_check(const struct hostile *hostile, const char *what) {
    uint8_t *after = constant_copy(hostile, hostile->page_tables_size);
    size_t compared = constant_size() + (hostile->may_change_tables ? 0 : hostile->page_tables_size);
    size_t at = 0;

    while (at < compared && after[at] == hostile->before[at])
        at++;
    free(after);
    if (at < compared)
        fail_msg("%s: the guest changed what it may not (byte 0x%zx of control page, tables, monitor, page "
                 "tables)",
                 what, at);
}

uint8_t *hostile_memory(const struct hostile *hostile, uint64_t gpa) {
    return hostile->sandbox->memory.base + gpa;
}

/* ---- the sandbox --------------------------------------------------------------------------------------- */

/* Stands for every import: looks at each byte of its arguments, so that a sanitizer sees what lies outside.
 */
static ph_status host_function(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    const struct hostile_import *import = context;
    const struct ph__memory *memory = &import->hostile->sandbox->memory;
    volatile size_t sum = 0;

    (void)call;
    (void)result;
    import->hostile->host_calls++;
    for (uint32_t i = 0; i < import->function->signature.count; i++) {
        const ph_value *value = &args[i];
        const uint8_t *bytes = NULL;
        size_t size = 0;
        assert_int_equal(value->type, import->function->signature.args[i]);
        if (value->type == PH_STR) {
            bytes = (const uint8_t *)value->str;
            size = strlen(value->str) + 1;
        } else if (value->type == PH_BYTES) {
            bytes = value->bytes.data;
            size = value->bytes.size;
        }
        /* A copy, never the guest's memory itself, which it could change after the check. */
        assert_false(bytes >= memory->base && bytes < memory->base + memory->layout.size);
        for (size_t j = 0; j < size; j++)
            sum += bytes[j];
    }
    return PH_OK;
}

static void register_imports(struct hostile *hostile) {
    assert_true(ph_image_import_count(hostile->image) <= HOSTILE_IMPORTS_MAX);
    for (size_t i = 0; i < ph_image_import_count(hostile->image); i++) {
        const ph_function *import = ph_image_import(hostile->image, i);
        hostile->imports[i] = (struct hostile_import){hostile, import};
        test_status(hostile->sandbox,
                    ph_sandbox_register(hostile->sandbox, import->name, &import->signature, host_function,
                                        &hostile->imports[i]),
                    PH_OK);
    }
}

static void make(struct hostile *hostile, const char *guest, const ph_config *config) {
    *hostile = (struct hostile){.honest = "honest"};
    hostile->image = test_image(guest);
    hostile->sandbox = test_sandbox(hostile->image, config);
    register_imports(hostile);
}

ph_status hostile_begin_start(struct hostile *hostile, const char *guest, const ph_config *config) {
    make(hostile, guest, config);
    hostile->last = ph_sandbox_start(hostile->sandbox);
    hostile->page_tables_size = hostile->sandbox->memory.tables_used;
    hostile->before = constant_copy(hostile, hostile->page_tables_size);
    return hostile->last;
}

void hostile_begin(struct hostile *hostile, const char *guest, const ph_config *config) {
    ph_status status = hostile_begin_start(hostile, guest, config);

    hostile_expect(hostile, status, PH_OK, guest);
}

ph_status hostile_call(struct hostile *hostile, const char *name, const ph_value *args, size_t count,
                       ph_value *result) {
    hostile->last = test_call(hostile->sandbox, hostile->image, name, args, count, result);
    return hostile->last;
}

/* One in (step) rows of a table: a quarter of PH_TEST_SCALE, at least 1. */
static bool is_left_out(unsigned *count) {
    unsigned step = 1000 / test_scaled(1000) / 4;

    return step > 1 && (*count)++ % step != 0;
}

bool hostile_skip(void) {
    static unsigned count;
    return is_left_out(&count);
}

bool hostile_is_end(ph_status status) {
    return status <= PH_E_ABORTED;
}

void hostile_expect(const struct hostile *hostile, ph_status got, ph_status wanted, const char *what) {
    if (got != wanted)
        fail_msg("%s: %s instead of %s (%s)", what, ph_status_kind(got), ph_status_kind(wanted),
                 ph_sandbox_error(hostile->sandbox)->message);
}

/* A fresh sandbox of the same image, which nobody lies to. */
static void honest_check(ph_image *image, const char *honest, const char *what) {
    struct hostile fresh = {.image = image, .sandbox = test_sandbox(image, NULL)};
    ph_value result = {.type = PH_VOID};

    register_imports(&fresh);
    hostile_expect(&fresh, ph_sandbox_start(fresh.sandbox), PH_OK, what);
    hostile_expect(&fresh, test_call(fresh.sandbox, image, honest, NO_ARGS, &result), PH_OK, what);
    assert_true(result.boolean);
    ph_sandbox_destroy(fresh.sandbox);
}

/* State, error and what the next call is told agree with the status of the last one. */
static void state_check(struct hostile *hostile, const char *what) {
    const ph_error *error = ph_sandbox_error(hostile->sandbox);
    ph_state state = ph_sandbox_state(hostile->sandbox);

    if (!hostile_is_end(hostile->last)) {
        if (state != PH_STATE_READY)
            fail_msg("%s: status %s, but state %d", what, ph_status_kind(hostile->last), (int)state);
        return;
    }
    if (state != PH_STATE_POISONED || error->status != hostile->last || !error->message[0])
        fail_msg("%s: status %s, but state %d, error %s, message \"%s\"", what, ph_status_kind(hostile->last),
                 (int)state, ph_status_kind(error->status), error->message);
    uint64_t exits = hostile->sandbox->stats.exits;
    ph_status next = test_call(hostile->sandbox, hostile->image, hostile->honest, NO_ARGS, NULL);
    hostile_expect(hostile, next, PH_E_POISONED, what);
    if (!strstr(error->message, "destroy"))
        fail_msg("%s: the next call is not told what helps: %s", what, error->message);
    assert_int_equal(hostile->sandbox->stats.exits, exits);
}

void hostile_end(struct hostile *hostile, const char *what) {
    static unsigned count;

    state_check(hostile, what);
    constant_check(hostile, what);
    ph_sandbox_destroy(hostile->sandbox);
    if (!hostile->brief && !is_left_out(&count))
        honest_check(hostile->image, hostile->honest, what);
    ph_image_close(hostile->image);
    free(hostile->before);
}

void hostile_lie(const char *guest, const char *name, const ph_value *args, size_t count, ph_status wanted,
                 ph_error *error) {
    struct hostile hostile;

    hostile_begin(&hostile, guest, NULL);
    hostile_expect(&hostile, hostile_call(&hostile, name, args, count, NULL), wanted, name);
    if (error)
        *error = *ph_sandbox_error(hostile.sandbox);
    hostile_end(&hostile, name);
}

uint64_t hostile_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}
