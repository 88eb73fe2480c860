/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Nothing of one tenant reaches the next: a guest leaves a pattern in all registers and all memory and comes
 * to each of its ends; after the restore no register and no word of memory holds any of it, and the processor
 * is what it was to the last bit that KVM tells of.
 */
#include "hostile/hostile.h"

#include <pinhole/snapshot.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory_image.h"
#include "support/vcpu_state.h"

#include <pinhole/trace.h>

#define GUEST "hostile_tenant"
#define SHORT_NS 20000000ull

/* As in the guest. */
enum { SPOIL_KEYS = 1, SPOIL_PROTECTIONS = 2, SPOIL_NO_MEMORY = 4, SPOIL_RING = 8 };
#define FIRST_TIMED 15u
#define FIRST_IO 20u
#define FIRST_STEPPED 38u
#define END_COUNT 41u
#define END_REP_OUTS_32 34u
#define END_INS_8 29u

/* The least memory that the guest runs in: each of its pages is looked at in each turn. */
static const ph_config least = {
    .size = sizeof least, .memory = 6ull << 20, .stack = 2ull << 20, .timeout_ns = TEST_TIMEOUT_NS};

/* Of page-table entries, of nothing in particular. */
static const uint64_t patterns[] = {0x0000000000200067ull, 0x8000000000202067ull, 0xfffffffffffff867ull,
                                    0xa5c35a3c0f1e2d4bull};

struct tenancy {
    ph_sandbox *sandbox;
    ph_snapshot *snapshot;
    uint8_t *image;
    struct vcpu_state processor;
    uint8_t *registers;
    size_t registers_size;
    uint32_t keys; /* SPOIL_KEYS where guests have protection keys */
};

static ph_status call(struct tenancy *tenancy, const char *name, const ph_value *args, size_t count,
                      ph_value *result) {
    return test_call(tenancy->sandbox, tenancy->sandbox->image, name, args, count, result);
}

static void restore_after(struct tenancy *tenancy, const char *what) {
    ph_status status = ph_sandbox_restore(tenancy->sandbox, tenancy->snapshot);

    if (status != PH_OK)
        fail_msg("%s: restore: %s (%s)", what, ph_status_kind(status),
                 ph_sandbox_error(tenancy->sandbox)->message);
}

static void restore(struct tenancy *tenancy) {
    restore_after(tenancy, "an honest guest");
}

static void begin(struct tenancy *tenancy, const ph_config *config) {
    ph_value result;

    memset(tenancy, 0, sizeof *tenancy);
    tenancy->sandbox = test_started(GUEST, config);
    if (call(tenancy, "keys_try", NO_ARGS, &result) == PH_OK)
        tenancy->keys = SPOIL_KEYS;
    ph_sandbox_destroy(tenancy->sandbox);
    tenancy->sandbox = test_started(GUEST, config);
    test_status(tenancy->sandbox, call(tenancy, "honest", NO_ARGS, NULL), PH_OK);
    test_status(tenancy->sandbox, ph_snapshot_take(tenancy->sandbox, &tenancy->snapshot), PH_OK);
    tenancy->image = memory_image_take(tenancy->sandbox);
    restore(tenancy);
    vcpu_state_get(tenancy->sandbox, &tenancy->processor);
    test_status(tenancy->sandbox, call(tenancy, "registers_seen", NO_ARGS, &result), PH_OK);
    tenancy->registers_size = result.bytes.size;
    tenancy->registers = malloc(result.bytes.size);
    assert_non_null(tenancy->registers);
    memcpy(tenancy->registers, result.bytes.data, result.bytes.size);
    restore(tenancy);
}

static void finish(struct tenancy *tenancy) {
    ph_sandbox_destroy(tenancy->sandbox);
    ph_snapshot_close(tenancy->snapshot);
    free(tenancy->registers);
    free(tenancy->image);
}

/* No word of all that the host can look at, page tables apart, is (pattern). */
static void check_words(const ph_sandbox *sandbox, uint64_t pattern, const char *what) {
    const struct ph__memory *memory = &sandbox->memory;
    const struct ph__region *tables = &memory->layout.page_tables;

    for (uint64_t at = 0; at < ph__memory_own(memory); at += 8) {
        uint64_t word;
        if (at - tables->offset < tables->size)
            continue;
        memcpy(&word, memory->base + at, sizeof word);
        if (word == pattern)
            fail_msg("%s: the pattern is left at offset 0x%llx", what, (unsigned long long)at);
    }
}

/* Where in the guest's report XSAVE's word of components in use is: which ones, the processor decides. */
#define SEEN_IN_USE (256 + 512)

