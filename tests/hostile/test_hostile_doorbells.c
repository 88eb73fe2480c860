/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guests that ring the doorbell with operations and numbers that no honest guest uses, or at the wrong time.
 * The host answers with an errno where Linux would, and ends the guest where the protocol is broken.
 */
#include "hostile/hostile.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define GUEST "hostile_doorbells"

static const uint64_t none = 0;

/* Rings once in a sandbox of its own. Returns the answer, when there is one. */
static int64_t ring(uint32_t operation, uint64_t rdi, uint64_t rsi, uint64_t rdx, ph_status wanted) {
    struct hostile hostile;
    ph_value result = {.type = PH_U64};
    char what[96];

    snprintf(what, sizeof what, "doorbell %u, 0x%llx, 0x%llx, 0x%llx", operation, (unsigned long long)rdi,
             (unsigned long long)rsi, (unsigned long long)rdx);
    hostile_begin(&hostile, GUEST, NULL);
    hostile_expect(
        &hostile, hostile_call(&hostile, "ring", ARGS(U32(operation), U64(rdi), U64(rsi), U64(rdx)), &result),
        wanted, what);
    hostile_end(&hostile, what);
    return wanted == PH_OK ? (int64_t)result.u64 : 0;
}

/* Rings during the start. */
static void ring_at_start(const char *operation, const char *rdi, uint64_t timeout_ns, ph_status wanted) {
    const char *const arguments[] = {operation, rdi, NULL};
    ph_config config = PH_CONFIG_INIT;
    struct hostile hostile;

    config.argv = arguments;
    config.timeout_ns = timeout_ns;
    hostile_expect(&hostile, hostile_begin_start(&hostile, GUEST, &config), wanted, operation);
    hostile_end(&hostile, operation);
}

/* ---- operations ---------------------------------------------------------------------------------------- */

static void unknown_operations_are_refused(void **state) {
    static const uint32_t operations[] = {0,          14,         15,         16,         64,        127,
                                          128,        255,        256,        0x50,       0x101,     0x10002,
                                          0x7fffffff, 0x80000000, 0x80000002, 0xfffffffe, 0xffffffff};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        ring(operations[i], ~0ull, ~0ull, ~0ull, PH_E_PROTOCOL);
}

static void the_operation_is_eax_alone(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;
    ph_value result = {.type = PH_U64};

    hostile_begin(&hostile, GUEST, NULL);
    const uint64_t rax = 0xffffffff00000000 | PH__DOORBELL_SLEEP;
    hostile_expect(&hostile,
                   hostile_call(&hostile, "ring_with_high_bits", ARGS(U64(rax), U64(0), U64(0)), &result),
                   PH_OK, "SLEEP with the high half of RAX set");
    assert_int_equal(result.u64, 0);
    hostile_end(&hostile, "SLEEP with the high half of RAX set");
}

static void operations_that_are_kept_for_later_are_refused(void **state) {
    (void)state;
    test_needs_kvm();
    ring(PH__DOORBELL_TRACE_BATCH, 0, 0, 0, PH_E_PROTOCOL);
}

static void ready_during_a_call_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    ring(PH__DOORBELL_READY, 0, 0, 0, PH_E_PROTOCOL);
}

static void ready_twice_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    const char *const arguments[] = {"1", NULL};
    ph_config config = PH_CONFIG_INIT;
    struct hostile hostile;

    config.argv = arguments;
    hostile_expect(&hostile, hostile_begin_start(&hostile, GUEST, &config), PH_OK, "the first READY");
    hostile_expect(&hostile, hostile_call(&hostile, "honest", NO_ARGS, NULL), PH_E_PROTOCOL,
                   "the second READY");
    hostile_end(&hostile, "READY twice");
}

static void return_during_start_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    ring_at_start("2", NULL, 0, PH_E_PROTOCOL);
}

static void host_call_without_imports_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    ring(PH__DOORBELL_HOST_CALL, 0, 0, 0, PH_E_PROTOCOL);
    ring_at_start("3", NULL, 0, PH_E_PROTOCOL);
}

static void abort_without_a_frame_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    ring(PH__DOORBELL_ABORT, 0, 0, 0, PH_E_PROTOCOL);
    ring_at_start("4", NULL, 0, PH_E_PROTOCOL);
}

