/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Snapshots in files: what comes out of a file goes on where the snapshot was taken, in both modes; nothing
 * that a guest does reaches the file; and a file that is not for this image, this library or this machine is
 * refused by name.
 */
#include "snapshot_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/control.h"
#include "base/sha256.h"

static const char *const guests[] = {"snapshot", "snapshot-musl"};
static const ph_snapshot_mode modes[] = {PH_SNAPSHOT_MAP, PH_SNAPSHOT_COPY};

static void a_sandbox_of_a_file_begins_where_the_snapshot_was_taken(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t g = 0; g < 2; g++) {
        ph_image *image = test_image(guests[g]);
        snapshot_file_make(image, "file", 5);
        for (size_t m = 0; m < 2; m++) {
            ph_snapshot *snapshot = snapshot_load(image, "file", modes[m]);
            ph_sandbox *first = sandbox_from(snapshot, NULL);
            ph_sandbox *second = sandbox_from(snapshot, NULL);
            assert_int_equal(counted(first), 6);
            assert_int_equal(counted(first), 7);
            assert_int_equal(counted(second), 6);
            called(second, "change", ARGS(U32(9)));
            for (int turn = 0; turn < 6; turn++) {
                test_status(second, ph_sandbox_restore(second, snapshot), PH_OK);
                assert_int_equal(counted(second), 6);
                called(second, "change", ARGS(U32(9)));
            }
            ph_sandbox_destroy(first);
            ph_snapshot_close(snapshot);
            assert_true(called(second, "recycle", ARGS(U32(100))).boolean);
            ph_sandbox_destroy(second);
        }
        ph_image_close(image);
    }
}

/* A sandbox that was never there when the file was made, and another one that was started. */
static void any_sandbox_of_the_image_can_be_restored_to_a_file(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    snapshot_file_make(image, "file", 3);
    for (size_t m = 0; m < 2; m++) {
        ph_snapshot *snapshot = snapshot_load(image, "file", modes[m]);
        for (int started = 0; started < 2; started++) {
            ph_sandbox *sandbox = test_sandbox(image, &small_config);
            ph_snapshot *own = NULL;
            if (started) {
                test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
                called(sandbox, "change", ARGS(U32(100)));
                test_status(sandbox, ph_snapshot_take(sandbox, &own), PH_OK);
            }
            for (int turn = 0; turn < 6; turn++) {
                test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
                assert_int_equal(counted(sandbox), 4);
                called(sandbox, "change", ARGS(U32(1)));
                if (own && turn % 2) {
                    test_status(sandbox, ph_sandbox_restore(sandbox, own), PH_OK);
                    assert_int_equal(counted(sandbox), 101);
                }
            }
            ph_snapshot_close(own);
            ph_sandbox_destroy(sandbox);
        }
        ph_snapshot_close(snapshot);
    }
    ph_image_close(image);
}

/* The image is opened again too, as another process does. */
static void a_snapshot_of_a_file_can_be_saved_again_and_built_on(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    snapshot_file_make(image, "file", 1);
    ph_image_close(image);
    image = test_image("snapshot-musl");
    for (size_t m = 0; m < 2; m++) {
        ph_error error;
        size_t size, again_size;
        ph_snapshot *snapshot = snapshot_load(image, "file", modes[m]);
        assert_int_equal(ph_snapshot_save(snapshot, in_folder("again"), &error), PH_OK);
        uint8_t *bytes = file_take(in_folder("file"), &size);
        uint8_t *again = file_take(in_folder("again"), &again_size);
        assert_int_equal(size, again_size);
        struct ph__snapshot_head head = file_head(bytes), again_head = file_head(again);
        assert_memory_equal(head.data_digest, again_head.data_digest, sizeof head.data_digest);
        again_head.saved_ns = head.saved_ns;
        file_seal(again, &again_head);
        assert_memory_equal(bytes, again, size);
        free(bytes);
        free(again);

        /* What is taken on top of it holds what it needs of the file. */
        ph_sandbox *sandbox = sandbox_from(snapshot, NULL);
        ph_snapshot *next = NULL;
        assert_int_equal(counted(sandbox), 2);
        test_status(sandbox, ph_snapshot_take(sandbox, &next), PH_OK);
        ph_sandbox_destroy(sandbox);
        ph_snapshot_close(snapshot);
        assert_int_equal(ph_snapshot_save(next, in_folder("again"), &error), PH_OK);
        ph_snapshot_close(next);
        next = snapshot_load(image, "again", modes[m]);
        sandbox = sandbox_from(next, NULL);
        assert_int_equal(counted(sandbox), 3);
        ph_sandbox_destroy(sandbox);
        ph_snapshot_close(next);
    }
    ph_image_close(image);
}

