/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Files that a guest can read (docs/files.md): the guest mapped_files checks what it sees, and here is what
 * the host sees of that, and what becomes of files that are wrong, large, shared, or cut while they are
 * mapped.
 */
#include "support/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/sandbox.h"

#define DATA_SIZE 12411
static uint8_t data[DATA_SIZE];

static const ph_file files[] = {
    {.guest_path = "/data", .bytes = {data, sizeof data}},
    {.guest_path = "/folder/inner/text", .bytes = {"hello\n", 6}},
    {.guest_path = "/empty"},
};

/* A file of the host that is gone at the end of the test, and its path. */
struct host_file {
    char path[64];
    int file;
};

static struct host_file host_file(off_t size) {
    struct host_file made = {.path = "/tmp/pinhole-test-XXXXXX"};

    made.file = mkostemp(made.path, O_CLOEXEC);
    assert_true(made.file >= 0);
    assert_int_equal(ftruncate(made.file, size), 0);
    return made;
}

static void host_file_remove(struct host_file *made) {
    close(made->file);
    unlink(made->path);
}

/* What a run left behind. */
struct ended {
    ph_status status;
    int exit_status;
    char text[4096];
    ph_error error;
};

/* Runs the guest (name) with (argument). (hook) is called at its first output. */
static struct ended run(const char *name, const char *argument, const ph_config *with, ph_output_fn hook,
                        void *context) {
    const char *const words[] = {argument, NULL};
    ph_config config = *with;
    struct ended ended = {.exit_status = -1};
    ph_image *image = test_image(name);

    config.argv = words;
    config.keep_output = sizeof ended.text - 1;
    config.output = hook;
    config.output_context = context;
    ph_sandbox *sandbox = test_sandbox(image, &config);
    ended.status = ph_sandbox_run(sandbox, &ended.exit_status);
    ended.error = *ph_sandbox_error(sandbox);
    ph_bytes output = ph_sandbox_output(sandbox, 1);
    if (output.size)
        memcpy(ended.text, output.data, output.size);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
    return ended;
}

/* (state) points at the name of the guest. */
static void files_can_be_read_and_not_written(void **state) {
    ph_config config = PH_CONFIG_INIT;

    test_needs_kvm();
    config.files = files;
    config.file_count = 3;
    struct ended ended = run(*state, NULL, &config, NULL, NULL);
    if (ended.status != PH_OK || ended.exit_status != 0)
        fail_msg("%s, %d: %s\n%s", ph_status_kind(ended.status), ended.exit_status, ended.error.message,
                 ended.text);
}

static void a_store_into_a_mapping_is_a_fault_at_its_address(void **state) {
    ph_config config = PH_CONFIG_INIT;
    (void)state;

    test_needs_kvm();
    config.files = files;
    config.file_count = 1;
    struct ended ended = run("mapped_files", "store", &config, NULL, NULL);
    assert_int_equal(ended.status, PH_E_PAGE_FAULT);
    assert_int_equal(ended.error.address, strtoull(ended.text, NULL, 0));
    assert_int_equal(ended.error.vector, 14);
    assert_string_equal(ended.error.function, "store");
    assert_non_null(strstr(ended.error.message, "which belongs to a read-only file"));
}

static int64_t cut(void *context, int stream, const void *bytes, size_t size) {
    const struct host_file *made = context;

    (void)stream;
    (void)bytes;
    assert_int_equal(ftruncate(made->file, 4096), 0);
    return (int64_t)size;
}

static void a_file_that_is_cut_ends_the_call_alone(void **state) {
    static const char *const ways[] = {"read-ends", "touch-ends"};
    (void)state;

    test_needs_kvm();
    test_not_on_soft("a file that becomes shorter is a SIGBUS of the emulator's");
    for (size_t i = 0; i < 2; i++) {
        struct host_file made = host_file(8 << 20);
        const ph_file big = {.guest_path = "/big", .host_path = made.path};
        ph_config config = PH_CONFIG_INIT;
        config.files = &big;
        config.file_count = 1;
        struct ended ended = run("mapped_files", ways[i], &config, cut, &made);
        if (ended.status != PH_E_PAGE_FAULT)
            fail_msg("%s: %s: %s", ways[i], ph_status_kind(ended.status), ended.error.message);
        assert_non_null(strstr(ended.error.message, "behind the end of /big, which has become shorter"));
        /* It is as long as it is from the start for whoever comes then. */
        ended = run("mapped_files", ways[i], &config, NULL, NULL);
        assert_int_equal(ended.status, PH_OK);
        assert_string_equal(ended.text, "first 0\nlast 0 size 4096\n");
        host_file_remove(&made);
    }
}