/* The next tenant finds what it would in a sandbox of its own. Each of its looks is a first call. */
static void check_next(struct tenancy *tenancy, uint64_t pattern, const char *what) {
    static struct vcpu_state after;
    ph_value result;

    check_words(tenancy->sandbox, pattern, what);
    memory_image_check(tenancy->sandbox, tenancy->image);
    vcpu_state_get(tenancy->sandbox, &after);
    vcpu_same_all(what, &tenancy->processor, &after);
    test_status(tenancy->sandbox, call(tenancy, "registers_seen", NO_ARGS, &result), PH_OK);
    assert_int_equal(result.bytes.size, tenancy->registers_size);
    memcpy(tenancy->registers + SEEN_IN_USE, (const uint8_t *)result.bytes.data + SEEN_IN_USE, 8);
    vcpu_same(what, "what the guest sees", tenancy->registers, result.bytes.data, result.bytes.size);
    test_status(tenancy->sandbox, call(tenancy, "pattern_count", ARGS(U64(~pattern)), &result), PH_OK);
    if (result.u64)
        fail_msg("%s: the next guest finds the pattern %llu times", what, (unsigned long long)result.u64);
    test_status(tenancy->sandbox, call(tenancy, "system_calls_work", NO_ARGS, &result), PH_OK);
    if (result.u32)
        fail_msg("%s: system call %u does not work", what, result.u32);
}

struct spoil {
    uint64_t pattern;
    uint32_t end, how, port;
    uint64_t count;
};

static ph_status spoil(struct tenancy *tenancy, const struct spoil *spoil, uint64_t timeout_ns) {
    const ph_function *function = test_export(tenancy->sandbox->image, "spoil");

    return ph_call_timeout(tenancy->sandbox, function,
                           ARGS(U64(spoil->pattern), U32(spoil->end), U32(spoil->how | tenancy->keys),
                                U32(spoil->port), U64(spoil->count)),
                           NULL, timeout_ns);
}

/* One tenant after the other. */
static void one_then_next(struct tenancy *tenancy, const struct spoil *how, uint64_t timeout_ns) {
    char what[96];

    ph_status status = spoil(tenancy, how, timeout_ns);
    snprintf(what, sizeof what, "pattern 0x%llx, end %u, port 0x%x, count %llu, %s",
             (unsigned long long)how->pattern, how->end, how->port, (unsigned long long)how->count,
             ph_status_kind(status));
    if (how->end == 0 || how->end >= FIRST_STEPPED ? status != PH_OK : !hostile_is_end(status))
        fail_msg("%s: %s", what, ph_sandbox_error(tenancy->sandbox)->message);
    restore_after(tenancy, what);
    check_next(tenancy, how->pattern, what);
    restore(tenancy);
}

static void the_next_tenant_finds_nothing_whatever_the_end(void **state) {
    static struct tenancy tenancy;

    (void)state;
    test_needs_kvm();
    begin(&tenancy, &least);
    /* The test sees what it means to. */
    const struct spoil returns = {.pattern = patterns[3]};
    assert_int_equal(spoil(&tenancy, &returns, TEST_TIMEOUT_NS), PH_OK);
    uint64_t word;
    memcpy(&word, tenancy.sandbox->memory.base + tenancy.sandbox->memory.layout.arena.offset, 8);
    assert_int_equal(word, patterns[3]);
    static struct vcpu_state filled;
    vcpu_state_get(tenancy.sandbox, &filled);
    assert_int_equal(filled.saved.regs.r15, patterns[3]);
    assert_int_equal(filled.saved.fs_base, patterns[3] >> 17);
    assert_memory_not_equal(filled.saved.xsave, tenancy.processor.saved.xsave, filled.saved.xsave_size);
    restore(&tenancy);

    for (uint32_t end = 0; end < FIRST_IO; end++) {
        const struct spoil how = {.pattern = patterns[end % 4],
                                  .end = end,
                                  .how = end % 2 ? SPOIL_PROTECTIONS : 0,
                                  .port = PH__DOORBELL_PORT};
        one_then_next(&tenancy, &how, end < FIRST_TIMED ? TEST_TIMEOUT_NS : 10 * SHORT_NS);
    }
    /* A step that is due behind a doorbell that is the last is nobody's. */
    for (uint32_t end = FIRST_STEPPED; end < END_COUNT; end++) {
        const struct spoil how = {.pattern = patterns[end % 4], .end = end};
        one_then_next(&tenancy, &how, TEST_TIMEOUT_NS);
    }
    finish(&tenancy);
}