static void a_file_can_be_replaced_while_its_snapshot_is_in_use(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    snapshot_file_make(image, "file", 1);
    ph_snapshot *snapshot = snapshot_load(image, "file", PH_SNAPSHOT_MAP);
    ph_sandbox *sandbox = sandbox_from(snapshot, NULL);

    snapshot_file_make(image, "file", 10);
    assert_int_equal(ph_snapshot_save(snapshot, in_folder("other"), NULL), PH_OK);
    assert_int_equal(counted(sandbox), 2);
    test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
    assert_int_equal(counted(sandbox), 2);
    assert_int_equal(ph_snapshot_verify(snapshot, NULL), PH_OK);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(snapshot);
    ph_image_close(image);
}

static void nothing_that_a_guest_writes_reaches_the_file(void **state) {
    size_t size, after_size;

    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    snapshot_file_make(image, "file", 1);
    uint8_t *before = file_take(in_folder("file"), &size);
    ph_snapshot *snapshot = snapshot_load(image, "file", PH_SNAPSHOT_MAP);
    ph_sandbox *sandbox = sandbox_from(snapshot, NULL);

    for (uint32_t turn = 1; turn < 4; turn++) {
        called(sandbox, "change", ARGS(U32(turn)));
        called(sandbox, "hold", ARGS(U32(200)));
        test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
    }
    called(sandbox, "change", ARGS(U32(1)));
    ph_sandbox_destroy(sandbox);
    assert_int_equal(ph_snapshot_verify(snapshot, NULL), PH_OK);
    ph_snapshot_close(snapshot);
    uint8_t *after = file_take(in_folder("file"), &after_size);
    assert_int_equal(size, after_size);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
    ph_image_close(image);
}

/* Pages that a guest gives back are zero for it, also where the file lies below. What a restore then drops,
 * since it is far more than is usual, is the file's again. */
static void pages_that_a_guest_gave_back_are_the_files_again(void **state) {
    const uint32_t pages = 1800;

    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    ph_sandbox *maker = test_sandbox(image, &small_config);
    ph_snapshot *snapshot = NULL;
    ph_error error;
    test_status(maker, ph_sandbox_start(maker), PH_OK);
    const uint64_t held = called(maker, "hold", ARGS(U32(pages))).u64;
    test_status(maker, ph_snapshot_take(maker, &snapshot), PH_OK);
    assert_int_equal(ph_snapshot_save(snapshot, in_folder("held"), &error), PH_OK);
    ph_snapshot_close(snapshot);
    ph_sandbox_destroy(maker);
    for (size_t m = 0; m < 2; m++) {
        snapshot = snapshot_load(image, "held", modes[m]);
        ph_sandbox *sandbox = sandbox_from(snapshot, NULL);
        for (int turn = 0; turn < 3; turn++) {
            called(sandbox, "let_go", ARGS(U32(pages)));
            assert_true(called(sandbox, "recycle", ARGS(U32(pages))).boolean);
            test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
            for (uint32_t i = 0; i < pages; i++)
                assert_int_equal(called(sandbox, "load", ARGS(U64(held + i * 4096ull))).u32, 'h');
        }
        ph_sandbox_destroy(sandbox);
        ph_snapshot_close(snapshot);
    }
    ph_image_close(image);
}

