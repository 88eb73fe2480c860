/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Opening an image takes its content into a memfd that nothing can change, with every byte where the ELF file
 * wants it and no page more than needed; says clearly why a file cannot be read or loaded; and leaves nothing
 * behind when any call on the way fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi/layout.h"
#include "sandbox/image.h"
#include "support/elf_program.h"
#include "support/failing.h"
#include "support/guarded.h"

static struct guarded memory;
static struct program program;
static ph_image *image;
static ph_error error;
static char folder[] = "/tmp/pinhole-test-image-XXXXXX";
static char path[8192];

static int start_with_a_sound_program(void **state) {
    (void)state;
    failing = (struct failing){0};
    program_init(&program);
    ph_image_close(image);
    image = NULL;
    memset(&error, 0, sizeof error);
    return 0;
}

static int close_the_image(void **state) {
    (void)state;
    ph_image_close(image);
    image = NULL;
    if (path[0])
        unlink(path);
    path[0] = 0;
    return 0;
}

static void assert_opened(void) {
    ph_image_close(image);
    if (ph_image_open_bytes(guarded_copy(&memory, program.bytes, program.size), program.size, "program", 0,
                            &image, &error) != PH_OK)
        fail_msg("refused: %s", error.message);
    assert_non_null(image);
}

/* The image is refused with PH_E_IMAGE, and the message says (why) behind the name. */
static void assert_refused(const char *why) {
    ph_image_close(image);
    assert_int_equal(ph_image_open_bytes(program.bytes, program.size, "program", 0, &image, &error),
                     PH_E_IMAGE);
    assert_null(image);
    assert_int_equal(error.status, PH_E_IMAGE);
    if (strncmp(error.message, "program: ", 9) != 0 || !strstr(error.message, why))
        fail_msg("refused with '%s' and not with '%s'", error.message, why);
}

/* Puts the program into a file, whose path is then (path). */
static void write_file(size_t size) {
    int fd;

    snprintf(path, sizeof path, "%s/file", folder);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, program.bytes, size), size);
    close(fd);
}

static void assert_file_refused(ph_status status, const char *why) {
    unsigned descriptors = failing_descriptors();

    assert_int_equal(ph_image_open(path, 0, &image, &error), status);
    assert_null(image);
    assert_int_equal(error.status, status);
    if (!strstr(error.message, why))
        fail_msg("refused with '%s' and not with '%s'", error.message, why);
    assert_int_equal(failing_descriptors(), descriptors);
}

/* What a guest would find at (gva): extents first, then zeros. -1 outside every range. */
static int byte_at(uint64_t gva) {
    uint8_t byte = 0;

    for (uint32_t i = 0; i < image->extent_count; i++) {
        const struct ph__image_extent *extent = &image->extents[i];
        if (gva >= extent->gva && gva - extent->gva < extent->size) {
            assert_int_equal(
                pread(image->content, &byte, 1, (off_t)(extent->file_offset + (gva - extent->gva))), 1);
            return byte;
        }
    }
    for (uint32_t i = 0; i < image->range_count; i++)
        if (gva >= image->ranges[i].gva && gva - image->ranges[i].gva < image->ranges[i].size)
            return 0;
    return -1;
}

static void an_image_says_what_the_file_says(void **state) {
    (void)state;
    assert_opened();
    assert_string_equal(image->name, "program");
    assert_int_equal(image->gva, 0x400000);
    assert_int_equal(image->size, 0x7000);
    assert_int_equal(image->entry, PROGRAM_ENTRY);
    assert_int_equal(image->headers_gva, 0x400040);
    assert_int_equal(image->header_count, PROGRAM_SPARE + 1);

    assert_int_equal(image->range_count, 4);
    assert_int_equal(image->ranges[PROGRAM_CODE].gva, 0x401000);
    assert_int_equal(image->ranges[PROGRAM_CODE].size, 0x1000);
    assert_true(image->ranges[PROGRAM_CODE].executable && !image->ranges[PROGRAM_CODE].writable);
    assert_int_equal(image->ranges[PROGRAM_DATA].gva, 0x403000);
    assert_int_equal(image->ranges[PROGRAM_DATA].size, 0x4000);
    assert_true(image->ranges[PROGRAM_DATA].writable && !image->ranges[PROGRAM_DATA].executable);
}

static void every_byte_is_where_the_file_wants_it(void **state) {
    (void)state;
    program_add_note(&program);
    assert_opened();
    for (unsigned i = PROGRAM_HEADERS; i <= PROGRAM_DATA; i++) {
        const Elf64_Phdr *segment = program_segment(&program, i);
        for (uint64_t offset = 0; offset < segment->p_memsz; offset++) {
            int expected = offset < segment->p_filesz ? program.bytes[segment->p_offset + offset] : 0;
            assert_int_equal(byte_at(segment->p_vaddr + offset), expected);
        }
    }
}

static void what_the_file_holds_around_a_segment_stays_out(void **state) {
    (void)state;
    memset(program.bytes + 0x3000, 0xee, 0x1000);
    memset(program.bytes + PROGRAM_CODE_OFFSET + PROGRAM_CODE_SIZE, 0xee, 0x100);
    assert_opened();
    for (uint64_t gva = 0x403000; gva < 0x403000 + PROGRAM_DATA_OFFSET % 0x1000; gva++)
        assert_int_equal(byte_at(gva), 0);
    for (uint64_t gva = 0x403000 + (PROGRAM_DATA_OFFSET + PROGRAM_DATA_SIZE) % 0x1000; gva < 0x404000; gva++)
        assert_int_equal(byte_at(gva), 0);
    assert_int_equal(byte_at(0x401000 + PROGRAM_CODE_SIZE), 0);
}