static void exit_during_a_call_is_an_end_of_its_own(void **state) {
    static const uint64_t statuses[] = {0, 1, 255, 256, 1ull << 63, ~0ull};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        struct hostile hostile;
        hostile_begin(&hostile, GUEST, NULL);
        const ph_status status = hostile_call(
            &hostile, "ring", ARGS(U32(PH__DOORBELL_EXIT), U64(statuses[i]), U64(0), U64(0)), NULL);
        hostile_expect(&hostile, status, PH_E_EXITED, "EXIT");
        assert_int_equal(ph_sandbox_error(hostile.sandbox)->code, (int32_t)(statuses[i] & 0xff));
        hostile_end(&hostile, "EXIT");
    }
    ring_at_start("8", "7", 0, PH_E_EXITED);
}

static void a_signal_that_does_not_exist_is_refused(void **state) {
    static const uint64_t numbers[] = {0, 65, 66, 127, 256, 262, 1ull << 32, 1ull << 63, ~0ull};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        ring(PH__DOORBELL_KILL, numbers[i], 0, 0, PH_E_PROTOCOL);
}

static void every_signal_that_exists_has_its_status(void **state) {
    (void)state;
    test_needs_kvm();
    for (uint64_t number = 1; number <= 64; number++)
        if (number == 6 || !hostile_skip())
            ring(PH__DOORBELL_KILL, number, 0, 0, number == 6 ? PH_E_ABORTED : PH_E_SIGNALLED);
    ring_at_start("10", "11", 0, PH_E_SIGNALLED);
}

static void an_unhandled_exception_that_never_was_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    ring(PH__DOORBELL_UNHANDLED, 0, 0, 0, PH_E_PROTOCOL);
    ring_at_start("11", NULL, 0, PH_E_PROTOCOL);
}

/* A program that is run as a whole: it has no calls to answer. */
static void a_program_that_rings_for_calls_is_refused(void **state) {
    static const struct {
        const char *operation;
        ph_status wanted;
    } rings[] = {
        {"1", PH_E_STATE}, {"2", PH_E_PROTOCOL}, {"3", PH_E_PROTOCOL}, {"11", PH_E_PROTOCOL}, {"8", PH_OK}};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof rings / sizeof rings[0]; i++) {
        const char *const arguments[] = {rings[i].operation, "0x1ff", NULL};
        ph_image *image = test_image(GUEST);
        ph_config config = PH_CONFIG_INIT;
        int exit_status = -1;
        config.argv = arguments;
        ph_sandbox *sandbox = test_sandbox(image, &config);
        test_status(sandbox, ph_sandbox_run(sandbox, &exit_status), rings[i].wanted);
        assert_int_equal(ph_sandbox_state(sandbox), PH_STATE_POISONED);
        assert_int_equal(exit_status, rings[i].wanted == PH_OK ? 255 : -1);
        ph_sandbox_destroy(sandbox);
        ph_image_close(image);
    }
}

/* ---- protection ---------------------------------------------------------------------------------------- */

/* What the guest's memory looks like: the layout is the same for each sandbox of one image. */
static struct ph__layout layout_of_guest(void) {
    struct hostile hostile;

    hostile_begin(&hostile, GUEST, NULL);
    const struct ph__layout layout = hostile.sandbox->memory.layout;
    hostile_end(&hostile, "an honest guest");
    return layout;
}

static void expect_protect(uint64_t gva, uint64_t size, uint64_t protection, int64_t wanted) {
    int64_t answer = ring(PH__DOORBELL_PROTECT, gva, size, protection, PH_OK);

    if (answer != wanted)
        fail_msg("PROTECT 0x%llx, 0x%llx, 0x%llx: %lld instead of %lld", (unsigned long long)gva,
                 (unsigned long long)size, (unsigned long long)protection, (long long)answer,
                 (long long)wanted);
}