static void protections_and_traces_go_on(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    for (size_t m = 0; m < 2; m++) {
        struct trace_collect collect;
        trace_collect_init(&collect);
        ph_tracer *tracer = trace_collect_tracer(&collect, NULL);
        ph_config config = small_config;
        config.tracer = tracer;
        ph_sandbox *sandbox = test_sandbox(image, &config);
        ph_snapshot *snapshot = NULL;
        test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
        uint64_t page = called(sandbox, "keep_read_only", NO_ARGS).u64;
        test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
        assert_int_equal(ph_snapshot_save(snapshot, in_folder("file"), NULL), PH_OK);
        ph_snapshot_close(snapshot);
        ph_sandbox_destroy(sandbox);

        snapshot = snapshot_load(image, "file", modes[m]);
        config = (ph_config)PH_CONFIG_INIT;
        config.tracer = tracer;
        sandbox = sandbox_from(snapshot, &config);
        assert_int_equal(called(sandbox, "load", ARGS(U64(page))).u32, 'r');
        ph_value result;
        test_status(sandbox, test_call(sandbox, image, "store", ARGS(U64(page)), &result), PH_E_PAGE_FAULT);
        test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
        assert_int_equal(counted(sandbox), 1);
        ph_snapshot_close(snapshot);
        ph_sandbox_destroy(sandbox);
        ph_tracer_destroy(tracer);
        assert_true(trace_spans_named(&collect, "call count") >= 1);
        trace_collect_check(&collect);
        trace_collect_free(&collect);
    }
    ph_image_close(image);
}

/* The files themselves are the config's, each time. */
static void a_guest_with_files_gets_them_again_from_its_config(void **state) {
    const ph_file mapped = {.guest_path = "/data", .bytes = {"some bytes", 10}};
    ph_snapshot_info info = PH_SNAPSHOT_INFO_INIT;
    ph_snapshot *snapshot = NULL;
    ph_error error;

    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    ph_config config = small_config;
    config.files = &mapped;
    config.file_count = 1;
    ph_sandbox *sandbox = test_sandbox(image, &config);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
    assert_int_equal(ph_snapshot_save(snapshot, in_folder("file"), &error), PH_OK);
    ph_snapshot_close(snapshot);
    ph_sandbox_destroy(sandbox);
    assert_int_equal(ph_snapshot_examine(in_folder("file"), true, &info, &error), PH_OK);
    assert_int_equal(info.files, 2 * PH__LARGE_PAGE_SIZE); /* a table, and the file */
    for (size_t m = 0; m < 2; m++) {
        snapshot = snapshot_load(image, "file", modes[m]);
        sandbox = sandbox_from(snapshot, &config);
        assert_int_equal(counted(sandbox), 1);
        ph_sandbox_destroy(sandbox);
        assert_int_equal(ph_sandbox_create_from(snapshot, NULL, &sandbox, &error), PH_E_SNAPSHOT);
        assert_non_null(strstr(error.message, "other files"));
        ph_snapshot_close(snapshot);
    }
    ph_image_close(image);
}

/* What the guest has open is a place among its files: in another order it would be another file. */
static void a_guest_with_other_files_in_their_place_is_refused(void **state) {
    ph_file files[] = {
        {.guest_path = "/data", .bytes = {"some bytes", 10}},
        {.guest_path = "/more", .bytes = {"more bytes", 10}},
    };
    const ph_file first = files[0];
    ph_snapshot *snapshot = NULL;
    ph_error error;

    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    ph_config config = small_config;
    config.files = files;
    config.file_count = 2;
    ph_sandbox *sandbox = test_sandbox(image, &config);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
    assert_int_equal(ph_snapshot_save(snapshot, in_folder("file"), &error), PH_OK);
    ph_sandbox_destroy(sandbox);
    files[0] = files[1];
    files[1] = first;
    for (size_t m = 0; m < 3; m++) {
        if (m > 0)
            snapshot = snapshot_load(image, "file", modes[m - 1]);
        assert_int_equal(ph_sandbox_create_from(snapshot, &config, &sandbox, &error), PH_E_SNAPSHOT);
        assert_non_null(strstr(error.message, "other files"));
        sandbox = test_sandbox(image, &config);
        test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_E_SNAPSHOT);
        ph_sandbox_destroy(sandbox);
        ph_snapshot_close(snapshot);
    }
    ph_image_close(image);
}