/* (state) points at its size. */
static void a_large_sparse_file_costs_next_to_nothing(void **state) {
    const off_t size = *(const off_t *)*state;
    char wanted[64];
    struct host_file made = host_file(size);
    const ph_file big = {.guest_path = "/big", .host_path = made.path};
    ph_config config = PH_CONFIG_INIT;
    struct stat status;

    test_needs_kvm();
    snprintf(wanted, sizeof wanted, "first 0\nlast 42 size %lld\n", (long long)size);
    assert_int_equal(pwrite(made.file, "\x2a", 1, size - 1), 1);
    config.files = &big;
    config.file_count = 1;
    struct ended ended = run("mapped_files", "touch-ends", &config, NULL, NULL);
    assert_int_equal(ended.status, PH_OK);
    assert_string_equal(ended.text, wanted);
    assert_int_equal(fstat(made.file, &status), 0);
    assert_true(status.st_blocks * 512 < 4 << 20); /* nothing was filled in */

    /* Page tables and the rest: less than a MiB, where a copy would be a GiB. */
    ph_image *image = test_image("mapped_files");
    ph_sandbox *sandbox = test_sandbox(image, &config);
    uint64_t pages = 0;
    assert_int_equal(ph_sandbox_pages(sandbox, &pages), PH_OK);
    assert_true(pages < 256);
    uint64_t start = test_now_ns();
    ph_sandbox_destroy(test_sandbox(image, &config));
    print_message("making and destroying a sandbox with a file of %llu GiB: %llu us\n",
                  (unsigned long long)size >> 30, (unsigned long long)(test_now_ns() - start) / 1000);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
    host_file_remove(&made);
}

/* Whether (address) of this process is shown by the same page of memory as (other). */
static uint64_t page_frame(const volatile uint8_t *address) {
    uint64_t word = 0;
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    (void)*address; /* present */
    assert_int_equal(pread(file, &word, sizeof word, (off_t)((uintptr_t)address / 4096 * 8)), sizeof word);
    close(file);
    return word & ((1ull << 55) - 1);
}

static void sandboxes_share_the_pages_of_a_file(void **state) {
    struct host_file made = host_file(64 << 10);
    const ph_file shared = {.guest_path = "/big", .host_path = made.path};
    ph_config config = PH_CONFIG_INIT;
    (void)state;

    test_needs_kvm();
    config.files = &shared;
    config.file_count = 1;
    ph_image *image = test_image("mapped_files");
    ph_sandbox *one = test_sandbox(image, &config);
    ph_sandbox *two = test_sandbox(image, &config);
    assert_int_equal(pwrite(made.file, "\x07", 1, (64 << 10) - 1), 1); /* seen by those that are there */
    const struct ph__layout *layout = &one->memory.layout;
    uint64_t first = layout->files.offset + PH__FILE_TABLE_SIZE;
    uint64_t frame = page_frame(one->memory.base + first);
    assert_int_equal(frame, page_frame(two->memory.base + first));
    if (frame == 0)
        print_message("the kernel does not say which pages these are\n");
    uint8_t *host = mmap(NULL, 4096, PROT_READ, MAP_SHARED, made.file, 0);
    assert_int_equal(frame, page_frame(host));
    munmap(host, 4096);
    ph_sandbox_destroy(one);
    ph_sandbox_destroy(two);

    struct ended ended = run("mapped_files", "read-ends", &config, NULL, NULL);
    assert_string_equal(ended.text, "first 0\nlast 7 size 65536\n");
    ph_image_close(image);
    host_file_remove(&made);
}