static void content_is_packed_into_whole_pages(void **state) {
    uint64_t position = 0;
    struct stat information;

    (void)state;
    program_add_note(&program);
    assert_opened();
    for (uint32_t i = 0; i < image->extent_count; i++) {
        assert_int_equal(image->extents[i].gva % PH__PAGE_SIZE, 0);
        assert_int_equal(image->extents[i].size % PH__PAGE_SIZE, 0);
        assert_int_equal(image->extents[i].file_offset, position);
        position += image->extents[i].size;
    }
    assert_int_equal(fstat(image->content, &information), 0);
    assert_int_equal(information.st_size, position);
    assert_int_equal(position, 4 * PH__PAGE_SIZE);
    /* No hole: each page of it is there already. */
    assert_int_equal(information.st_blocks * 512, position);
}

static void pages_of_zeros_take_no_memory(void **state) {
    (void)state;
    /* Of six pages, only the third and fourth have something in them. */
    program_set_segment(&program, PROGRAM_SPARE, PT_LOAD, PF_R | PF_W, PROGRAM_BLANK_OFFSET,
                        PROGRAM_BLANK_SIZE, PROGRAM_BLANK_SIZE);
    program_segment(&program, PROGRAM_SPARE)->p_vaddr = 0x500000;
    program.bytes[PROGRAM_BLANK_OFFSET + 0x2000] = 5;
    program.bytes[PROGRAM_BLANK_OFFSET + 0x2fff] = 1;
    program.bytes[PROGRAM_BLANK_OFFSET + 0x3000] = 2;
    assert_opened();
    const struct ph__image_extent *extent = &image->extents[image->extent_count - 1];
    assert_int_equal(extent->gva, 0x502000);
    assert_int_equal(extent->size, 0x2000);
    assert_int_equal(byte_at(0x502fff), 1);
    assert_int_equal(byte_at(0x503000), 2);
    assert_int_equal(byte_at(0x502000), 5);
    assert_int_equal(byte_at(0x500000), 0);
    assert_int_equal(byte_at(0x505fff), 0);

    /* The first and the last byte of what is in the file count. */
    program.bytes[PROGRAM_BLANK_OFFSET] = 3;
    program.bytes[PROGRAM_BLANK_OFFSET + PROGRAM_BLANK_SIZE - 1] = 4;
    assert_opened();
    extent = &image->extents[image->extent_count - 1];
    assert_int_equal(extent->gva, 0x500000);
    assert_int_equal(extent->size, PROGRAM_BLANK_SIZE);
    assert_int_equal(byte_at(0x500000), 3);
    assert_int_equal(byte_at(0x505fff), 4);
}

static void a_segment_of_zeros_has_no_extent(void **state) {
    uint32_t before;

    (void)state;
    assert_opened();
    before = image->extent_count;
    program_set_segment(&program, PROGRAM_SPARE, PT_LOAD, PF_R | PF_W, PROGRAM_BLANK_OFFSET + 8, 0x1001,
                        0x9000);
    program_segment(&program, PROGRAM_SPARE)->p_vaddr = 0x500008;
    assert_opened();
    assert_int_equal(image->extent_count, before);
    assert_int_equal(image->ranges[4].gva, 0x500000);
    assert_int_equal(image->ranges[4].size, 0xa000);
    assert_int_equal(byte_at(0x500000), 0);
    assert_int_equal(byte_at(0x509fff), 0);
    assert_int_equal(byte_at(0x50a000), -1);
}

static void the_content_can_never_change(void **state) {
    int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

    (void)state;
    assert_opened();
    assert_int_equal(fcntl(image->content, F_GET_SEALS) & seals, seals);
    assert_int_equal(pwrite(image->content, "x", 1, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(image->content, 0), -1);
    assert_int_equal(ftruncate(image->content, 1 << 20), -1);
    assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, image->content, 0), MAP_FAILED);
    assert_true(fcntl(image->content, F_GETFD) & FD_CLOEXEC);
    /* But a sandbox can have its own copy. */
    void *copy = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, image->content, 0);
    assert_ptr_not_equal(copy, MAP_FAILED);
    munmap(copy, 4096);
}

static void kernels_without_the_exec_seal_do_too(void **state) {
    (void)state;
    failing.no_exec_seal = true;
    assert_opened();
    assert_int_equal(byte_at(0x401000), 0x90);
}

static void static_pie_is_moved_by_its_bias(void **state) {
    uint64_t offset;

    (void)state;
    program_make_pie(&program);
    program_add_note(&program);
    program_add_function(&program, 1, "greet", PH_STR, NULL, 0);
    assert_opened();
    assert_int_equal(image->gva, 0x400000);
    assert_int_equal(image->entry, PROGRAM_ENTRY);
    assert_int_equal(byte_at(0x401000), 0x90);
    assert_string_equal(ph__image_symbol(image, PROGRAM_ENTRY, &offset), "_start");
    assert_non_null(ph_image_find_export(image, "greet"));
}

static void writable_and_executable_needs_its_flag(void **state) {
    (void)state;
    program_segment(&program, PROGRAM_DATA)->p_flags |= PF_X;
    assert_refused("PH_IMAGE_ALLOW_WX");
    assert_int_equal(
        ph_image_open_bytes(program.bytes, program.size, "program", PH_IMAGE_ALLOW_WX, &image, &error),
        PH_OK);
    assert_true(image->ranges[PROGRAM_DATA].writable && image->ranges[PROGRAM_DATA].executable);
    assert_int_equal(image->flags, PH_IMAGE_ALLOW_WX);
}