static void the_next_tenant_finds_nothing_of_any_io_instruction(void **state) {
    static const uint64_t counts[] = {1, 100, 512, 1ull << 40, ~0ull};
    static struct tenancy tenancy;
    ph_value result;
    unsigned turn = 0;

    (void)state;
    test_needs_kvm();
    begin(&tenancy, &least);
    test_status(tenancy.sandbox, call(&tenancy, "end_count", NO_ARGS, &result), PH_OK);
    assert_int_equal(result.u32, END_COUNT);
    restore(&tenancy);
    for (uint32_t end = FIRST_IO; end < FIRST_STEPPED; end++)
        for (unsigned i = 0; i < 3; i++, turn++) {
            /* The last one is refused by the processor, and the others are seen by the host. */
            static const uint32_t ports[] = {PH__DOORBELL_PORT, PH__DOORBELL_PORT + 3, 0x80};
            const struct spoil how = {
                .pattern = patterns[turn % 4], .end = end, .port = ports[i], .count = counts[turn % 5]};
            if (!hostile_skip())
                one_then_next(&tenancy, &how, TEST_TIMEOUT_NS);
        }
    finish(&tenancy);
}

/* ---- interrupted --------------------------------------------------------------------------------------- */

struct interrupter {
    ph_sandbox *sandbox;
    unsigned delay; /* in turns of a loop */
    _Atomic bool go, stop;
};

static void *interrupt(void *argument) {
    struct interrupter *interrupter = argument;

    for (;;) {
        while (!interrupter->go)
            if (interrupter->stop)
                return NULL;
        for (volatile unsigned i = 0; i < interrupter->delay; i++) {
        }
        ph_interrupt(interrupter->sandbox);
        interrupter->go = false;
    }
}

/* An interrupt comes anywhere from before the call to behind it; a guest that goes on for ever is given one
 * after the other. Of registers alone, so that the call is short. */
static void the_next_tenant_finds_nothing_of_one_interrupted_anywhere(void **state) {
    static struct tenancy tenancy;
    static struct vcpu_state after;
    const unsigned rounds = test_scaled(8);
    struct interrupter interrupter;
    pthread_t thread;
    char what[64];

    (void)state;
    test_needs_kvm();
    begin(&tenancy, &least);
    interrupter = (struct interrupter){.sandbox = tenancy.sandbox};
    assert_int_equal(pthread_create(&thread, NULL, interrupt, &interrupter), 0);
    for (uint32_t end = FIRST_TIMED; end < FIRST_STEPPED; end++)
        for (unsigned round = 0; round < rounds; round++) {
            const struct spoil how = {.pattern = patterns[3],
                                      .end = end,
                                      .how = SPOIL_NO_MEMORY,
                                      .port = PH__DOORBELL_PORT + round % 2,
                                      .count = 700};
            interrupter.delay = round * round * 400;
            interrupter.go = true;
            ph_status status = spoil(&tenancy, &how, SHORT_NS);
            while (interrupter.go)
                ;
            snprintf(what, sizeof what, "end %u, round %u, %s", end, round, ph_status_kind(status));
            if (!hostile_is_end(status))
                fail_msg("%s: %s", what, ph_sandbox_error(tenancy.sandbox)->message);
            restore_after(&tenancy, what);
            memory_image_check(tenancy.sandbox, tenancy.image);
            vcpu_state_get(tenancy.sandbox, &after);
            vcpu_same_all(what, &tenancy.processor, &after);
            if (round == 0)
                check_next(&tenancy, how.pattern, what);
            restore(&tenancy);
        }
    interrupter.stop = true;
    pthread_join(thread, NULL);
    finish(&tenancy);
}

/* ---- the processor reset ------------------------------------------------------------------------------- */

/* Ring 3 cannot reset the processor; the host does it to it, by taking its exception vectors away. */
static void the_next_tenant_finds_nothing_of_a_reset_processor(void **state) {
    static struct tenancy tenancy;

    (void)state;
    test_needs_kvm();
    test_not_on_soft("the emulated processor is never reset");
    begin(&tenancy, &least);
    for (uint32_t turn = 0; turn < 4; turn++) {
        const struct spoil how = {.pattern = patterns[turn], .end = 1 + turn};
        char what[64];
        memset(tenancy.sandbox->memory.base + PH__TABLES_GPA + PH__IDT_OFFSET, 0, PH__IDT_SIZE);
        ph_status status = spoil(&tenancy, &how, TEST_TIMEOUT_NS);
        snprintf(what, sizeof what, "without vectors, turn %u, %s", turn, ph_status_kind(status));
        assert_true(hostile_is_end(status));
        restore_after(&tenancy, what);
        check_next(&tenancy, how.pattern, what);
        restore(&tenancy);
    }
    finish(&tenancy);
}