/* The host must not stumble over a file that is cut: no walk of page tables leads it there. */
static void the_host_never_follows_a_pointer_into_a_file(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct ph__translation at;
    uint8_t byte;
    (void)state;

    test_needs_kvm();
    config.files = files;
    config.file_count = 3;
    ph_image *image = test_image("mapped_files");
    ph_sandbox *sandbox = test_sandbox(image, &config);
    const struct ph__memory *memory = &sandbox->memory;
    const struct ph__region *window = &memory->layout.files;
    assert_int_equal(window->size, 3 * PH__LARGE_PAGE_SIZE);
    for (uint64_t i = 0; i < window->size; i += PH__PAGE_SIZE) {
        assert_false(ph__paging_walk(memory, ph__paging_root(memory), (ph_gva){window->gva + i}, &at));
        assert_false(ph__guest_read(memory, (ph_gva){window->gva + i}, &byte, 1));
        assert_null(ph__memory_at(memory, (ph_gpa){ph__gpa_of_offset(window->offset + i)}, 1));
    }
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void assert_refused(const ph_file *wrong, size_t count, ph_status wanted) {
    ph_config config = PH_CONFIG_INIT;
    ph_sandbox *sandbox = NULL;
    ph_error error;

    config.files = wrong;
    config.file_count = count;
    ph_image *image = test_image("mapped_files");
    ph_status status = ph_sandbox_create(image, &config, &sandbox, &error);
    if (status != wanted)
        fail_msg("%s: %s instead of %s", wrong && wrong->guest_path ? wrong->guest_path : "NULL",
                 ph_status_kind(status), ph_status_kind(wanted));
    assert_null(sandbox);
    assert_true(error.message[0]);
    ph_image_close(image);
}

static unsigned open_descriptors(void) {
    unsigned count = 0;

    for (int i = 0; i < 256; i++)
        count += fcntl(i, F_GETFD) >= 0;
    return count;
}

static void files_that_are_wrong_are_refused(void **state) {
    static const char *const paths[] = {
        NULL,    "",   "/",   "data",    "./data", "/data/", "//data",
        "/a//b", "/.", "/..", "/a/../b", "/a/./b", "/a/..",
    };
    static char path[400];
    ph_file many[PH_FILES_MAX + 1];
    (void)state;

    test_needs_kvm();
    unsigned before = open_descriptors();
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_refused(&(ph_file){.guest_path = paths[i], .bytes = {"x", 1}}, 1, PH_E_ARGUMENT);
    memset(path, 'x', 256);
    path[0] = '/';
    assert_refused(&(ph_file){.guest_path = path, .bytes = {"x", 1}}, 1, PH_E_ARGUMENT);
    assert_refused((ph_file[]){{.guest_path = "/a"}, {.guest_path = "/a"}}, 2, PH_E_ARGUMENT);
    assert_refused((ph_file[]){{.guest_path = "/a/b"}, {.guest_path = "/a"}}, 2, PH_E_ARGUMENT);
    assert_refused((ph_file[]){{.guest_path = "/a"}, {.guest_path = "/a/b"}}, 2, PH_E_ARGUMENT);
    assert_refused(&(ph_file){.guest_path = "/a", .host_path = "/dev/null", .bytes = {"x", 1}}, 1,
                   PH_E_ARGUMENT);
    assert_refused(&(ph_file){.guest_path = "/a", .bytes = {NULL, 1}}, 1, PH_E_ARGUMENT);
    assert_refused(NULL, 1, PH_E_ARGUMENT);
    for (size_t i = 0; i <= PH_FILES_MAX; i++)
        many[i] = files[0];
    assert_refused(many, PH_FILES_MAX + 1, PH_E_ARGUMENT);
    assert_refused(&(ph_file){.guest_path = "/a", .host_path = "/nonexistent"}, 1, PH_E_FILE);
    assert_refused(&(ph_file){.guest_path = "/a", .host_path = "/dev/null"}, 1, PH_E_FILE);
    assert_refused(&(ph_file){.guest_path = "/a", .host_path = "/tmp"}, 1, PH_E_FILE);
    struct host_file made = host_file(300LL << 30);
    assert_refused(&(ph_file){.guest_path = "/a", .host_path = made.path}, 1, PH_E_FILE);
    host_file_remove(&made);
    assert_int_equal(open_descriptors(), before);
}

static void as_many_files_as_there_can_be(void **state) {
    static char paths[PH_FILES_MAX][PH_FILE_PATH_MAX + 1];
    ph_file many[PH_FILES_MAX];
    ph_config config = PH_CONFIG_INIT;
    (void)state;

    test_needs_kvm();
    memcpy(many, files, sizeof files);
    for (size_t i = 3; i < PH_FILES_MAX; i++) {
        memset(paths[i], 'a' + (int)i % 26, PH_FILE_PATH_MAX);
        memcpy(paths[i], i < 20 ? "/1" : "/2", 2);
        many[i] = (ph_file){.guest_path = paths[i], .bytes = {paths[i], sizeof paths[i]}};
    }
    unsigned before = open_descriptors();
    config.files = many;
    config.file_count = PH_FILES_MAX;
    struct ended ended = run("mapped_files", NULL, &config, NULL, NULL);
    if (ended.status != PH_OK || ended.exit_status != 0)
        fail_msg("%s: %s\n%s", ph_status_kind(ended.status), ended.error.message, ended.text);
    assert_int_equal(open_descriptors(), before);
}

int main(void) {
    static const off_t sizes[] = {1LL << 30, 6LL << 30};
    const struct CMUnitTest tests[] = {
        {"files_can_be_read_and_not_written", files_can_be_read_and_not_written, NULL, NULL,
         (void *)(uintptr_t) "mapped_files"},
        {"files_can_be_read_and_not_written_with_musl", files_can_be_read_and_not_written, NULL, NULL,
         (void *)(uintptr_t) "mapped_files-musl"},
        cmocka_unit_test(a_store_into_a_mapping_is_a_fault_at_its_address),
        cmocka_unit_test(a_file_that_is_cut_ends_the_call_alone),
        {"a_file_of_1_gib_costs_next_to_nothing", a_large_sparse_file_costs_next_to_nothing, NULL, NULL,
         (void *)(uintptr_t)&sizes[0]},
        {"a_file_across_the_hole_costs_next_to_nothing", a_large_sparse_file_costs_next_to_nothing, NULL,
         NULL, (void *)(uintptr_t)&sizes[1]},
        cmocka_unit_test(sandboxes_share_the_pages_of_a_file),
        cmocka_unit_test(the_host_never_follows_a_pointer_into_a_file),
        cmocka_unit_test(files_that_are_wrong_are_refused),
        cmocka_unit_test(as_many_files_as_there_can_be),
    };
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7 + (i >> 8));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