static void protection_of_odd_ranges_is_invalid(void **state) {
    (void)state;
    test_needs_kvm();
    const struct ph__layout layout = layout_of_guest();
    const uint64_t arena = layout.arena.gva;

    expect_protect(arena + 1, 4096, PROT_READ, -EINVAL);
    expect_protect(arena + 4095, 4096, PROT_READ, -EINVAL);
    expect_protect(arena, 1, PROT_READ, -EINVAL);
    expect_protect(arena, 4097, PROT_READ, -EINVAL);
    expect_protect(arena, ~0ull, PROT_READ, -EINVAL);
    expect_protect(~0ull, 4096, PROT_READ, -EINVAL);
    expect_protect(arena, 4096, 8, -EINVAL);
    expect_protect(arena, 4096, 1ull << 63, -EINVAL);
    expect_protect(arena, 4096, ~0ull, -EINVAL);
    /* Sums that wrap. */
    expect_protect(arena, 0ull - arena + 4096, PROT_READ, -EINVAL);
    expect_protect(0xfffffffffffff000, 8192, PROT_READ, -EINVAL);
    expect_protect(1ull << 63, 1ull << 63, PROT_READ, -EINVAL);
    expect_protect(arena, 0xfffffffffffff000, PROT_READ, -EINVAL);
}

static void protection_of_nothing_is_nothing(void **state) {
    (void)state;
    test_needs_kvm();
    const struct ph__layout layout = layout_of_guest();

    expect_protect(layout.arena.gva, 0, PROT_READ, 0);
    expect_protect(0, 0, PROT_READ, 0);
    expect_protect(PH__WINDOW_GVA, 0, PROT_READ, 0);
    expect_protect(1ull << 63, 0, PROT_READ, 0);
}

/* Everything that belongs to pinhole, page by page, and as one range that starts or ends in it. */
static void protection_of_the_window_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    const struct ph__layout layout = layout_of_guest();
    const uint64_t pages[] = {
        PH__WINDOW_GVA,
        PH__GVA(PH__CONTROL_GPA),
        PH__GVA(PH__POKES_GPA),
        PH__GVA(PH__TABLES_GPA),
        PH__GVA(PH__RING0_STACK_GPA),
        PH__GVA(PH__IST_STACK_GPA),
        PH__GVA(PH__MONITOR_GPA),
        PH__GVA(PH__MONITOR_GPA) + ph__monitor()->stubs,
        PH__GVA(PH__MONITOR_GPA) + ph__monitor()->text,
        PH__GVA(PH__MONITOR_GPA) + ph__monitor()->data,
        PH__GVA(PH__MONITOR_STACK_GPA),
        PH__GVA(PH__IO_GPA),
        layout.page_tables.gva,
        layout.page_tables.gva + layout.page_tables.size - 4096,
        layout.messages.gva,
        layout.bookkeeping.gva,
        layout.bookkeeping.gva + layout.bookkeeping.size,
    };

    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        if (hostile_skip())
            continue;
        expect_protect(pages[i], 4096, PROT_READ | PROT_WRITE, -ENOMEM);
        expect_protect(pages[i], 4096, PROT_READ | PROT_EXEC, -ENOMEM);
        expect_protect(pages[i], 1ull << 40, PROT_NONE, -ENOMEM);
    }
}

static void protection_of_what_is_not_mapped_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    const struct ph__layout layout = layout_of_guest();
    const uint64_t places[] = {
        0,
        4096,
        layout.image.gva - 4096,
        layout.stack.gva - 4096, /* the guard */
        layout.stack.gva + layout.stack.size,
        0x7ffffffff000,
        0x800000000000,
        0xffff800000000000,
        0xffffffff80000000,
        0xffffffffffffe000,
        (1ull << 63) - 4096,
    };

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        expect_protect(places[i], 4096, PROT_READ | PROT_WRITE, -ENOMEM);
    expect_protect(0, 1ull << 63, PROT_NONE, -ENOMEM);
    expect_protect(4096, (1ull << 63) - 4096, PROT_READ, -ENOMEM);
}

static void writable_and_executable_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    const struct ph__layout layout = layout_of_guest();

    expect_protect(layout.arena.gva, 4096, PROT_WRITE | PROT_EXEC, -EACCES);
    expect_protect(layout.image.gva, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, -EACCES);
    expect_protect(layout.stack.gva, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, -EACCES);
}