/* ---- other sandboxes ----------------------------------------------------------------------------------- */

/* A snapshot is as clean for a sandbox that is made of it, and such a sandbox is put back as well. */
static void the_next_tenant_finds_nothing_in_a_sandbox_made_of_the_snapshot(void **state) {
    static struct tenancy tenancy;
    ph_error error;

    (void)state;
    test_needs_kvm();
    begin(&tenancy, &least);
    ph_sandbox_destroy(tenancy.sandbox);
    tenancy.sandbox = NULL;
    if (ph_sandbox_create_from(tenancy.snapshot, NULL, &tenancy.sandbox, &error) != PH_OK)
        fail_msg("%s", error.message);
    check_next(&tenancy, patterns[0], "made of a snapshot");
    restore(&tenancy);
    for (uint32_t end = 0; end < FIRST_TIMED; end += 2) {
        const struct spoil how = {
            .pattern = patterns[end / 2 % 4], .end = end, .how = end % 4 ? SPOIL_PROTECTIONS : 0};
        one_then_next(&tenancy, &how, TEST_TIMEOUT_NS);
    }
    finish(&tenancy);
}

/* The ring, its page and the pages of sites are there too. */
static void no_trace_of_a_tenant(ph_tracer *tracer, ph_trace_policy policy) {
    static struct tenancy tenancy;
    ph_config config = least;

    config.tracer = tracer;
    config.trace_policy = policy;
    begin(&tenancy, &config);
    for (uint32_t end = 0; end < FIRST_TIMED; end += 4) {
        const struct spoil how = {.pattern = patterns[end / 4 % 4], .end = end};
        one_then_next(&tenancy, &how, TEST_TIMEOUT_NS);
    }
    /* Input instructions that the restore has finished, with the ring as their target: it is empty too. */
    for (uint32_t end = END_INS_8; end < FIRST_STEPPED; end++) {
        const struct spoil puts_out = {.pattern = patterns[3],
                                       .end = END_REP_OUTS_32,
                                       .how = SPOIL_NO_MEMORY,
                                       .port = PH__DOORBELL_PORT,
                                       .count = 500};
        const struct spoil takes_in = {
            .pattern = patterns[2], .end = end, .how = SPOIL_RING, .port = PH__DOORBELL_PORT, .count = 500};
        const struct ph__region *trace = &tenancy.sandbox->memory.layout.trace;
        const uint8_t *ring = tenancy.sandbox->memory.base + trace->offset + PH__PAGE_SIZE;
        assert_true(hostile_is_end(spoil(&tenancy, &puts_out, TEST_TIMEOUT_NS)));
        restore(&tenancy);
        assert_true(hostile_is_end(spoil(&tenancy, &takes_in, TEST_TIMEOUT_NS)));
        restore(&tenancy);
        for (uint64_t at = 0; at < trace->size - PH__PAGE_SIZE; at++)
            if (ring[at])
                fail_msg("end %u: the ring is not empty at 0x%llx", end, (unsigned long long)at);
    }
    finish(&tenancy);
}

static void the_next_tenant_finds_nothing_in_a_traced_sandbox(void **state) {
    ph_tracer *tracer = NULL;
    ph_error error;

    (void)state;
    test_needs_kvm();
    assert_int_equal(ph_tracer_create(NULL, &tracer, &error), PH_OK);
    no_trace_of_a_tenant(tracer, PH_TRACE_COMPLETE);
    no_trace_of_a_tenant(tracer, PH_TRACE_FLIGHT);
    no_trace_of_a_tenant(tracer, PH_TRACE_DROP);
    ph_tracer_destroy(tracer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_tenant_finds_nothing_whatever_the_end),
        cmocka_unit_test(the_next_tenant_finds_nothing_of_any_io_instruction),
        cmocka_unit_test(the_next_tenant_finds_nothing_of_one_interrupted_anywhere),
        cmocka_unit_test(the_next_tenant_finds_nothing_of_a_reset_processor),
        cmocka_unit_test(the_next_tenant_finds_nothing_in_a_sandbox_made_of_the_snapshot),
        cmocka_unit_test(the_next_tenant_finds_nothing_in_a_traced_sandbox),
    };

    return cmocka_run_group_tests_name("hostile tenants", tests, NULL, NULL);
}
