/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Snapshots: a restore undoes whatever a guest has written, in any order of snapshots and sandboxes, and
 * sandboxes made of one begin where it was taken.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sandbox/snapshot.h"
#include "support/memory_image.h"
#include "support/traced.h"

/* Small, so that all of its memory can be compared often. */
static const ph_config small = {.size = sizeof small, .memory = 12ull << 20, .timeout_ns = TEST_TIMEOUT_NS};

static ph_snapshot *take(ph_sandbox *sandbox) {
    ph_snapshot *snapshot = NULL;

    test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
    assert_non_null(snapshot);
    return snapshot;
}

static void restore(ph_sandbox *sandbox, ph_snapshot *snapshot) {
    test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
    assert_int_equal(ph_sandbox_state(sandbox), PH_STATE_READY);
}

static ph_sandbox *create_from(ph_snapshot *snapshot, const ph_config *config) {
    ph_sandbox *sandbox = NULL;
    ph_error error;

    if (ph_sandbox_create_from(snapshot, config, &sandbox, &error) != PH_OK)
        fail_msg("creating from a snapshot: %s", error.message);
    return sandbox;
}

static ph_value called(ph_sandbox *sandbox, const char *name, const ph_value *args, size_t count) {
    ph_value result;
    test_status(sandbox, test_call(sandbox, sandbox->image, name, args, count, &result), PH_OK);
    return result;
}

static uint32_t count(ph_sandbox *sandbox) {
    return called(sandbox, "count", NO_ARGS).u32;
}

static void change(ph_sandbox *sandbox, uint32_t salt) {
    called(sandbox, "change", ARGS(U32(salt)));
}

static const char *const guests[] = {"snapshot", "snapshot-musl"};

static void restore_undoes_writes_to_every_page(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t g = 0; g < 2; g++) {
        for (int plain = 0; plain < 2; plain++) {
            ph_sandbox *sandbox = test_started(guests[g], &small);
            assert_int_equal(count(sandbox), 1);
            ph_snapshot *snapshot = take(sandbox);
            sandbox->restore->plain = plain;
            uint8_t *image = memory_image_take(sandbox);
            for (uint32_t turn = 1; turn < 5; turn++) {
                change(sandbox, turn);
                change(sandbox, turn + 7);
                restore(sandbox, snapshot);
                memory_image_check(sandbox, image);
                assert_int_equal(count(sandbox), 2);
            }
            free(image);
            ph_snapshot_close(snapshot);
            ph_sandbox_destroy(sandbox);
        }
    }
}

static uint64_t pages_copied(const ph_sandbox *sandbox) {
    ph_call_stats stats = PH_CALL_STATS_INIT;

    ph_sandbox_call_stats(sandbox, &stats);
    return stats.pages_copied;
}

static void a_call_is_told_how_many_pages_were_copied_back_for_it(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = test_started("snapshot", &small);
    ph_snapshot *snapshot = take(sandbox);

    change(sandbox, 1);
    assert_int_equal(pages_copied(sandbox), 0);
    restore(sandbox, snapshot);
    count(sandbox);
    assert_true(pages_copied(sandbox) > 0);
    count(sandbox);
    assert_int_equal(pages_copied(sandbox), 0);
    ph_snapshot_close(snapshot);
    ph_sandbox_destroy(sandbox);
}

static void a_sandbox_made_of_a_snapshot_begins_there(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t g = 0; g < 2; g++) {
        ph_sandbox *first = test_started(guests[g], &small);
        change(first, 5);
        count(first);
        ph_snapshot *snapshot = take(first);
        uint8_t *image = memory_image_take(first);
        ph_sandbox_destroy(first);

        ph_sandbox *second = create_from(snapshot, NULL);
        ph_sandbox *third = create_from(snapshot, NULL);
        ph_snapshot_close(snapshot); /* they hold it */
        assert_int_equal(ph_sandbox_state(second), PH_STATE_READY);
        memory_image_check(second, image);
        assert_int_equal(count(second), 7);
        change(second, 9);
        memory_image_check(third, image);
        assert_int_equal(count(third), 7);
        for (int turn = 0; turn < 3; turn++) {
            restore(second, snapshot);
            memory_image_check(second, image);
            assert_int_equal(count(second), 7);
            change(second, 11);
        }
        free(image);
        ph_sandbox_destroy(second);
        ph_sandbox_destroy(third);
    }
}

