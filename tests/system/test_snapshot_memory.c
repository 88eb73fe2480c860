/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Where a snapshot's pages are, and what a restore looks at: pages shared along a chain, pages that were
 * written on another thread, and pages of a snapshot that one call has written in large numbers.
 */
#include <pthread.h>

#include "sandbox/snapshot.h"
#include "support/memory_image.h"

static const ph_config small = {.size = sizeof small, .memory = 12ull << 20, .timeout_ns = TEST_TIMEOUT_NS};

static ph_sandbox *started(ph_image *image) {
    ph_sandbox *sandbox = test_sandbox(image, &small);

    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    return sandbox;
}

static void call(ph_sandbox *sandbox, const char *name, uint32_t argument) {
    const ph_value value = {.type = PH_U32, .u32 = argument};
    const ph_function *function = ph_image_find_export(sandbox->image, name);

    test_status(sandbox, ph_call(sandbox, function, &value, function->signature.count, NULL), PH_OK);
}

static ph_snapshot *take(ph_sandbox *sandbox) {
    ph_snapshot *snapshot = NULL;

    test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
    return snapshot;
}

static void restore(ph_sandbox *sandbox, ph_snapshot *snapshot) {
    test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
}

static ph_sandbox *create_from(ph_snapshot *snapshot) {
    ph_sandbox *sandbox;
    ph_error error;

    if (ph_sandbox_create_from(snapshot, &small, &sandbox, &error) != PH_OK)
        fail_msg("%s", error.message);
    return sandbox;
}

/* ---- threads ------------------------------------------------------------------------------------------- */

struct elsewhere {
    ph_sandbox *sandbox;
    const char *name;
    uint32_t argument;
    ph_snapshot *restored; /* afterwards, or NULL */
};

static void *run_elsewhere(void *context) {
    const struct elsewhere *elsewhere = context;

    call(elsewhere->sandbox, elsewhere->name, elsewhere->argument);
    if (elsewhere->restored)
        restore(elsewhere->sandbox, elsewhere->restored);
    return NULL;
}

static void on_another_thread(ph_sandbox *sandbox, const char *name, uint32_t argument,
                              ph_snapshot *restored) {
    struct elsewhere elsewhere = {sandbox, name, argument, restored};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run_elsewhere, &elsewhere), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* So that this thread's restore has no page fault of its own to go by. */
static void settle(ph_sandbox *sandbox, ph_snapshot *snapshot) {
    for (int i = 0; i < 8; i++) {
        call(sandbox, "count", 0);
        restore(sandbox, snapshot);
    }
}

static void what_was_written_on_another_thread_is_undone(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    ph_sandbox *sandbox = started(image);
    ph_snapshot *snapshot = take(sandbox);
    uint8_t *before = memory_image_take(sandbox);

    for (uint32_t turn = 0; turn < 4; turn++) {
        settle(sandbox, snapshot);
        on_another_thread(sandbox, "greedy", 200 + turn, NULL);
        restore(sandbox, snapshot);
        memory_image_check(sandbox, before);

        settle(sandbox, snapshot);
        on_another_thread(sandbox, "greedy", 300 + turn, snapshot);
        memory_image_check(sandbox, before);
        call(sandbox, "greedy", 400 + turn);
        on_another_thread(sandbox, "count", 0, snapshot);
        memory_image_check(sandbox, before);
    }
    free(before);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(snapshot);
    ph_image_close(image);
}

/* A call that takes no page fault leaves the list of the last restore right, and the next one finds what is
 * new. */
static void the_first_new_page_after_many_calls_is_undone(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    ph_sandbox *sandbox = started(image);
    ph_snapshot *snapshot = take(sandbox);
    uint8_t *before = memory_image_take(sandbox);

    for (uint32_t pages = 1; pages < 40; pages += 3) {
        settle(sandbox, snapshot);
        if (!sandbox->restore->watched)
            print_message("page faults are not counted here: each restore asks for all pages\n");
        call(sandbox, "greedy", pages);
        restore(sandbox, snapshot);
        memory_image_check(sandbox, before);
    }
    free(before);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(snapshot);
    ph_image_close(image);
}

/* ---- chains -------------------------------------------------------------------------------------------- */

#define LINKS 6u