static void arguments_that_make_no_sense_are_refused(void **state) {
    ph_image *none = (ph_image *)&program;

    (void)state;
    assert_int_equal(ph_image_open(NULL, 0, &none, &error), PH_E_ARGUMENT);
    assert_null(none);
    assert_int_equal(ph_image_open("x", 0, NULL, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_image_open_bytes(NULL, 1, "x", 0, &none, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_image_open_bytes("x", 1, NULL, 0, &none, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_image_open_bytes("x", 1, "x", 0, NULL, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_image_open_bytes("x", 1, "x", 0x80000000, &none, &error), PH_E_ARGUMENT);
    assert_non_null(strstr(error.message, "0x80000000"));
    /* No bytes are an empty file. */
    assert_int_equal(ph_image_open_bytes(NULL, 0, "x", 0, &none, &error), PH_E_IMAGE);
    assert_non_null(strstr(error.message, "empty"));
    /* Nobody needs to want the error, and nothing needs to be closed. */
    assert_int_equal(ph_image_open_bytes("x", 1, "x", 0, &none, NULL), PH_E_IMAGE);
    assert_int_equal(ph_image_open("/", 0, &none, NULL), PH_E_FILE);
    ph_image_close(NULL);
}

static void bytes_beyond_a_gibibyte_are_refused(void **state) {
    (void)state;
    /* Never read, so they need not be there. */
    assert_int_equal(ph_image_open_bytes(program.bytes, (1ull << 30) + 1, "program", 0, &image, &error),
                     PH_E_IMAGE);
    assert_non_null(strstr(error.message, "larger than 1 GiB"));
}

static void an_image_lives_as_long_as_somebody_holds_it(void **state) {
    unsigned descriptors = failing_descriptors();

    (void)state;
    assert_opened();
    assert_int_equal(failing_descriptors(), descriptors + 1);
    ph__image_retain(image);
    ph__image_retain(image);
    ph_image_close(image);
    ph_image_close(image);
    assert_int_equal(byte_at(0x401000), 0x90);
    ph_image_close(image);
    image = NULL;
    assert_int_equal(failing_descriptors(), descriptors);
}

static void a_file_is_opened_as_its_bytes_are(void **state) {
    unsigned descriptors;

    (void)state;
    write_file(program.size);
    descriptors = failing_descriptors();
    assert_int_equal(ph_image_open(path, 0, &image, &error), PH_OK);
    assert_string_equal(image->name, path);
    /* All that stays open is the content. */
    assert_int_equal(failing_descriptors(), descriptors + 1);
    /* The file may go away. */
    unlink(path);
    assert_int_equal(byte_at(0x401000), 0x90);
}

static void a_file_read_in_pieces_is_the_same(void **state) {
    (void)state;
    write_file(program.size);
    failing.short_transfers = true;
    failing.interrupted_transfers = true;
    assert_int_equal(ph_image_open(path, 0, &image, &error), PH_OK);
    failing = (struct failing){0};
    for (unsigned i = PROGRAM_HEADERS; i <= PROGRAM_DATA; i++) {
        const Elf64_Phdr *segment = program_segment(&program, i);
        for (uint64_t offset = 0; offset < segment->p_filesz; offset++)
            assert_int_equal(byte_at(segment->p_vaddr + offset), program.bytes[segment->p_offset + offset]);
    }
}

static void a_file_that_shrinks_while_it_is_read_is_a_shorter_file(void **state) {
    (void)state;
    write_file(program.size);
    failing.file_grows_by = 1 << 20;
    assert_int_equal(ph_image_open(path, 0, &image, &error), PH_OK);
    ph_image_close(image);
    write_file(0x2000);
    assert_file_refused(PH_E_IMAGE, "it is cut off or damaged");
}

static struct ph__image_identity identify(void) {
    struct ph__image_identity identity;

    memset(&identity, 0xff, sizeof identity);
    assert_opened();
    assert_int_equal(ph__image_identify(image, &identity, &error), PH_OK);
    return identity;
}

static bool is_same(const struct ph__image_identity *a, const struct ph__image_identity *b) {
    return a->is_build_id == b->is_build_id && a->size == b->size &&
           memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static void an_image_is_told_by_its_build_id(void **state) {
    const Elf64_Nhdr note = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID};
    uint8_t *bytes = program.bytes + PROGRAM_BLANK_OFFSET;

    (void)state;
    memcpy(bytes, &note, sizeof note);
    memcpy(bytes + sizeof note, "GNU", 4);
    memset(bytes + sizeof note + 4, 0xb1, 20);
    program_set_segment(&program, PROGRAM_SPARE, PT_NOTE, PF_R, PROGRAM_BLANK_OFFSET, 36, 36);
    struct ph__image_identity identity = identify();
    assert_true(identity.is_build_id);
    assert_int_equal(identity.size, 20);
    for (size_t i = 0; i < sizeof identity.bytes; i++)
        assert_int_equal(identity.bytes[i], i < 20 ? 0xb1 : 0);
}

static void an_image_without_a_build_id_is_told_by_what_is_loaded(void **state) {
    (void)state;
    const struct ph__image_identity before = identify();
    assert_false(before.is_build_id);
    assert_int_equal(before.size, 32);

    /* What is not loaded does not count. */
    program.bytes[PROGRAM_BLANK_OFFSET]++;
    struct ph__image_identity after = identify();
    assert_true(is_same(&before, &after));

    program.bytes[PROGRAM_DATA_OFFSET + 5]++;
    after = identify();
    assert_false(is_same(&before, &after));
    program.bytes[PROGRAM_DATA_OFFSET + 5]--;
    /* The same bytes, with another protection and at another size. */
    program_segment(&program, PROGRAM_RODATA)->p_flags |= PF_W;
    after = identify();
    assert_false(is_same(&before, &after));
    program_segment(&program, PROGRAM_RODATA)->p_flags &= ~(unsigned)PF_W;
    program_segment(&program, PROGRAM_DATA)->p_memsz += 0x2000;
    after = identify();
    assert_false(is_same(&before, &after));
}

static void a_path_that_is_no_file_is_refused(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s/nothing", folder);
    assert_file_refused(PH_E_FILE, "nothing: No such file or directory");
    assert_int_equal(error.system_error, ENOENT);

    snprintf(path, sizeof path, "%s", folder);
    assert_file_refused(PH_E_FILE, "this is a directory, not a file");

    /* A pipe without a writer holds nobody up. */
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_file_refused(PH_E_FILE, "this is a pipe, not a file");
    unlink(path);

    snprintf(path, sizeof path, "/dev/null");
    assert_file_refused(PH_E_FILE, "this is a device, not a file");
    path[0] = 0;
}

static void an_empty_file_is_refused(void **state) {
    (void)state;
    write_file(0);
    assert_file_refused(PH_E_IMAGE, "the file is empty");
}

static void a_file_beyond_a_gibibyte_is_refused(void **state) {
    (void)state;
    write_file(program.size);
    assert_int_equal(truncate(path, (1 << 30) + 1), 0);
    assert_file_refused(PH_E_FILE, "larger than 1 GiB");
}

static void a_long_path_leaves_room_for_the_reason(void **state) {
    char longer[4000];
    size_t length;

    (void)state;
    write_file(0x2000);
    length = (size_t)snprintf(longer, sizeof longer, "%s/", folder);
    while (length + 16 < sizeof longer)
        length += (size_t)snprintf(longer + length, sizeof longer - length, "./");
    snprintf(longer + length, sizeof longer - length, "file");
    assert_int_equal(ph_image_open(longer, 0, &image, &error), PH_E_IMAGE);
    assert_non_null(strstr(error.message, "/file: segment 2 is not all inside the file"));
    assert_int_equal(strncmp(error.message, "...", 3), 0);

    /* Cut where a character starts. */
    for (size_t i = 0; i + 2 < 1000; i += 2)
        memcpy(longer + i, "\xc3\xa9", 3);
    for (size_t cut = 0; cut < 2; cut++) {
        assert_int_equal(ph_image_open_bytes("x", 1, longer + cut * 2, 0, &image, &error), PH_E_IMAGE);
        assert_null(strchr(error.message, '?'));
        longer[998] = 'x';
        longer[999] = 0;
    }
}

/* Opens the image again and again, with the 1st call failing, then the 2nd, until none fails. (closes_fail):
 * and every close beside it. */
static void fail_each_call(bool from_file, bool closes_fail) {
    unsigned descriptors = failing_descriptors();

    for (unsigned at = 1;; at++) {
        failing = (struct failing){.at = at, .closes_fail = closes_fail};
        ph_status status =
            from_file ? ph_image_open(path, 0, &image, &error)
                      : ph_image_open_bytes(program.bytes, program.size, "program", 0, &image, &error);
        const char *failed = failing.failed;
        failing = (struct failing){0};
        if (!failed) {
            assert_int_equal(status, PH_OK);
            assert_true(at > 8);
            return;
        }
        if (strcmp(failed, "close") == 0) {
            /* All was read by then. */
            assert_int_equal(status, PH_OK);
            ph_image_close(image);
            image = NULL;
            assert_int_equal(failing_descriptors(), descriptors);
            continue;
        }
        assert_null(image);
        assert_int_equal(error.status, status);
        assert_true(error.message[0] != 0);
        if (strcmp(failed, "malloc") == 0 || strcmp(failed, "calloc") == 0 || strcmp(failed, "strdup") == 0)
            assert_int_equal(status, PH_E_MEMORY);
        else if (strcmp(failed, "open") == 0 || strcmp(failed, "fstat") == 0 || strcmp(failed, "read") == 0)
            assert_int_equal(status, PH_E_FILE);
        else
            assert_int_equal(status, PH_E_SYSTEM);
        assert_true(status == PH_E_MEMORY || error.system_error != 0);
        assert_int_equal(failing_descriptors(), descriptors);
    }
}

static void every_failing_call_leaves_nothing_behind(void **state) {
    (void)state;
    program_add_note(&program);
    program_add_function(&program, 1, "greet", PH_STR, NULL, 0);
    program_add_function(&program, 0, "weekday", PH_STR, NULL, 0);
    fail_each_call(false, false);
    close_the_image(NULL);
    write_file(program.size);
    fail_each_call(true, false);
    close_the_image(NULL);
    write_file(program.size);
    fail_each_call(true, true);
    const char *const names[] = {"calloc",       "close", "fcntl",  "fstat", "ftruncate", "malloc",
                                 "memfd_create", "open",  "pwrite", "read",  "strdup"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!failing_has_failed(names[i]))
            fail_msg("%s was never reached", names[i]);
}

static const uint8_t greet_args[] = {PH_STR};
static const uint8_t all_args[] = {PH_I32,  PH_U32, PH_I64,   PH_U64, PH_F32, PH_F64,
                                   PH_BOOL, PH_STR, PH_BYTES, PH_I32, PH_U32, PH_I64};

static void a_program_without_the_guest_library_has_no_functions(void **state) {
    (void)state;
    assert_opened();
    assert_false(image->has_tables);
    assert_int_equal(ph_image_export_count(image), 0);
    assert_int_equal(ph_image_import_count(image), 0);
    assert_null(ph_image_export(image, 0));
    assert_null(ph_image_import(image, 0));
    assert_null(ph_image_find_export(image, "greet"));
    program_add_note(&program);
    assert_opened();
    assert_true(image->has_tables);
    assert_int_equal(ph_image_export_count(image), 0);
    assert_int_equal(ph_image_import_count(image), 0);
    assert_null(ph_image_find_export(image, ""));
}

static void exports_are_listed_in_the_order_of_the_table(void **state) {
    const ph_function *function;

    (void)state;
    program_add_note(&program);
    program_add_function(&program, 1, "greet", PH_STR, greet_args, 1);
    program_add_function(&program, 1, "all", PH_VOID, all_args, 12);
    program_add_function(&program, 1, "a", PH_BYTES, NULL, 0);
    assert_opened();
    assert_int_equal(ph_image_export_count(image), 3);
    assert_null(ph_image_export(image, 3));
    assert_null(ph_image_export(image, SIZE_MAX));

    function = ph_image_export(image, 0);
    assert_string_equal(function->name, "greet");
    assert_int_equal(function->index, 0);
    assert_int_equal(function->signature.result, PH_STR);
    assert_int_equal(function->signature.count, 1);
    assert_int_equal(function->signature.args[0], PH_STR);
    function = ph_image_export(image, 1);
    assert_string_equal(function->name, "all");
    assert_int_equal(function->index, 1);
    assert_int_equal(function->signature.result, PH_VOID);
    assert_int_equal(function->signature.count, 12);
    for (size_t i = 0; i < 12; i++)
        assert_int_equal(function->signature.args[i], all_args[i]);
    function = ph_image_export(image, 2);
    assert_string_equal(function->name, "a");
    assert_int_equal(function->signature.result, PH_BYTES);
    assert_int_equal(function->signature.count, 0);

    assert_ptr_equal(ph_image_find_export(image, "all"), ph_image_export(image, 1));
    assert_null(ph_image_find_export(image, "al"));
    assert_null(ph_image_find_export(image, "alll"));
}

static void an_import_counts_once_however_often_it_is_named(void **state) {
    static const uint32_t expected[] = {0, 1, 0, 2, 1};

    (void)state;
    program_add_note(&program);
    program_add_function(&program, 1, "weekday", PH_VOID, NULL, 0); /* an export may be named so too */
    program_add_function(&program, 0, "weekday", PH_STR, greet_args, 1);
    program_add_function(&program, 0, "log", PH_VOID, all_args, 2);
    program_add_function(&program, 0, "weekday", PH_STR, greet_args, 1);
    program_add_function(&program, 0, "clock", PH_F64, NULL, 0);
    program_add_function(&program, 0, "log", PH_VOID, all_args, 2);
    assert_opened();
    assert_int_equal(ph_image_export_count(image), 1);
    assert_int_equal(ph_image_import_count(image), 3);
    assert_string_equal(ph_image_import(image, 0)->name, "weekday");
    assert_string_equal(ph_image_import(image, 1)->name, "log");
    assert_string_equal(ph_image_import(image, 2)->name, "clock");
    assert_int_equal(ph_image_import(image, 2)->index, 2);
    assert_int_equal(ph_image_import(image, 1)->signature.count, 2);
    assert_null(ph_image_import(image, 3));
    assert_int_equal(image->import_entry_count, 5);
    assert_memory_equal(image->import_of_entry, expected, sizeof expected);
}

static void functions_with_one_name_are_refused(void **state) {
    (void)state;
    program_add_note(&program);
    program_add_function(&program, 1, "greet", PH_STR, greet_args, 1);
    program_add_function(&program, 1, "other", PH_STR, greet_args, 1);
    program_add_function(&program, 1, "greet", PH_STR, greet_args, 1);
    assert_refused("two functions are exported as 'greet'");

    /* A name that starts with another is another name, and hides nothing. */
    program_init(&program);
    program_add_note(&program);
    program_add_function(&program, 1, "log", PH_VOID, NULL, 0);
    program_add_function(&program, 1, "logs", PH_VOID, NULL, 0);
    assert_opened();
    program_add_function(&program, 1, "log", PH_VOID, NULL, 0);
    assert_refused("two functions are exported as 'log'");

    program_init(&program);
    program_add_note(&program);
    program_add_function(&program, 0, "log", PH_VOID, all_args, 2);
    program_add_function(&program, 0, "log", PH_VOID, all_args, 3);
    assert_refused("'log' is imported with two different signatures");
    program_entry(&program, 1)->count = 2;
    program_entry(&program, 1)->args[2] = 0;
    assert_opened();
    program_entry(&program, 1)->args[1] = PH_BYTES;
    assert_refused("'log' is imported with two different signatures");
    program_entry(&program, 1)->args[1] = all_args[1];
    program_entry(&program, 1)->result = PH_I32;
    assert_refused("'log' is imported with two different signatures");
}

static void a_guest_library_of_another_version_must_be_rebuilt(void **state) {
    (void)state;
    program_add_note(&program);
    program_note(&program)->abi_version = PH__ABI_VERSION + 1;
    assert_refused("rebuild the guest with this version's libpinhole-guest");
    /* Its note may be of another size, or not even have room for a version. */
    program_note_header(&program)->n_descsz = 8;
    assert_refused("rebuild the guest");
    program_note_header(&program)->n_descsz = 0;
    assert_refused("rebuild the guest");
    program_note(&program)->abi_version = PH__ABI_VERSION;
    assert_refused("rebuild the guest");
    program_note_header(&program)->n_descsz = 8;
    assert_refused("the note of the guest library is damaged");
    program_note_header(&program)->n_descsz = 4;
    assert_refused("the note of the guest library is damaged");
}

static void tables_must_be_whole_and_in_the_file(void **state) {
    struct ph__note *note = program_note(&program);

    (void)state;
    program_add_note(&program);
    program_set_distance(&program, &note->exports_end, PROGRAM_TABLES_OFFSET + 23);
    assert_refused("the table of exports is damaged: it has no whole number of entries");
    program_set_distance(&program, &note->exports_end, PROGRAM_TABLES_OFFSET - 24);
    assert_refused("the table of exports is damaged: it has no whole number of entries");
    /* Many, but nothing that the file has. */
    program_set_distance(&program, &note->exports_end, PROGRAM_TABLES_OFFSET + 24 * 65536);
    assert_refused("the table of exports is damaged: it is not inside a segment");
    program_set_distance(&program, &note->exports_end, PROGRAM_TABLES_OFFSET + 24 * 65537);
    assert_refused("there are 65537 exports, more than the 65536 that are possible");

    start_with_a_sound_program(NULL);
    program_add_note(&program);
    program_set_distance(&program, &note->imports_end, PROGRAM_TABLES_OFFSET + 24 * 65537);
    assert_refused("there are 65537 imports");
    /* In memory, but not in the file. */
    program_set_distance(&program, &note->imports_start, PROGRAM_DATA_OFFSET + PROGRAM_DATA_SIZE);
    program_set_distance(&program, &note->imports_end, PROGRAM_DATA_OFFSET + PROGRAM_DATA_SIZE + 24);
    assert_refused("the table of imports is damaged: it is not inside a segment");
    note->imports_start = INT32_MIN;
    note->imports_end = INT32_MIN + 20;
    assert_refused("the table of imports is damaged: it is not inside a segment");
}

/* An export whose name is the (size) bytes at (name) and a NUL. */
static void add_named(const char *name, size_t size) {
    start_with_a_sound_program(NULL);
    program_add_note(&program);
    program_add_function(&program, 1, "", PH_VOID, NULL, 0);
    memcpy(program.bytes + PROGRAM_NAMES_OFFSET, name, size);
    program.bytes[PROGRAM_NAMES_OFFSET + size] = 0;
}

static void a_name_is_printable_text_of_up_to_255_bytes(void **state) {
    char name[300];

    (void)state;
    add_named("gr\xc3\xbc\xc3\x9f", 6);
    assert_opened();
    assert_non_null(ph_image_find_export(image, "gr\xc3\xbc\xc3\x9f"));
    add_named("space::operator()<T>", 20);
    assert_opened();

    memset(name, 'n', sizeof name);
    add_named(name, 255);
    assert_opened();
    assert_int_equal(strlen(ph_image_export(image, 0)->name), 255);
    add_named(name, 256);
    assert_refused("export 0 has no usable name");
    add_named("", 0);
    assert_refused("export 0 has no usable name");
    add_named("two words", 9);
    assert_refused("export 0 has no usable name");
    add_named("line\n", 5);
    assert_refused("export 0 has no usable name");
    add_named("\x1b[31m", 5);
    assert_refused("export 0 has no usable name");
    add_named("\xff", 1);
    assert_refused("export 0 has no usable name");
}

static void a_name_ends_inside_its_segment(void **state) {
    struct ph__function_entry *entry;

    (void)state;
    add_named("", 0);
    entry = program_entry(&program, 0);
    /* The last byte of a segment is not NUL, and the bytes behind it in the file do not count. */
    memset(program.bytes + PROGRAM_DATA_OFFSET, 'd', PROGRAM_DATA_SIZE);
    program_set_distance(&program, &entry->name, PROGRAM_DATA_OFFSET + PROGRAM_DATA_SIZE - 4);
    assert_refused("export 0 has no usable name");
    program.bytes[PROGRAM_DATA_OFFSET + PROGRAM_DATA_SIZE - 1] = 0;
    assert_opened();
    assert_string_equal(ph_image_export(image, 0)->name, "ddd");
    /* Nor is there a name in bss, or nowhere. */
    program_set_distance(&program, &entry->name, PROGRAM_DATA_OFFSET + PROGRAM_DATA_SIZE);
    assert_refused("export 0 has no usable name");
    entry->name = INT32_MIN;
    assert_refused("export 0 has no usable name");
    entry->name = INT32_MAX;
    assert_refused("export 0 has no usable name");
}

static void types_and_counts_are_those_that_there_are(void **state) {
    struct ph__function_entry *entry = program_entry(&program, 0);

    (void)state;
#define DAMAGED(damage)                                                                                      \
    do {                                                                                                     \
        start_with_a_sound_program(NULL);                                                                    \
        program_add_note(&program);                                                                          \
        program_add_function(&program, 1, "greet", PH_STR, greet_args, 1);                                   \
        damage;                                                                                              \
        assert_refused("export 'greet' is damaged: its signature has unknown types");                        \
    } while (0)
    DAMAGED(entry->result = PH_BYTES + 1);
    DAMAGED(entry->result = UINT8_MAX);
    DAMAGED(entry->args[0] = PH_VOID);
    DAMAGED(entry->args[0] = PH_BYTES + 1);
    DAMAGED(entry->args[1] = PH_I32);
    DAMAGED(entry->args[11] = PH_I32);
    DAMAGED(entry->count = 0);
    DAMAGED(entry->count = 2);
    DAMAGED((memset(entry->args, PH_I32, 12), entry->count = 13));
    DAMAGED((memset(entry->args, PH_I32, 12), entry->count = UINT8_MAX));
    DAMAGED(entry->reserved = 1);
#undef DAMAGED
}

static void an_export_leads_to_code_and_an_import_nowhere(void **state) {
    struct ph__function_entry *entry = program_entry(&program, 0);

    (void)state;
    program_add_note(&program);
    program_add_function(&program, 1, "greet", PH_STR, greet_args, 1);
    program_set_distance(&program, &entry->thunk, PROGRAM_DATA_OFFSET);
    assert_refused("export 'greet' is damaged: it does not lead to code");
    program_set_distance(&program, &entry->thunk, PROGRAM_CODE_OFFSET + PROGRAM_CODE_SIZE);
    assert_refused("export 'greet' is damaged: it does not lead to code");
    entry->thunk = 0;
    assert_refused("export 'greet' is damaged: it does not lead to code");
    program_set_distance(&program, &entry->thunk, PROGRAM_CODE_OFFSET);
    assert_opened();

    program_init(&program);
    program_add_note(&program);
    program_add_function(&program, 0, "weekday", PH_STR, greet_args, 1);
    program_set_distance(&program, &entry->thunk, PROGRAM_CODE_OFFSET);
    assert_refused("import 'weekday' is damaged");
}

static void assert_symbol(uint64_t gva, const char *name, uint64_t offset) {
    uint64_t found = UINT64_MAX;
    const char *symbol = ph__image_symbol(image, gva, &found);

    if (!name) {
        assert_null(symbol);
        return;
    }
    if (!symbol)
        fail_msg("0x%llx has no name, and should be in %s", (unsigned long long)gva, name);
    assert_string_equal(symbol, name);
    assert_int_equal(found, offset);
}

static void an_address_has_the_name_of_the_function_around_it(void **state) {
    (void)state;
    program_add_symbol(&program, "late", 0x401100, 0x20);
    program_add_symbol(&program, "early", 0x401040, 0x20);
    assert_opened();
    assert_symbol(PROGRAM_ENTRY - 1, NULL, 0);
    assert_symbol(PROGRAM_ENTRY, "_start", 0);
    assert_symbol(PROGRAM_ENTRY + 0xf, "_start", 0xf);
    assert_symbol(PROGRAM_ENTRY + 0x10, NULL, 0);
    assert_symbol(0x401040, "early", 0);
    assert_symbol(0x40105f, "early", 0x1f);
    assert_symbol(0x401060, NULL, 0);
    assert_symbol(0x40111f, "late", 0x1f);
    assert_symbol(0x401120, NULL, 0);
    assert_symbol(0, NULL, 0);
    assert_symbol(UINT64_MAX, NULL, 0);
}

static void a_function_without_a_size_reaches_to_the_next(void **state) {
    (void)state;
    program_add_symbol(&program, "first", 0x401040, 0);
    program_add_symbol(&program, "second", 0x401060, 0);
    assert_opened();
    assert_symbol(0x40105f, "first", 0x1f);
    assert_int_equal(image->symbols[1].size, 0x20);
    assert_symbol(0x401060, "second", 0);
    /* And the last one to the end of the code. */
    assert_symbol(0x4011ff, "second", 0x19f);
    assert_symbol(0x401200, NULL, 0);
}

static void of_several_names_the_plain_one_is_taken(void **state) {
    (void)state;
    program_add_symbol(&program, "__libc_write", 0x401040, 0x20);
    program_add_symbol(&program, "write", 0x401040, 0x20);
    program_add_symbol(&program, "__write", 0x401040, 0x20);
    program_add_symbol(&program, "label", 0x401080, 0);
    program_add_symbol(&program, "whole", 0x401080, 0x20);
    /* In any order. */
    program_add_symbol(&program, "read", 0x4010c0, 0x20);
    program_add_symbol(&program, "_read", 0x4010c0, 0x20);
    program_add_symbol(&program, "body", 0x401100, 0x20);
    program_add_symbol(&program, "start", 0x401100, 0);
    /* Of equals, the one whose name comes first in the file. */
    program_add_symbol(&program, "zero", 0x401140, 8);
    program_add_symbol(&program, "one", 0x401140, 8);
    assert_opened();
    assert_symbol(0x401050, "write", 0x10);
    assert_symbol(0x401090, "whole", 0x10);
    assert_symbol(0x4010c8, "read", 8);
    assert_symbol(0x401110, "body", 0x10);
    assert_symbol(0x401140, "zero", 0);
    assert_int_equal(image->symbol_count, 6);
}

static void symbols_that_are_no_functions_are_left_out(void **state) {
    (void)state;
    program_add_symbol(&program, "object", 0x401040, 8)->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    program_add_symbol(&program, "undefined", 0x401040, 8)->st_shndx = SHN_UNDEF;
    program_add_symbol(&program, "elsewhere", 0x10, 8);
    program_add_symbol(&program, "data", PROGRAM_BASE + PROGRAM_DATA_OFFSET, 8);
    program_add_symbol(&program, "", 0x401040, 8);
    program_add_symbol(&program, "far", 0x401040, 8)->st_name = PROGRAM_STRINGS_SIZE;
    program_add_symbol(&program, "farther", 0x401040, 8)->st_name = UINT32_MAX;
    assert_opened();
    assert_int_equal(image->symbol_count, 1);
    assert_symbol(0x401040, NULL, 0);
}

static void symbol_names_are_printable_and_bounded(void **state) {
    char name[3000];
    uint64_t offset;

    (void)state;
    program_add_symbol(&program, "evil\x1b[2J ~\n", 0x401040, 8);
    program_add_symbol(&program, "gr\xc3\xbc\xc3\x9f", 0x401050, 8);
    program_add_symbol(&program, "x\xe2\x80\xaey", 0x401060, 8);
    /* Starting inside a character: not a name. */
    program_add_symbol(&program, "\xc3\xbc", 0x401070, 8)->st_name++;
    /* A name inside a name, as linkers make them, behind a bad one. */
    program_add_symbol(&program, "\x01tail", 0x401080, 8)->st_name++;
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    program_add_symbol(&program, name, 0x401090, 8);
    assert_opened();
    assert_symbol(0x401040, "evil?[2J ~?", 0);
    assert_symbol(0x401050, "gr\xc3\xbc\xc3\x9f", 0);
    assert_symbol(0x401060, "x???y", 0);
    assert_symbol(0x401070, NULL, 0);
    assert_symbol(0x401080, "tail", 0);
    assert_int_equal(strlen(ph__image_symbol(image, 0x401090, &offset)), 1023);
}

static void symbols_may_end_with_the_file(void **state) {
    (void)state;
    memcpy(program.bytes + PROGRAM_SIZE - 2 * sizeof(Elf64_Sym), program_symbol(&program, 0),
           2 * sizeof(Elf64_Sym));
    program_section(&program, 1)->sh_offset = PROGRAM_SIZE - 2 * sizeof(Elf64_Sym);
    assert_opened();
    assert_symbol(PROGRAM_ENTRY, "_start", 0);
}

static void strings_that_do_not_end_are_harmless(void **state) {
    (void)state;
    /* The last ones of the file. */
    program_section(&program, 2)->sh_offset = PROGRAM_SIZE - 100;
    program_section(&program, 2)->sh_size = 100;
    memset(program.bytes + PROGRAM_SIZE - 100, 'z', 100);
    program_symbol(&program, 1)->st_name = 100 - 4;
    assert_opened();
    assert_non_null(image->symbol_names);
    assert_int_equal(image->symbol_count, 1);
    assert_symbol(PROGRAM_ENTRY, "zzzz", 0);
}

static void open_program(const char *name) {
    const char *programs = getenv("PH_TEST_PROGRAMS");
    char program_path[4096];

    if (!programs)
        skip();
    ph_image_close(image);
    snprintf(program_path, sizeof program_path, "%s/%s", programs, name);
    if (ph_image_open(program_path, 0, &image, &error) != PH_OK)
        fail_msg("%s", error.message);
}

static bool has_symbol(const char *name) {
    for (size_t i = 0; i < image->symbol_count; i++)
        if (strcmp(image->symbol_names + image->symbols[i].name, name) == 0)
            return true;
    return false;
}

static void real_programs_have_their_functions_names(void **state) {
    static const char *const programs[] = {"static", "static-pie", "static-musl", "static-dense"};
    uint64_t offset;

    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        open_program(programs[i]);
        assert_true(has_symbol("main"));
        assert_true(has_symbol("program_function"));
        for (size_t j = 0; j < image->symbol_count; j++) {
            const struct ph__symbol *symbol = &image->symbols[j];
            assert_true(j == 0 || symbol[-1].address < symbol->address);
            assert_ptr_equal(ph__image_symbol(image, symbol->address, &offset),
                             image->symbol_names + symbol->name);
            assert_int_equal(offset, 0);
        }
    }
}

static void real_tables_are_read(void **state) {
    static const char *const programs[] = {"tables", "tables-pie"};

    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        open_program(programs[i]);
        assert_int_equal(ph_image_export_count(image), 2);
        assert_string_equal(ph_image_export(image, 0)->name, "greet");
        assert_int_equal(ph_image_export(image, 1)->signature.count, 12);
        assert_int_equal(ph_image_import_count(image), 2);
        assert_string_equal(ph_image_import(image, 1)->name, "log");
        assert_int_equal(image->import_entry_count, 3);
    }
}

static int make_folder(void **state) {
    (void)state;
    guarded_init(&memory, PROGRAM_SIZE);
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    guarded_free(&memory);
    return rmdir(folder);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start_with_a_sound_program, close_the_image)
    const struct CMUnitTest tests[] = {
        TEST(an_image_says_what_the_file_says),
        TEST(every_byte_is_where_the_file_wants_it),
        TEST(what_the_file_holds_around_a_segment_stays_out),
        TEST(content_is_packed_into_whole_pages),
        TEST(pages_of_zeros_take_no_memory),
        TEST(a_segment_of_zeros_has_no_extent),
        TEST(the_content_can_never_change),
        TEST(kernels_without_the_exec_seal_do_too),
        TEST(static_pie_is_moved_by_its_bias),
        TEST(writable_and_executable_needs_its_flag),
        TEST(arguments_that_make_no_sense_are_refused),
        TEST(bytes_beyond_a_gibibyte_are_refused),
        TEST(an_image_lives_as_long_as_somebody_holds_it),
        TEST(a_file_is_opened_as_its_bytes_are),
        TEST(a_file_read_in_pieces_is_the_same),
        TEST(a_file_that_shrinks_while_it_is_read_is_a_shorter_file),
        TEST(an_image_is_told_by_its_build_id),
        TEST(an_image_without_a_build_id_is_told_by_what_is_loaded),
        TEST(a_path_that_is_no_file_is_refused),
        TEST(an_empty_file_is_refused),
        TEST(a_file_beyond_a_gibibyte_is_refused),
        TEST(a_long_path_leaves_room_for_the_reason),
        TEST(every_failing_call_leaves_nothing_behind),
        TEST(a_program_without_the_guest_library_has_no_functions),
        TEST(exports_are_listed_in_the_order_of_the_table),
        TEST(an_import_counts_once_however_often_it_is_named),
        TEST(functions_with_one_name_are_refused),
        TEST(a_guest_library_of_another_version_must_be_rebuilt),
        TEST(tables_must_be_whole_and_in_the_file),
        TEST(a_name_is_printable_text_of_up_to_255_bytes),
        TEST(a_name_ends_inside_its_segment),
        TEST(types_and_counts_are_those_that_there_are),
        TEST(an_export_leads_to_code_and_an_import_nowhere),
        TEST(an_address_has_the_name_of_the_function_around_it),
        TEST(a_function_without_a_size_reaches_to_the_next),
        TEST(of_several_names_the_plain_one_is_taken),
        TEST(symbols_that_are_no_functions_are_left_out),
        TEST(symbol_names_are_printable_and_bounded),
        TEST(symbols_may_end_with_the_file),
        TEST(strings_that_do_not_end_are_harmless),
        TEST(real_programs_have_their_functions_names),
        TEST(real_tables_are_read),
    };
    return cmocka_run_group_tests_name("image", tests, make_folder, remove_folder);
}