static void snapshots_chain_in_any_order_and_across_sandboxes(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandboxes[3];
    ph_snapshot *chain[4];
    uint8_t *images[4];
    uint64_t random = 0x9e3779b97f4a7c15ull;

    sandboxes[0] = test_started("snapshot", &small);
    for (uint32_t i = 0; i < 4; i++) {
        chain[i] = take(sandboxes[0]);
        images[i] = memory_image_take(sandboxes[0]);
        if (i == 1)
            called(sandboxes[0], "hold", ARGS(U32(512)));
        change(sandboxes[0], i + 1);
        count(sandboxes[0]);
        if (i == 2) { /* the last one is of a sandbox that lies on another */
            sandboxes[1] = create_from(chain[2], &small);
            change(sandboxes[1], 77);
            ph_sandbox *keep = sandboxes[0];
            sandboxes[0] = sandboxes[1];
            sandboxes[1] = keep;
        }
    }
    sandboxes[2] = test_sandbox(sandboxes[0]->image, &small); /* never started */
    for (unsigned turn = 0; turn < test_scaled(60); turn++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        ph_sandbox *sandbox = sandboxes[(random >> 33) % 3];
        unsigned which = (random >> 40) % 4;
        restore(sandbox, chain[which]);
        memory_image_check(sandbox, images[which]);
        /* Often enough in a row that the sandbox is laid on it. */
        for (unsigned again = 0; turn % 10 == 9 && again < 6; again++) {
            change(sandbox, again);
            restore(sandbox, chain[which]);
            memory_image_check(sandbox, images[which]);
        }
        count(sandbox);
        if (random >> 50 & 1)
            change(sandbox, turn);
        if (random >> 51 & 1)
            called(sandbox, "greedy", ARGS(U32(1 + turn * 8)));
        assert_true(called(sandbox, "recycle", ARGS(U32(512))).boolean);
    }
    for (unsigned i = 0; i < 3; i++)
        ph_sandbox_destroy(sandboxes[i]);
    for (unsigned i = 0; i < 4; i++) {
        free(images[i]);
        ph_snapshot_close(chain[i]);
    }
}

/* A guest gives pages back under which a snapshot lies: they are zero when it gets them again. */
static void pages_given_back_are_zero_on_a_snapshot(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox *first = test_started("snapshot", &small);
    called(first, "hold", ARGS(U32(1200)));
    ph_snapshot *snapshot = take(first);
    ph_sandbox *second = create_from(snapshot, NULL);
    for (int turn = 0; turn < 2; turn++) {
        called(second, "let_go", ARGS(U32(1200)));
        assert_true(called(second, "recycle", ARGS(U32(1200))).boolean);
        restore(second, snapshot);
    }
    ph_sandbox_destroy(second);
    ph_sandbox_destroy(first);
    ph_snapshot_close(snapshot);
}

static ph_status store(ph_sandbox *sandbox, uint64_t address) {
    return test_call(sandbox, sandbox->image, "store", ARGS(U64(address)), NULL);
}

static void restore_puts_protections_back(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = test_started("snapshot", &small);
    ph_snapshot *before = take(sandbox);
    uint64_t page = called(sandbox, "keep_read_only", NO_ARGS).u64;
    ph_snapshot *after = take(sandbox);
    ph_sandbox *other = create_from(after, NULL);

    /* Split here, whole in the snapshot. */
    restore(sandbox, before);
    test_status(sandbox, store(sandbox, page), PH_OK);
    /* Read-only again. */
    restore(sandbox, after);
    assert_int_equal(called(sandbox, "load", ARGS(U64(page))).u32, 'r');
    test_status(sandbox, store(sandbox, page), PH_E_PAGE_FAULT);
    /* Taken away from the read-only page, and put back. */
    restore(sandbox, after);
    called(sandbox, "protect", ARGS(U64(page), U64(4096), U32(PROT_READ | PROT_WRITE)));
    test_status(sandbox, store(sandbox, page), PH_OK);
    restore(sandbox, after);
    test_status(sandbox, store(sandbox, page), PH_E_PAGE_FAULT);
    /* The same in a sandbox that was made so, and in one that has never split a page. */
    test_status(other, store(other, page), PH_E_PAGE_FAULT);
    ph_sandbox *whole = test_started("snapshot", &small);
    ph_sandbox_destroy(other);
    ph_snapshot *foreign = after;
    ph_sandbox *late = create_from(before, NULL);
    restore(late, foreign);
    test_status(late, store(late, page), PH_E_PAGE_FAULT);
    restore(late, before);
    test_status(late, store(late, page), PH_OK);
    ph_sandbox_destroy(late);
    ph_sandbox_destroy(whole);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(before);
    ph_snapshot_close(after);
}