/* From inside the guest's own memory to far outside: what is inside may change, what is outside must not. */
static void a_huge_protection_stops_where_the_guests_memory_ends(void **state) {
    static const uint64_t sizes[] = {1ull << 30, 1ull << 46, (1ull << 63) - (1ull << 47), 1ull << 63};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct hostile hostile;
        ph_value result = {.type = PH_U64};
        hostile_begin(&hostile, GUEST, NULL);
        hostile.may_change_tables = true;
        uint64_t gva = hostile.sandbox->memory.layout.arena.gva;
        hostile_expect(&hostile,
                       hostile_call(&hostile, "ring",
                                    ARGS(U32(PH__DOORBELL_PROTECT), U64(gva), U64(sizes[i]), U64(PROT_READ)),
                                    &result),
                       PH_OK, "a huge PROTECT");
        assert_int_equal((int64_t)result.u64, -ENOMEM);
        hostile_expect(&hostile, hostile_call(&hostile, "honest", NO_ARGS, NULL), PH_OK, "a call after it");
        hostile_end(&hostile, "a huge PROTECT");
    }
}

/* As on Linux: the pages before the one that is not there are changed, although the answer is an error. */
static void a_protection_that_fails_half_way_has_effect_before(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;

    hostile_begin(&hostile, GUEST, NULL);
    hostile.may_change_tables = true;
    const struct ph__region *arena = &hostile.sandbox->memory.layout.arena;
    const uint64_t gva = arena->gva + arena->size - 4096;
    hostile_expect(
        &hostile,
        hostile_call(&hostile, "protect_and_write", ARGS(U64(gva), U64(8192), U64(PROT_READ)), NULL),
        PH_E_PAGE_FAULT, "a write to what was made read-only");
    assert_int_equal(ph_sandbox_error(hostile.sandbox)->address, gva);
    hostile_end(&hostile, "a protection that fails half way");
}

/* The change holds from the next instruction on: for one page in the middle of a large one, and for all of
 * it. */
static void a_protection_has_effect_at_once(void **state) {
    static const uint64_t offsets[] = {0, 4096, 0x1ff000, 0x200000, 0x345000};
    static const uint64_t sizes[] = {4096, 8192, 0x200000, 0x201000};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
            struct hostile hostile;
            hostile_begin(&hostile, GUEST, NULL);
            hostile.may_change_tables = true;
            uint64_t gva = hostile.sandbox->memory.layout.arena.gva + offsets[i];
            hostile_expect(&hostile,
                           hostile_call(&hostile, "protect_and_write",
                                        ARGS(U64(gva), U64(sizes[j]), U64(PROT_READ)), NULL),
                           PH_E_PAGE_FAULT, "a write to what was made read-only");
            assert_int_equal(ph_sandbox_error(hostile.sandbox)->address, gva);
            hostile_end(&hostile, "a write to what was made read-only");
        }
    }
}

/* Splits every large page and puts every page back, again and again: the page tables must not run out. */
static void protections_do_not_use_up_the_page_tables(void **state) {
    const unsigned rounds = test_scaled(40);
    struct hostile hostile;

    (void)state;
    test_needs_kvm();
    hostile_begin(&hostile, GUEST, NULL);
    hostile.may_change_tables = true;
    const struct ph__region arena = hostile.sandbox->memory.layout.arena;
    for (unsigned round = 0; round < rounds; round++) {
        const uint64_t gva = arena.gva + round % 20 * PH__LARGE_PAGE_SIZE;
        const uint64_t changes[][3] = {
            {gva + 4096, 4096, PROT_NONE},
            {gva + 8192, 4096, PROT_READ | PROT_EXEC},
            {gva, PH__LARGE_PAGE_SIZE, PROT_READ},
            {gva, PH__LARGE_PAGE_SIZE, PROT_READ | PROT_WRITE},
        };
        for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
            ph_value result = {.type = PH_U64};
            hostile_expect(&hostile,
                           hostile_call(&hostile, "ring",
                                        ARGS(U32(PH__DOORBELL_PROTECT), U64(changes[i][0]),
                                             U64(changes[i][1]), U64(changes[i][2])),
                                        &result),
                           PH_OK, "PROTECT");
            assert_int_equal((int64_t)result.u64, 0);
        }
    }
    assert_true(hostile.sandbox->memory.tables_used <= hostile.sandbox->memory.layout.page_tables.size);
    hostile_end(&hostile, "many changes of protection");
}