static void what_does_not_fit_is_refused_by_name(void **state) {
    size_t size;

    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    ph_image *other = test_image("snapshot");
    snapshot_file_make(image, "file", 1);
    uint8_t *bytes = file_take(in_folder("file"), &size);
    const struct ph__snapshot_head sound = file_head(bytes);

    assert_load_refused(other, "file", "of another image (");
#define REFUSED(field, value, why)                                                                           \
    do {                                                                                                     \
        struct ph__snapshot_head head = sound;                                                               \
        head.field = (value);                                                                                \
        file_seal(bytes, &head);                                                                             \
        file_put(in_folder("patched"), bytes, size);                                                         \
        assert_load_refused(image, "patched", why);                                                          \
    } while (0)
    REFUSED(abi, PH__ABI_VERSION + 1, "of the interface between host and guest");
    REFUSED(format, 1, "of version 1 of the format");
    REFUSED(page_size, 65536, "pages of 65536 bytes");
    REFUSED(monitor[0], (uint8_t)(sound.monitor[0] ^ 1), "another build of this library");
    REFUSED(image.bytes[0], (uint8_t)(sound.image.bytes[0] ^ 1), "of another image (snapshot-musl");
    REFUSED(request.image_gva, sound.request.image_gva + 0x200000, "another layout");
    REFUSED(processor.regs.rip, 1ull << 63, "RIP");
#undef REFUSED
    file_seal(bytes, &sound);
    file_put(in_folder("patched"), bytes, size);
    ph_snapshot *snapshot = snapshot_load(image, "patched", PH_SNAPSHOT_COPY);

    /* And as in memory: another layout is refused where a sandbox is made or restored. */
    ph_sandbox *sandbox = NULL;
    ph_error error;
    ph_config config = PH_CONFIG_INIT;
    config.memory = 16ull << 20;
    assert_int_equal(ph_sandbox_create_from(snapshot, &config, &sandbox, &error), PH_E_SNAPSHOT);
    assert_non_null(strstr(error.message, "another layout"));
    ph_snapshot_close(snapshot);
    free(bytes);
    ph_image_close(other);
    ph_image_close(image);
}

/* A file with the head (head), which anybody can write, is loaded, and then refused where a processor is
 * there to be compared: a new sandbox's, and that of (sandbox), which stays as it is. */
static void assert_processor_refused(ph_sandbox *sandbox, struct ph__snapshot_head head, uint8_t *bytes,
                                     size_t size, const char *why) {
    ph_sandbox *made = NULL;
    ph_error error;

    file_seal(bytes, &head);
    file_put(in_folder("patched"), bytes, size);
    ph_snapshot *snapshot = snapshot_load(sandbox->image, "patched", PH_SNAPSHOT_MAP);
    assert_int_equal(ph_sandbox_create_from(snapshot, NULL, &made, &error), PH_E_SNAPSHOT);
    assert_null(made);
    assert_non_null(strstr(error.message, why));
    test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_E_SNAPSHOT);
    assert_non_null(strstr(ph_sandbox_error(sandbox)->message, why));
    ph_snapshot_close(snapshot);
}