static void many_protections_are_put_back(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = test_started("snapshot", &small);
    uint64_t base = called(sandbox, "hold", ARGS(U32(512))).u64;
    ph_snapshot *snapshot = take(sandbox);
    uint64_t tables = 0;
    for (int turn = 0; turn < 30; turn++) {
        for (uint64_t at = 0; at < 500; at += 2 + (uint64_t)turn % 3)
            called(sandbox, "protect", ARGS(U64(base + at * 4096), U64(4096), U32(PROT_READ)));
        test_status(sandbox, store(sandbox, base), PH_E_PAGE_FAULT);
        restore(sandbox, snapshot);
        for (uint64_t at = 0; at < 500; at += 50)
            test_status(sandbox, store(sandbox, base + at * 4096), PH_OK);
        if (turn == 0)
            tables = sandbox->memory.tables_used;
        assert_int_equal(sandbox->memory.tables_used, tables); /* none is lost */
        if (turn == 2 && test_scaled(30) < 30)
            break;
    }
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(snapshot);
}

static void restored_guests_get_other_random_numbers(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = test_started("snapshot", &small);
    uint8_t seen[8][16];
    called(sandbox, "random_bytes", NO_ARGS);
    ph_snapshot *snapshot = take(sandbox);
    ph_sandbox *other = create_from(snapshot, NULL);
    for (int i = 0; i < 8; i++) {
        ph_sandbox *used = i % 2 ? other : sandbox;
        if (i > 1)
            restore(used, snapshot);
        memcpy(seen[i], called(used, "random_bytes", NO_ARGS).bytes.data, 16);
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(seen[i], seen[j], 16);
    }
    ph_sandbox_destroy(sandbox);
    ph_sandbox_destroy(other);
    ph_snapshot_close(snapshot);
}

static void hooks_run_once_before_the_first_call(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = test_started("snapshot", &small);
    ph_snapshot *snapshot = take(sandbox);
    assert_int_equal(called(sandbox, "hooks", NO_ARGS).u32, 0);
    for (int turn = 0; turn < 2; turn++) {
        restore(sandbox, snapshot);
        assert_int_equal(called(sandbox, "hooks", NO_ARGS).u32, 12);
        assert_int_equal(called(sandbox, "hooks", NO_ARGS).u32, 12);
    }
    ph_sandbox *other = create_from(snapshot, NULL);
    assert_int_equal(called(other, "hooks", NO_ARGS).u32, 12);
    ph_snapshot *second = take(other);
    restore(sandbox, second);
    assert_int_equal(called(sandbox, "hooks", NO_ARGS).u32, 22);
    ph_sandbox_destroy(other);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(snapshot);
    ph_snapshot_close(second);
}

static void time_goes_on_and_input_goes_back(void **state) {
    (void)state;
    test_needs_kvm();
    ph_config config = small;
    config.input_bytes = (ph_bytes){"abc", 3};
    ph_sandbox *sandbox = test_started("snapshot", &config);
    assert_int_equal(called(sandbox, "read_byte", NO_ARGS).u32, 'a');
    uint64_t before = called(sandbox, "realtime", NO_ARGS).u64;
    ph_snapshot *snapshot = take(sandbox);
    assert_int_equal(called(sandbox, "read_byte", NO_ARGS).u32, 'b');
    usleep(300000);
    restore(sandbox, snapshot);
    assert_int_equal(called(sandbox, "read_byte", NO_ARGS).u32, 'b');
    assert_true(called(sandbox, "realtime", NO_ARGS).u64 - before >= 300000000);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(snapshot);
}