/* A pending single step must not get in between the host's request and the page tables. */
static void a_protection_under_single_step_is_not_lost(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;

    hostile_begin(&hostile, GUEST, NULL);
    hostile.may_change_tables = true;
    uint64_t gva = hostile.sandbox->memory.layout.arena.gva;
    hostile_expect(&hostile,
                   hostile_call(&hostile, "ring_stepping",
                                ARGS(U32(PH__DOORBELL_PROTECT), U64(gva), U64(4096), U64(PROT_READ)), NULL),
                   PH_E_PROTOCOL, "PROTECT under single step");
    hostile_end(&hostile, "PROTECT under single step");
}

/* Guest memory that goes on behind the hole below 4 GiB: a page on either side of it. */
static void memory_behind_the_hole_is_no_exception(void **state) {
    (void)state;
    test_needs_kvm();
    ph_config config = PH_CONFIG_INIT;

    config.memory = 5ull << 30;
    for (int side = -2; side <= 1; side++) {
        struct hostile hostile;
        ph_value result = {.type = PH_U64};
        hostile_begin(&hostile, GUEST, &config);
        hostile.may_change_tables = true;
        const struct ph__memory *memory = &hostile.sandbox->memory;
        const struct ph__region *arena = &memory->layout.arena;
        assert_true(arena->offset < PH__HOLE_GPA && arena->offset + arena->size > PH__HOLE_GPA + 8192);
        const uint64_t at = PH__HOLE_GPA - arena->offset + (uint64_t)side * PH__PAGE_SIZE;
        uint8_t *bytes = memory->base + arena->offset + at;
        /* The guest writes where the host sees it, */
        hostile_expect(&hostile,
                       hostile_call(&hostile, "protect_and_write",
                                    ARGS(U64(arena->gva + at), U64(4096), U64(3)), &result),
                       PH_OK, "a write beside the hole");
        assert_int_equal(result.u64, 0);
        assert_int_equal(bytes[0], 1);
        /* the host zeroes what the guest sees, on both sides at once, */
        bytes[-1] = 0x5a;
        hostile_call(&hostile, "ring", ARGS(U32(PH__DOORBELL_ZERO), U64(arena->gva + at), U64(8192), U64(0)),
                     &result);
        assert_int_equal(result.u64, 0);
        assert_int_equal(bytes[0], 0);
        assert_int_equal(bytes[-1], 0x5a);
        /* and what is made read-only is. */
        hostile_expect(
            &hostile,
            hostile_call(&hostile, "protect_and_write", ARGS(U64(arena->gva + at), U64(8192), U64(1)), NULL),
            PH_E_PAGE_FAULT, "a write beside the hole");
        assert_int_equal(ph_sandbox_error(hostile.sandbox)->address, arena->gva + at);
        hostile_end(&hostile, "memory beside the hole");
    }
}

/* ---- zeroing ------------------------------------------------------------------------------------------- */