static void a_snapshot_on_another_has_only_what_differs(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot");
    ph_sandbox *sandbox = started(image);
    ph_snapshot *chain[LINKS];
    uint8_t *images[LINKS];

    call(sandbox, "hold", 800);
    chain[0] = take(sandbox);
    images[0] = memory_image_take(sandbox);
    for (uint32_t i = 1; i < LINKS; i++) {
        ph_sandbox_destroy(sandbox);
        sandbox = create_from(chain[i - 1]);
        call(sandbox, i % 2 ? "count" : "change", i);
        chain[i] = take(sandbox);
        images[i] = memory_image_take(sandbox);
        assert_ptr_equal(chain[i]->stores[0], chain[0]->stores[1]);
        assert_true(chain[i]->pages.count > 800);
        assert_in_range(chain[i]->stores[1]->count, 1, 300);
    }
    for (uint32_t turn = 0; turn < 3 * LINKS; turn++) {
        uint32_t which = turn * 5 % LINKS;
        restore(sandbox, chain[which]);
        memory_image_check(sandbox, images[which]);
        call(sandbox, "change", turn);
        if (turn % 4 == 3) { /* on any link of it */
            ph_sandbox_destroy(sandbox);
            sandbox = create_from(chain[which]);
            memory_image_check(sandbox, images[which]);
        }
    }
    ph_sandbox_destroy(sandbox);
    /* A later link keeps what it needs of earlier ones. */
    for (uint32_t i = 0; i + 1 < LINKS; i++)
        ph_snapshot_close(chain[i]);
    sandbox = create_from(chain[LINKS - 1]);
    memory_image_check(sandbox, images[LINKS - 1]);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(chain[LINKS - 1]);
    for (uint32_t i = 0; i < LINKS; i++)
        free(images[i]);
    ph_image_close(image);
}

/* ---- code ---------------------------------------------------------------------------------------------- */

static uint32_t run_code(ph_sandbox *sandbox) {
    ph_value result = {0};

    test_status(sandbox, test_call(sandbox, sandbox->image, "run_code", NULL, 0, &result), PH_OK);
    return result.u32;
}

/* The page is executable, and not writable, in both: nothing but the restore says that it has changed. */
static void code_is_that_of_the_snapshot(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot");
    ph_sandbox *sandbox = started(image);

    call(sandbox, "write_code", 1);
    ph_snapshot *one = take(sandbox);
    call(sandbox, "write_code", 2);
    ph_snapshot *two = take(sandbox);
    assert_int_equal(run_code(sandbox), 2);
    for (unsigned i = 0; i < 3; i++) {
        restore(sandbox, one);
        assert_int_equal(run_code(sandbox), 1);
        restore(sandbox, two);
        assert_int_equal(run_code(sandbox), 2);
    }
    ph_sandbox_destroy(sandbox);
    /* In one that has never changed a protection itself. */
    sandbox = create_from(one);
    assert_int_equal(run_code(sandbox), 1);
    restore(sandbox, two);
    assert_int_equal(run_code(sandbox), 2);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(one);
    ph_snapshot_close(two);
    ph_image_close(image);
}

/* ---- greed --------------------------------------------------------------------------------------------- */

/* The pages are the snapshot's: a call writes all of them once, and the restores behind it are as before. */
static void one_call_that_writes_all_of_a_snapshot_does_not_tax_later_restores(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    ph_sandbox *sandbox = started(image);
    uint64_t usual, after;

    call(sandbox, "hold", 1800);
    ph_snapshot *snapshot = take(sandbox);
    settle(sandbox, snapshot);
    test_status(sandbox, ph_sandbox_pages(sandbox, &usual), PH_OK);
    call(sandbox, "let_go", 1800); /* frees, and so writes, them */
    call(sandbox, "greedy", 1800);
    restore(sandbox, snapshot);
    call(sandbox, "count", 0);
    restore(sandbox, snapshot);
    test_status(sandbox, ph_sandbox_pages(sandbox, &after), PH_OK);
    assert_true(after < usual + 100);
    /* Only now, since a look at memory is pages too. */
    ph_sandbox *fresh = create_from(snapshot);
    uint8_t *wanted = memory_image_take(fresh);
    memory_image_check(sandbox, wanted);
    free(wanted);
    ph_sandbox_destroy(fresh);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(snapshot);
    ph_image_close(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_on_another_thread_is_undone),
        cmocka_unit_test(the_first_new_page_after_many_calls_is_undone),
        cmocka_unit_test(a_snapshot_on_another_has_only_what_differs),
        cmocka_unit_test(code_is_that_of_the_snapshot),
        cmocka_unit_test(one_call_that_writes_all_of_a_snapshot_does_not_tax_later_restores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