static void what_the_processor_lacks_is_refused_by_name(void **state) {
    size_t size;

    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    snapshot_file_make(image, "file", 1);
    ph_snapshot *snapshot = snapshot_load(image, "file", PH_SNAPSHOT_COPY);
    ph_sandbox *sandbox = sandbox_from(snapshot, NULL);
    uint8_t *bytes = file_take(in_folder("file"), &size);
    const struct ph__snapshot_head sound = file_head(bytes);
    struct ph__snapshot_head head = sound;

    const struct ph__features *features = sandbox->vcpu->features;
    assert_memory_equal(sound.features.words, features->words, sizeof features->words);
    assert_int_equal(sound.features.xcr0, features->xcr0);
    head.features.words[PH__FEATURES_7_1_EAX] |= 1u << 13;
    assert_processor_refused(sandbox, head, bytes, size, "the snapshot needs CPUID.7.1:EAX[13], which the ");
    head = sound;
    head.features.xcr0 = 0x20003;
    assert_processor_refused(sandbox, head, bytes, size, "vector state as XCR0 0x20003 has it");
    /* It says that it needs nothing, and has vector state that no guest has. */
    head = sound;
    head.features = (struct ph__features){0};
    head.processor.xsave[512] |= 4;
    const uint64_t xcr0 = sandbox->vcpu->xcr0;
    if (!(xcr0 & 4))
        assert_processor_refused(sandbox, head, bytes, size, "vector state that guests do not have here");
    /* Needing less is fine. */
    head = sound;
    head.features = (struct ph__features){0};
    file_seal(bytes, &head);
    file_put(in_folder("patched"), bytes, size);
    ph_snapshot *less = snapshot_load(image, "patched", PH_SNAPSHOT_MAP);
    test_status(sandbox, ph_sandbox_restore(sandbox, less), PH_OK);
    ph_snapshot_close(less);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(snapshot);
    free(bytes);
    ph_image_close(image);
}