static void zeroing_outside_the_heap_is_invalid(void **state) {
    (void)state;
    test_needs_kvm();
    const struct ph__layout layout = layout_of_guest();
    const uint64_t arena = layout.arena.gva;
    const uint64_t end = arena + layout.arena.size;
    const uint64_t ranges[][2] = {
        {arena + 1, 4096},
        {arena, 4095},
        {arena - 4096, 4096},
        {arena - 4096, 8192},
        {end - 4096, 8192},
        {end, 4096},
        {arena, layout.arena.size + 4096},
        {arena, 1ull << 63},
        {arena, ~0ull << 12},
        {arena + 4096, 0ull - 4096},
        {0, 4096},
        {0, 1ull << 62},
        {layout.image.gva, 4096},
        {layout.stack.gva, 4096},
        {PH__GVA(PH__CONTROL_GPA), 4096},
        {PH__GVA(PH__TABLES_GPA), 4096},
        {PH__GVA(PH__MONITOR_GPA), 4096},
        {layout.page_tables.gva, 4096},
        {layout.messages.gva, 4096},
        {layout.bookkeeping.gva, 4096},
        {0x800000000000, 4096},
        {1ull << 63, 4096},
        {0xfffffffffffff000, 4096},
        {0xfffffffffffff000, 8192},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (ring(PH__DOORBELL_ZERO, ranges[i][0], ranges[i][1], ~0ull, PH_OK) != -EINVAL)
            fail_msg("ZERO 0x%llx, 0x%llx", (unsigned long long)ranges[i][0],
                     (unsigned long long)ranges[i][1]);
}

/* The host's memory on both sides of what is zeroed, and every byte in it. */
static void zeroing_stays_inside_what_was_asked_for(void **state) {
    (void)state;
    test_needs_kvm();
    const uint64_t size = 3 * PH__PAGE_SIZE;
    struct hostile hostile;
    ph_value result = {.type = PH_U64};

    hostile_begin(&hostile, GUEST, NULL);
    const struct ph__region *arena = &hostile.sandbox->memory.layout.arena;
    const uint64_t starts[] = {0, PH__PAGE_SIZE, PH__LARGE_PAGE_SIZE - PH__PAGE_SIZE, arena->size - size};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        /* What lies before and behind the arena's ends belongs to the image and to the stack. */
        uint8_t *bytes = hostile.sandbox->memory.base + arena->offset + starts[i];
        const bool first = starts[i] == 0;
        const bool last = starts[i] + size == arena->size;
        memset(bytes, 0x5a, size);
        if (!first)
            bytes[-1] = 0x5a;
        if (!last)
            bytes[size] = 0x5a;
        hostile_expect(
            &hostile,
            hostile_call(&hostile, "ring",
                         ARGS(U32(PH__DOORBELL_ZERO), U64(arena->gva + starts[i]), U64(size), U64(0)),
                         &result),
            PH_OK, "ZERO");
        assert_int_equal((int64_t)result.u64, 0);
        for (uint64_t at = 0; at < size; at++)
            assert_int_equal(bytes[at], 0);
        if (!first)
            assert_int_equal(bytes[-1], 0x5a);
        if (!last)
            assert_int_equal(bytes[size], 0x5a);
    }
    hostile_end(&hostile, "ZERO");
}

/* ---- output and input ---------------------------------------------------------------------------------- */

static const uint64_t sizes_that_fit[] = {0, 1, 4095, 65535, 65536};
static const uint64_t sizes_that_do_not[] = {65537, 131072, 1ull << 32, (1ull << 32) + 1, 1ull << 63, ~0ull};
static const uint64_t other_streams[] = {0, 3, 4, 1ull << 32, (1ull << 32) + 1, 1ull << 63, ~0ull};

static void output_that_fits_the_page_is_taken(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof sizes_that_fit / sizeof sizes_that_fit[0]; i++)
        for (uint64_t stream = 1; stream <= 2; stream++)
            assert_int_equal(ring(PH__DOORBELL_WRITE, stream, sizes_that_fit[i], 0, PH_OK),
                             sizes_that_fit[i]);
}

static void output_larger_than_the_page_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof sizes_that_do_not / sizeof sizes_that_do_not[0]; i++) {
        ring(PH__DOORBELL_WRITE, 1, sizes_that_do_not[i], 0, PH_E_PROTOCOL);
        ring(PH__DOORBELL_WRITE, 1ull << 63, sizes_that_do_not[i], 0, PH_E_PROTOCOL);
    }
}

static void output_to_other_streams_is_a_bad_descriptor(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof other_streams / sizeof other_streams[0]; i++)
        assert_int_equal(ring(PH__DOORBELL_WRITE, other_streams[i], 16, 0, PH_OK), -EBADF);
}

static void input_from_other_streams_is_a_bad_descriptor(void **state) {
    (void)state;
    test_needs_kvm();
    assert_int_equal(ring(PH__DOORBELL_READ, 0, 16, 0, PH_OK), 0);
    for (size_t i = 1; i < sizeof other_streams / sizeof other_streams[0]; i++)
        assert_int_equal(ring(PH__DOORBELL_READ, other_streams[i], 16, 0, PH_OK), -EBADF);
    assert_int_equal(ring(PH__DOORBELL_READ, 1, 16, 0, PH_OK), -EBADF);
    assert_int_equal(ring(PH__DOORBELL_READ, 2, 16, 0, PH_OK), -EBADF);
}

static void input_larger_than_the_page_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof sizes_that_do_not / sizeof sizes_that_do_not[0]; i++)
        ring(PH__DOORBELL_READ, 0, sizes_that_do_not[i], 0, PH_E_PROTOCOL);
}

/* Callbacks of the host that answer as they should not: the guest never hears of more bytes than there are.
 */
struct callback {
    int64_t answer;
    uint64_t total;
    uint64_t sum;
};