static unsigned open_files(void) {
    unsigned files = 0;

    for (int file = 0; file < 1024; file++)
        files += fcntl(file, F_GETFD) != -1;
    return files;
}

static unsigned mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    unsigned lines = 0;

    assert_non_null(file);
    for (int byte; (byte = fgetc(file)) != EOF;)
        lines += byte == '\n';
    fclose(file);
    return lines;
}

static void thousands_of_restores_leak_nothing(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox *first = test_started("snapshot", &small);
    ph_snapshot *snapshot = take(first);
    ph_sandbox *sandboxes[] = {first, create_from(snapshot, NULL)};
    unsigned files = 0, maps = 0;
    unsigned long pages = 0;
    const unsigned turns = test_scaled(1000);

    for (unsigned turn = 0; turn < turns; turn++) {
        for (int i = 0; i < 2; i++) {
            if (turn % 100 == 1)
                called(sandboxes[i], "greedy", ARGS(U32(1500)));
            else
                change(sandboxes[i], turn);
            restore(sandboxes[i], snapshot);
        }
        if (turn == turns / 4) {
            files = open_files();
            maps = mappings();
            pages = test_resident_pages();
        }
    }
    assert_int_equal(open_files(), files);
    assert_int_equal(mappings(), maps);
    if (!test_has_address_sanitizer())
        assert_true(test_resident_pages() < pages + 300);
    ph_sandbox_destroy(sandboxes[0]);
    ph_sandbox_destroy(sandboxes[1]);
    ph_snapshot_close(snapshot);
}

static void one_greedy_call_does_not_tax_later_restores(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = test_started("snapshot", &small);
    ph_snapshot *snapshot = take(sandbox);
    uint64_t usual, after;

    count(sandbox);
    restore(sandbox, snapshot);
    test_status(sandbox, ph_sandbox_pages(sandbox, &usual), PH_OK);
    called(sandbox, "greedy", ARGS(U32(1800)));
    restore(sandbox, snapshot);
    test_status(sandbox, ph_sandbox_pages(sandbox, &after), PH_OK);
    assert_true(after < usual + 1100);
    count(sandbox);
    restore(sandbox, snapshot);
    test_status(sandbox, ph_sandbox_pages(sandbox, &after), PH_OK);
    assert_true(after < usual + 100);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(snapshot);
}

static void sandboxes_of_a_snapshot_share_its_pages(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox *first = test_started("snapshot", &small);
    change(first, 3);
    ph_snapshot *snapshot = take(first);
    ph_sandbox *second = create_from(snapshot, NULL);
    uint64_t mine, shared;

    count(second);
    test_status(first, ph_sandbox_pages(first, &mine), PH_OK);
    test_status(second, ph_sandbox_pages(second, &shared), PH_OK);
    assert_true(shared < mine / 2);
    assert_true(ph_snapshot_size(snapshot) / 4096 <= mine);
    ph_sandbox_destroy(second);
    ph_sandbox_destroy(first);
    ph_snapshot_close(snapshot);
}

/* Refused with (words) in the message, and the sandbox goes on. */
static void refused(ph_sandbox *sandbox, ph_snapshot *snapshot, const char *words) {
    uint32_t before = count(sandbox);

    assert_int_equal(ph_sandbox_restore(sandbox, snapshot), PH_E_SNAPSHOT);
    assert_non_null(strstr(ph_sandbox_error(sandbox)->message, words));
    assert_int_equal(count(sandbox), before + 1);
}