static void what_is_no_file_of_a_snapshot_is_refused(void **state) {
    ph_snapshot *snapshot = NULL;
    ph_error error;

    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    file_put(in_folder("empty"), NULL, 0);
    assert_load_refused(image, "empty", "no file of a snapshot");
    file_put(in_folder("text"), (const uint8_t *)"some text", 9);
    assert_load_refused(image, "text", "no file of a snapshot");
    assert_int_equal(ph_snapshot_load(image, test_guest_path("snapshot"), 0, &snapshot, &error),
                     PH_E_SNAPSHOT);
    assert_int_equal(ph_snapshot_load(image, in_folder("none"), 0, &snapshot, &error), PH_E_FILE);
    assert_int_equal(error.system_error, ENOENT);
    assert_int_equal(ph_snapshot_load(image, in_folder("."), 0, &snapshot, &error), PH_E_FILE);
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(ph_snapshot_load(image, in_folder("pipe"), 0, &snapshot, &error), PH_E_FILE);
    assert_non_null(strstr(error.message, "regular file"));
    assert_int_equal(ph_snapshot_load(image, in_folder("none"), 2, &snapshot, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_snapshot_load(NULL, in_folder("none"), 0, &snapshot, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_snapshot_load(image, NULL, 0, &snapshot, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_snapshot_load(image, in_folder("none"), 0, NULL, NULL), PH_E_ARGUMENT);
    assert_null(snapshot);
    ph_image_close(image);
}

static void a_file_is_replaced_as_a_whole_or_not_at_all(void **state) {
    ph_error error;
    struct stat information;

    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    ph_sandbox *sandbox = test_sandbox(image, &small_config);
    ph_snapshot *snapshot = NULL;
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
    const size_t count = folder_count();
    mode_t mask = umask(027);
    assert_int_equal(ph_snapshot_save(snapshot, in_folder("saved"), &error), PH_OK);
    umask(mask);
    assert_int_equal(folder_count(), count + 1);
    assert_int_equal(stat(in_folder("saved"), &information), 0);
    assert_int_equal(information.st_mode & 07777, 0640);
    /* Pages of zeroes, and what is between the parts, take no room. */
    assert_true((uint64_t)information.st_blocks * 512 <= (uint64_t)information.st_size);
    assert_int_equal(ph_snapshot_save(snapshot, in_folder("saved"), &error), PH_OK);
    assert_int_equal(folder_count(), count + 1);

    assert_int_equal(ph_snapshot_save(snapshot, in_folder("none/saved"), &error), PH_E_FILE);
    assert_int_equal(error.system_error, ENOENT);
    assert_int_equal(ph_snapshot_save(snapshot, in_folder("."), &error), PH_E_FILE);
    assert_int_equal(ph_snapshot_save(snapshot, in_folder("pipe"), &error), PH_E_FILE);
    assert_non_null(strstr(error.message, "not a regular file"));
    /* Nor is a link replaced, wherever it leads. */
    assert_int_equal(symlink("saved", in_folder("link")), 0);
    assert_int_equal(ph_snapshot_save(snapshot, in_folder("link"), &error), PH_E_FILE);
    assert_int_equal(unlink(in_folder("link")), 0);
    assert_int_equal(symlink("none", in_folder("link")), 0);
    assert_int_equal(ph_snapshot_save(snapshot, in_folder("link"), &error), PH_E_FILE);
    assert_int_equal(unlink(in_folder("link")), 0);
    assert_int_equal(ph_snapshot_save(snapshot, "", &error), PH_E_ARGUMENT);
    assert_int_equal(ph_snapshot_save(snapshot, NULL, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_snapshot_save(NULL, in_folder("saved"), &error), PH_E_ARGUMENT);
    assert_int_equal(folder_count(), count + 1);
    assert_int_equal(ph_snapshot_verify(snapshot, &error), PH_OK);
    ph_snapshot_close(snapshot);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void a_file_tells_what_is_in_it(void **state) {
    ph_snapshot_info info = PH_SNAPSHOT_INFO_INIT;
    ph_error error;

    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    snapshot_file_make(image, "file", 1);
    assert_int_equal(ph_snapshot_examine(in_folder("file"), true, &info, &error), PH_OK);
    assert_int_equal(info.size, sizeof info);
    assert_int_equal(info.format, 2);
    assert_int_equal(info.abi, PH__ABI_VERSION);
    assert_true(strstr(info.image_name, "snapshot-musl") != NULL);
    assert_int_equal(info.memory, small_config.memory);
    assert_true(info.stack > 0 && info.max_message > 0);
    assert_int_equal(info.trace_ring, 0);
    assert_int_equal(info.files, 0);
    assert_int_equal(info.page_size, 4096);
    assert_true(info.pages > 10 && info.file_size > info.pages * 4096);
    assert_true(info.saved_ns > 1500000000000000000);
    assert_true(info.image_id_size >= 8);
    assert_non_null(strstr(info.features, "SSE3"));
    assert_int_equal(info.xcr0 & ~0x2e7ull, 0);
    /* A smaller struct, of an older header, is filled as far as it goes. */
    ph_snapshot_info part;
    memset(&part, 0x55, sizeof part);
    part.size = offsetof(ph_snapshot_info, image_id);
    assert_int_equal(ph_snapshot_examine(in_folder("file"), false, &part, &error), PH_OK);
    assert_int_equal(part.abi, PH__ABI_VERSION);
    assert_int_equal(part.image_id[0], 0x55);
    part.size = sizeof part + 1;
    assert_int_equal(ph_snapshot_examine(in_folder("file"), false, &part, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_snapshot_examine(in_folder("none"), false, &info, &error), PH_E_FILE);
    ph_image_close(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sandbox_of_a_file_begins_where_the_snapshot_was_taken),
        cmocka_unit_test(any_sandbox_of_the_image_can_be_restored_to_a_file),
        cmocka_unit_test(a_snapshot_of_a_file_can_be_saved_again_and_built_on),
        cmocka_unit_test(a_file_can_be_replaced_while_its_snapshot_is_in_use),
        cmocka_unit_test(nothing_that_a_guest_writes_reaches_the_file),
        cmocka_unit_test(pages_that_a_guest_gave_back_are_the_files_again),
        cmocka_unit_test(protections_and_traces_go_on),
        cmocka_unit_test(a_guest_with_files_gets_them_again_from_its_config),
        cmocka_unit_test(a_guest_with_other_files_in_their_place_is_refused),
        cmocka_unit_test(what_does_not_fit_is_refused_by_name),
        cmocka_unit_test(what_the_processor_lacks_is_refused_by_name),
        cmocka_unit_test(what_is_no_file_of_a_snapshot_is_refused),
        cmocka_unit_test(a_file_is_replaced_as_a_whole_or_not_at_all),
        cmocka_unit_test(a_file_tells_what_is_in_it),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