static int64_t take_output(void *context, int stream, const void *data, size_t size) {
    struct callback *callback = context;
    const uint8_t *bytes = data;

    assert_true(stream == 1 || stream == 2);
    for (size_t i = 0; i < size; i++)
        callback->sum += bytes[i] * (uint64_t)(i + 1);
    callback->total += size;
    return callback->answer ? callback->answer : (int64_t)size;
}

static int64_t give_input(void *context, void *data, size_t size) {
    const struct callback *callback = context;

    memset(data, 'x', size);
    return callback->answer;
}

static void a_callback_cannot_say_more_than_there_was(void **state) {
    static const struct {
        int64_t says, guest_hears;
    } answers[] = {
        {5, 5},           {16, 16},       {17, 16},      {(int64_t)1 << 40, 16}, {INT64_MAX, 16},
        {-EPIPE, -EPIPE}, {-4095, -4095}, {-4096, -EIO}, {INT64_MIN, -EIO},
    };

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct callback callback = {.answer = answers[i].says};
        ph_config config = PH_CONFIG_INIT;
        struct hostile hostile;
        ph_value result = {.type = PH_U64};
        config.output = take_output;
        config.input = give_input;
        config.output_context = config.input_context = &callback;
        hostile_begin(&hostile, GUEST, &config);
        hostile_call(&hostile, "ring", ARGS(U32(PH__DOORBELL_WRITE), U64(1), U64(16), U64(none)), &result);
        assert_int_equal((int64_t)result.u64, answers[i].guest_hears);
        hostile_call(&hostile, "ring", ARGS(U32(PH__DOORBELL_READ), U64(0), U64(16), U64(none)), &result);
        assert_int_equal((int64_t)result.u64, answers[i].guest_hears);
        hostile_end(&hostile, "callbacks that lie");
    }
}

static void input_stays_inside_what_was_asked_for(void **state) {
    (void)state;
    test_needs_kvm();
    struct callback callback = {.answer = 65536};
    ph_config config = PH_CONFIG_INIT;
    struct hostile hostile;

    config.input = give_input;
    config.input_context = &callback;
    hostile_begin(&hostile, GUEST, &config);
    const struct ph__layout *layout = &hostile.sandbox->memory.layout;
    uint8_t *behind = hostile_memory(&hostile, PH__IO_GPA + PH__IO_SIZE);
    memset(behind, 0x5a, 64);
    hostile_expect(&hostile,
                   hostile_call(&hostile, "ring",
                                ARGS(U32(PH__DOORBELL_READ), U64(0), U64(PH__IO_SIZE), U64(none)), NULL),
                   PH_OK, "the largest READ");
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(behind[i], 0x5a);
    assert_true(layout->size > PH__IO_GPA + PH__IO_SIZE);
    hostile_end(&hostile, "the largest READ");
}

static void a_million_bytes_of_output_arrive_in_order(void **state) {
    static const uint64_t pieces[] = {65536, 4096, 777};
    const uint64_t total = 1000000;

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct callback callback = {0};
        ph_config config = PH_CONFIG_INIT;
        struct hostile hostile;
        ph_value result = {.type = PH_U64};
        uint64_t sum = 0;
        config.output = take_output;
        config.output_context = &callback;
        hostile_begin(&hostile, GUEST, &config);
        hostile_expect(
            &hostile,
            hostile_call(&hostile, "write_output", ARGS(U64(1), U64(total), U64(pieces[i])), &result), PH_OK,
            "a million bytes");
        for (uint64_t at = 0; at < total; at++)
            sum += (uint8_t)at * (at % pieces[i] + 1);
        assert_int_equal(result.u64, total);
        assert_int_equal(callback.total, total);
        assert_int_equal(callback.sum, sum);
        hostile_end(&hostile, "a million bytes");
    }
}

/* ---- sleep --------------------------------------------------------------------------------------------- */

static void a_short_sleep_ends_by_itself(void **state) {
    static const uint64_t times[] = {0, 1, 1000, 20000000};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        assert_int_equal(ring(PH__DOORBELL_SLEEP, times[i], 0, 0, PH_OK), 0);
}

static const uint64_t long_times[] = {1ull << 40, 1ull << 62, 1ull << 63, ~0ull - 1, ~0ull};