static void what_does_not_fit_is_refused_by_name(void **state) {
    (void)state;
    test_needs_kvm();
    ph_config other = small;
    ph_sandbox *sandbox = test_started("snapshot", &small);
    ph_snapshot *snapshot = take(sandbox);
    ph_sandbox *musl = test_started("snapshot-musl", &small);
    refused(musl, snapshot, "image");
    other.memory += 2ull << 20;
    ph_sandbox *larger = test_sandbox(sandbox->image, &other);
    test_status(larger, ph_sandbox_start(larger), PH_OK);
    refused(larger, snapshot, "layout");

    ph_sandbox *made = NULL;
    ph_error error;
    assert_int_equal(ph_sandbox_create_from(snapshot, &other, &made, &error), PH_E_SNAPSHOT);
    assert_non_null(strstr(error.message, "layout"));
    assert_null(made);

    const struct ph__features *had = sandbox->vcpu->features;
    struct ph__features less = *had;
    less.words[PH__FEATURES_1_ECX] &= ~1u;
    sandbox->vcpu->features = &less;
    refused(sandbox, snapshot, "the snapshot needs SSE3, which the ");
    sandbox->vcpu->features = had;
    restore(sandbox, snapshot);

    ph_snapshot *none = NULL;
    ph_sandbox *fresh = test_sandbox(sandbox->image, &small);
    test_status(fresh, ph_snapshot_take(fresh, &none), PH_E_STATE);
    assert_null(none);
    assert_int_equal(ph_snapshot_take(NULL, &none), PH_E_ARGUMENT);
    assert_int_equal(ph_sandbox_restore(sandbox, NULL), PH_E_ARGUMENT);
    ph_snapshot_close(NULL);
    ph_sandbox_destroy(fresh);
    ph_sandbox_destroy(musl);
    ph_sandbox_destroy(larger);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(snapshot);
}

static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)call;
    result->i32 = args[0].i32 + *(int *)context;
    return PH_OK;
}

static void host_functions_are_registered_before_the_first_call(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");
    const ph_function *import = NULL;
    for (size_t i = 0; i < ph_image_import_count(image); i++)
        if (strcmp(ph_image_import(image, i)->name, "visit") == 0)
            import = ph_image_import(image, i);
    assert_non_null(import);
    int one = 1, ten = 10;
    ph_value result;

    ph_sandbox *first = test_sandbox(image, NULL);
    assert_int_equal(ph_sandbox_register(first, "visit", &import->signature, visit, &one), PH_OK);
    test_status(first, ph_sandbox_start(first), PH_OK);
    ph_snapshot *snapshot = take(first);
    ph_sandbox *second = create_from(snapshot, NULL);
    test_status(second, test_call(second, image, "visit_once", ARGS(I32(5)), &result), PH_E_UNREGISTERED);
    assert_non_null(strstr(ph_sandbox_error(second)->message, "visit"));
    assert_int_equal(ph_sandbox_register(second, "visit", &import->signature, visit, &ten), PH_OK);
    test_status(second, test_call(second, image, "visit_once", ARGS(I32(5)), &result), PH_OK);
    assert_int_equal(result.i32, 15);
    assert_int_equal(ph_sandbox_register(second, "visit", &import->signature, visit, &one), PH_E_STATE);
    restore(first, snapshot);
    test_status(first, test_call(first, image, "visit_once", ARGS(I32(5)), &result), PH_OK);
    assert_int_equal(result.i32, 6);
    ph_sandbox_destroy(first);
    ph_sandbox_destroy(second);
    ph_snapshot_close(snapshot);
    ph_image_close(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restore_undoes_writes_to_every_page),
        cmocka_unit_test(a_call_is_told_how_many_pages_were_copied_back_for_it),
        cmocka_unit_test(a_sandbox_made_of_a_snapshot_begins_there),
        cmocka_unit_test(snapshots_chain_in_any_order_and_across_sandboxes),
        cmocka_unit_test(pages_given_back_are_zero_on_a_snapshot),
        cmocka_unit_test(restore_puts_protections_back),
        cmocka_unit_test(many_protections_are_put_back),
        cmocka_unit_test(restored_guests_get_other_random_numbers),
        cmocka_unit_test(hooks_run_once_before_the_first_call),
        cmocka_unit_test(time_goes_on_and_input_goes_back),
        cmocka_unit_test(thousands_of_restores_leak_nothing),
        cmocka_unit_test(one_greedy_call_does_not_tax_later_restores),
        cmocka_unit_test(sandboxes_of_a_snapshot_share_its_pages),
        cmocka_unit_test(what_does_not_fit_is_refused_by_name),
        cmocka_unit_test(host_functions_are_registered_before_the_first_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