static void an_endless_sleep_ends_by_its_time_out(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof long_times / sizeof long_times[0]; i++) {
        struct hostile hostile;
        hostile_begin(&hostile, GUEST, NULL);
        hostile.last = ph_call_timeout(hostile.sandbox, test_export(hostile.image, "ring"),
                                       ARGS(U32(PH__DOORBELL_SLEEP), U64(long_times[i]), U64(0), U64(0)),
                                       NULL, 50000000);
        hostile_expect(&hostile, hostile.last, PH_E_TIMED_OUT, "an endless sleep");
        hostile_end(&hostile, "an endless sleep");
    }
    ring_at_start("7", "0xffffffffffffffff", 200000000, PH_E_TIMED_OUT);
}

static void *interrupt_soon(void *argument) {
    const struct timespec soon = {.tv_nsec = 30000000};

    nanosleep(&soon, NULL);
    ph_interrupt(argument);
    return NULL;
}

static void an_endless_sleep_can_be_interrupted(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof long_times / sizeof long_times[0]; i++) {
        struct hostile hostile;
        pthread_t thread;
        hostile_begin(&hostile, GUEST, NULL);
        assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, hostile.sandbox), 0);
        hostile_call(&hostile, "ring", ARGS(U32(PH__DOORBELL_SLEEP), U64(long_times[i]), U64(0), U64(0)),
                     NULL);
        pthread_join(thread, NULL);
        hostile_expect(&hostile, hostile.last, PH_E_INTERRUPTED, "an endless sleep");
        hostile_end(&hostile, "an endless sleep");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_operations_are_refused),
        cmocka_unit_test(the_operation_is_eax_alone),
        cmocka_unit_test(operations_that_are_kept_for_later_are_refused),
        cmocka_unit_test(ready_during_a_call_is_refused),
        cmocka_unit_test(ready_twice_is_refused),
        cmocka_unit_test(return_during_start_is_refused),
        cmocka_unit_test(host_call_without_imports_is_refused),
        cmocka_unit_test(abort_without_a_frame_is_refused),
        cmocka_unit_test(exit_during_a_call_is_an_end_of_its_own),
        cmocka_unit_test(a_signal_that_does_not_exist_is_refused),
        cmocka_unit_test(every_signal_that_exists_has_its_status),
        cmocka_unit_test(an_unhandled_exception_that_never_was_is_refused),
        cmocka_unit_test(a_program_that_rings_for_calls_is_refused),
        cmocka_unit_test(protection_of_odd_ranges_is_invalid),
        cmocka_unit_test(protection_of_nothing_is_nothing),
        cmocka_unit_test(protection_of_the_window_is_refused),
        cmocka_unit_test(protection_of_what_is_not_mapped_is_refused),
        cmocka_unit_test(writable_and_executable_is_refused),
        cmocka_unit_test(a_huge_protection_stops_where_the_guests_memory_ends),
        cmocka_unit_test(a_protection_that_fails_half_way_has_effect_before),
        cmocka_unit_test(a_protection_has_effect_at_once),
        cmocka_unit_test(protections_do_not_use_up_the_page_tables),
        cmocka_unit_test(a_protection_under_single_step_is_not_lost),
        cmocka_unit_test(memory_behind_the_hole_is_no_exception),
        cmocka_unit_test(zeroing_outside_the_heap_is_invalid),
        cmocka_unit_test(zeroing_stays_inside_what_was_asked_for),
        cmocka_unit_test(output_that_fits_the_page_is_taken),
        cmocka_unit_test(output_larger_than_the_page_is_refused),
        cmocka_unit_test(output_to_other_streams_is_a_bad_descriptor),
        cmocka_unit_test(input_from_other_streams_is_a_bad_descriptor),
        cmocka_unit_test(input_larger_than_the_page_is_refused),
        cmocka_unit_test(a_callback_cannot_say_more_than_there_was),
        cmocka_unit_test(input_stays_inside_what_was_asked_for),
        cmocka_unit_test(a_million_bytes_of_output_arrive_in_order),
        cmocka_unit_test(a_short_sleep_ends_by_itself),
        cmocka_unit_test(an_endless_sleep_ends_by_its_time_out),
        cmocka_unit_test(an_endless_sleep_can_be_interrupted),
    };

    return cmocka_run_group_tests_name("hostile doorbells", tests, NULL, NULL);
}
