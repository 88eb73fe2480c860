/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Head and tables of a snapshot's file come out as they went in, every single bit of them that flips is
 * found, and whatever a digest vouches for is still held against what a guest can have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "abi/files.h"
#include "support/guarded.h"
#include "support/snapshot_bytes.h"

static struct snapshot_bytes *sample;
static struct guarded memory;
static ph_error error;

static int begin(void **state) {
    (void)state;
    if (!sample) {
        sample = calloc(1, sizeof *sample);
        assert_non_null(sample);
        guarded_init(&memory, SNAPSHOT_BYTES_MAX);
    }
    snapshot_bytes_init(sample);
    return 0;
}

static int end(void **state) {
    (void)state;
    snapshot_bytes_free(sample);
    return 0;
}

static const struct ph__snapshot_wanted anything;

static ph_status check(const struct ph__snapshot_wanted *wanted) {
    memset(&error, 0, sizeof error);
    return snapshot_bytes_check(sample,
                                guarded_copy(&memory, sample->bytes, ph__snapshot_data_offset(&sample->head)),
                                wanted, sample->words, &error);
}

/* What the parts say now is refused, for a reason with (why) in it, though the digest is right. */
static void assert_refused(const char *why) {
    const struct ph__snapshot_wanted wanted = {.image = &sample->image};

    snapshot_bytes_encode(sample);
    assert_int_equal(check(&wanted), PH_E_SNAPSHOT);
    if (!strstr(error.message, why))
        fail_msg("refused with '%s' and not with '%s'", error.message, why);
}

static void what_goes_in_comes_out(void **state) {
    struct ph__snapshot_head head;
    uint8_t again[PH__SNAPSHOT_HEAD_SIZE];
    (void)state;

    assert_int_equal(check(&anything), PH_OK);
    assert_memory_equal(sample->words, sample->pages, sizeof sample->pages);
    assert_memory_equal(sample->words + SNAPSHOT_PAGES, sample->protections.entries,
                        sample->protections.count * 8);
    const struct ph__snapshot_wanted wanted = {
        .monitor = sample->head.monitor,
        .image = &sample->image,
        .identity = &sample->head.image,
    };
    assert_int_equal(check(&wanted), PH_OK);
    assert_int_equal(ph__snapshot_head_decode(sample->bytes, PH__SNAPSHOT_HEAD_SIZE,
                                              ph__snapshot_file_size(&sample->head), &head, &error),
                     PH_OK);
    ph__snapshot_head_encode(&head, again);
    assert_memory_equal(again, sample->bytes, sizeof again);
    assert_int_equal(head.saved_ns, 1600000000000000000);
    assert_int_equal(head.processor.regs.rip, SNAPSHOT_IMAGE_GVA);
    assert_string_equal(head.image_name, "guest");
}

/* docs/snapshots.md has the table: files of this version stay readable. */
static void the_parts_are_where_the_table_says(void **state) {
    static const struct {
        size_t offset, size;
        uint64_t value;
    } numbers[] = {
        {8, 4, 2},
        {12, 4, 8192},
        {112, 4, PH__ABI_VERSION},
        {116, 4, 1},
        {120, 8, 4096},
        {136, 8, SNAPSHOT_PAGES},
        {152, 8, 0xe7},
        {160, 8, 1600000000000000000},
        {168, 8, 7},
        {176, 8, 4096},
        {192, 8, 8 << 20},
        {216, 8, SNAPSHOT_IMAGE_GVA},
        {224, 8, SNAPSHOT_IMAGE_SIZE},
        {264, 4, 20},
        {268, 4, 0x00030201},
        {588 + 16 * 8, 8, SNAPSHOT_IMAGE_GVA}, /* RIP */
        {756, 4, 576},
        {772, 4, 0x9abcdef0}, /* CPUID's words, and the last of them */
        {816, 4, 0x9abcdefb},
        {820, 4, 576}, /* components */
        {836, 4, 580},
        {4096 + 512, 8, 3}, /* XSTATE_BV */
    };
    (void)state;

    assert_memory_equal(sample->bytes, "\x89pinhol\x1a", 8);
    assert_memory_equal(sample->bytes + 332, "guest", 6);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        uint64_t value = 0;
        memcpy(&value, sample->bytes + numbers[i].offset, numbers[i].size);
        if (value != numbers[i].value)
            fail_msg("another number at %zu", numbers[i].offset);
    }
    assert_memory_equal(sample->bytes + PH__SNAPSHOT_HEAD_SIZE, sample->pages, sizeof sample->pages);
}

static void assert_flip_is_found(size_t byte, unsigned bit) {
    sample->bytes[byte] ^= (uint8_t)(1u << bit);
    if (check(&anything) != PH_E_SNAPSHOT || error.message[0] == 0)
        fail_msg("bit %u of byte %zu is not missed", bit, byte);
    sample->bytes[byte] ^= (uint8_t)(1u << bit);
}

/* All bits of the head's numbers and of the first ones of the tables; of the rest, which is alike, one in
 * each byte. What is behind the tables is zero, and is looked at too. */
static void every_bit_that_flips_is_found(void **state) {
    (void)state;
    for (size_t i = 0; i < ph__snapshot_data_offset(&sample->head); i++) {
        const bool all = i < 1024 || i - PH__SNAPSHOT_HEAD_SIZE < 96;
        for (unsigned bit = all ? 0 : i % 8; bit < (all ? 8 : i % 8 + 1); bit++)
            assert_flip_is_found(i, bit);
    }
    assert_int_equal(check(&anything), PH_OK);
}

static void a_file_that_is_cut_off_is_found(void **state) {
    const uint64_t whole = ph__snapshot_file_size(&sample->head);
    struct ph__snapshot_head head;
    (void)state;

    for (size_t size = 0; size < PH__SNAPSHOT_HEAD_SIZE; size++) {
        const uint8_t *bytes = guarded_copy(&memory, sample->bytes, size);
        assert_int_equal(ph__snapshot_head_decode(bytes, size, size, &head, &error), PH_E_SNAPSHOT);
        assert_non_null(strstr(error.message, size < 8 ? "no file of a snapshot" : "within its head"));
    }
    for (uint64_t size = PH__SNAPSHOT_HEAD_SIZE; size < whole; size++) {
        assert_int_equal(ph__snapshot_head_decode(sample->bytes, PH__SNAPSHOT_HEAD_SIZE, size, &head, &error),
                         PH_E_SNAPSHOT);
        assert_non_null(strstr(error.message, "cut off"));
    }
    assert_int_equal(
        ph__snapshot_head_decode(sample->bytes, PH__SNAPSHOT_HEAD_SIZE, whole + 1, &head, &error),
        PH_E_SNAPSHOT);
    assert_non_null(strstr(error.message, "behind its end"));
}

static void what_does_not_fit_is_named(void **state) {
    uint8_t monitor[PH__SHA256_SIZE] = {0};
    struct ph__image_identity identity = sample->head.image;
    struct ph__snapshot_wanted wanted = {.monitor = monitor};
    (void)state;

    assert_int_equal(check(&wanted), PH_E_SNAPSHOT);
    assert_non_null(strstr(error.message, "another build of this library"));
    wanted = (struct ph__snapshot_wanted){.identity = &identity};
    identity.bytes[19] ^= 1;
    assert_int_equal(check(&wanted), PH_E_SNAPSHOT);
    assert_non_null(strstr(error.message, "another image (guest)"));
    identity = sample->head.image;
    identity.is_build_id = false;
    assert_int_equal(check(&wanted), PH_E_SNAPSHOT);
    assert_non_null(strstr(error.message, "another image"));

    sample->head.abi++;
    assert_refused("version 5 of the interface between host and guest, and this library has version 4");
    sample->head.abi--;
    sample->head.format++;
    assert_refused("version 3 of the format, and this library knows version 2");
    sample->head.format--;
    sample->head.page_size = 16384;
    assert_refused("pages of 16384 bytes, and this machine has pages of 4096");
    sample->head.page_size = 4096;
    sample->image.gva += PH__PAGE_SIZE;
    assert_refused("another layout");
}

static void counts_that_do_not_fit_into_the_file_are_refused(void **state) {
    static const uint64_t counts[] = {7,          1ull << 32, 1ull << 40, (1ull << 40) + 1,
                                      1ull << 52, 1ull << 61, UINT64_MAX};
    struct ph__snapshot_head head;
    uint8_t bytes[PH__SNAPSHOT_HEAD_SIZE];
    (void)state;

    for (size_t i = 0; i < 2 * sizeof counts / sizeof counts[0]; i++) {
        struct ph__snapshot_head changed = sample->head;
        *(i % 2 ? &changed.page_count : &changed.protection_count) = counts[i / 2];
        ph__snapshot_head_encode(&changed, bytes);
        assert_int_equal(ph__snapshot_head_decode(bytes, sizeof bytes, changed.file_size, &head, &error),
                         PH_E_SNAPSHOT);
    }
}

static void pages_that_no_snapshot_holds_are_refused(void **state) {
    const struct ph__layout *layout = &sample->layout;
    const uint64_t offsets[] = {
        0,
        PH__CONTROL_GPA,
        PH__POKES_GPA,
        PH__TABLES_GPA,
        PH__RING0_STACK_GPA,
        PH__IST_STACK_GPA,
        PH__MONITOR_GPA,
        PH__MONITOR_GPA + ph__monitor()->stubs,
        PH__MONITOR_GPA + ph__monitor()->data - PH__PAGE_SIZE,
        PH__MONITOR_STACK_GPA - PH__PAGE_SIZE,
        PH__IO_GPA,
        PH__SYSTEM_SIZE - PH__PAGE_SIZE,
        layout->page_tables.offset,
        layout->messages.offset,
        layout->image.offset + layout->image.size,
        layout->size,
        1ull << 63,
        UINT64_MAX,
    };
    (void)state;

    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        sample->head.page_count = 1;
        sample->head.file_size = ph__snapshot_file_size(&sample->head);
        sample->pages[0] = offsets[i] == UINT64_MAX ? UINT64_MAX : offsets[i] / PH__PAGE_SIZE;
        assert_refused("a page that no snapshot holds");
    }
}

static void pages_out_of_order_are_refused(void **state) {
    (void)state;
    sample->pages[4] = sample->pages[3];
    assert_refused("not in order");
    sample->pages[4] = sample->pages[3] - 1;
    assert_refused("not in order");
}

static void sizes_that_no_config_asks_for_are_refused(void **state) {
    const struct ph__layout_request sound = sample->head.request;
    struct ph__layout_request *request = &sample->head.request;
    (void)state;

#define REFUSED(field, value, why)                                                                           \
    do {                                                                                                     \
        *request = sound;                                                                                    \
        request->field = (value);                                                                            \
        assert_refused(why);                                                                                 \
    } while (0)
    REFUSED(memory, 0, "memory of these sizes");
    REFUSED(memory, 4096, "memory of these sizes");
    REFUSED(memory, UINT64_MAX, "memory of these sizes");
    REFUSED(stack, 0, "memory of these sizes");
    REFUSED(stack, UINT64_MAX, "memory of these sizes");
    REFUSED(max_message, 0, "memory of these sizes");
    REFUSED(max_message, UINT64_MAX, "memory of these sizes");
    REFUSED(image_gva, 0, "no image");
    REFUSED(image_gva, 0x400001, "no image");
    REFUSED(image_gva, PH__WINDOW_GVA, "no image");
    REFUSED(image_gva, UINT64_MAX & ~4095ull, "no image");
    REFUSED(image_size, 0, "no image");
    REFUSED(image_size, UINT64_MAX & ~4095ull, "no image");
    REFUSED(trace_ring, 3, "trace ring");
    REFUSED(trace_ring, 1ull << 62, "trace ring");
    REFUSED(files, 4096, "file window");
    REFUSED(files, PH__FILES_SIZE_MAX + PH__LARGE_PAGE_SIZE, "file window");
    REFUSED(site_words_size, 8, "trace sites");
    *request = sound;
    request->site_words_gva = SNAPSHOT_IMAGE_GVA + SNAPSHOT_IMAGE_SIZE - 8;
    request->site_words_size = 16;
    assert_refused("trace sites");
    request->site_words_size = UINT64_MAX;
    assert_refused("trace sites");
#undef REFUSED
}

static void numbers_without_a_meaning_are_refused(void **state) {
    (void)state;
    sample->head.trace_position = 4;
    assert_refused("positions");
    sample->head.trace_position = UINT64_MAX & ~7ull;
    assert_refused("positions");
    sample->head.trace_position = 0;
    sample->head.seed_generation = UINT64_MAX;
    assert_refused("positions");
    sample->head.seed_generation = 0;
    sample->head.image.size = 65;
    assert_refused("mean nothing");
    sample->head.image.size = 0;
    assert_refused("mean nothing");
    sample->head.image.size = 19;
    sample->head.image.bytes[19] = 1;
    assert_refused("mean nothing");
    sample->head.image.size = 20;
    memset(sample->head.image_name, 'x', sizeof sample->head.image_name);
    assert_refused("mean nothing");
    sample->head.image_name[0] = 0;
    assert_int_equal(sample->head.processor.reserved, 0);
    sample->head.processor.xsave[576] = 1;
    assert_refused("mean nothing");
}

static void a_processor_that_no_guest_has_is_refused(void **state) {
    struct ph__processor *processor = &sample->head.processor;
    const struct ph__processor sound = *processor;
    (void)state;

    processor->regs.rip = 0xffff800000000000;
    assert_refused("RIP");
    *processor = sound;
    processor->regs.rflags |= 0x3000; /* IOPL */
    assert_refused("RFLAGS");
    *processor = sound;
    processor->fs_base = 1ull << 47;
    assert_refused("FS or GS");
    *processor = sound;
    processor->xsave[512 + 8 + 7] = 0x80; /* the compacted format */
    assert_refused("header");
    *processor = sound;
    processor->xsave[512 + 2] = 2; /* AMX's tiles */
    assert_refused("vector state");
    *processor = sound;
    processor->xsave[26] = 1;
    assert_refused("MXCSR");
    *processor = sound;
    processor->xsave_size = 4097;
    assert_refused("mean nothing");
}

/* Every entry, every bit: either a guest's mprotect could have left it, or it is refused. */
static void protections_that_no_guest_has_are_refused(void **state) {
    const uint64_t changes = PH__PTE_PRESENT | PH__PTE_WRITABLE | PH__PTE_NO_EXECUTE;
    const struct ph__protections_range ranges[] = {
        {SNAPSHOT_IMAGE_GVA, PH__PAGE_SIZE},
        {SNAPSHOT_IMAGE_GVA + 2 * PH__PAGE_SIZE, 2 * PH__PAGE_SIZE},
    };
    struct ph__protections_rules rules = {.ranges = ranges, .range_count = 2};
    const struct ph__protections *saved = &sample->protections;
    const size_t slots = saved->count % 512;
    (void)state;

    assert_null(ph__protections_check(&sample->layout, saved, &rules));
    for (size_t i = 0; i < saved->count; i++) {
        const uint64_t entry = saved->entries[i];
        const bool is_table = i < slots && !(entry & PH__PTE_LARGE);
        for (unsigned bit = 0; bit < 64; bit++) {
            const uint64_t changed = entry ^ 1ull << bit;
            const bool wx = (changed & (PH__PTE_WRITABLE | PH__PTE_NO_EXECUTE)) == PH__PTE_WRITABLE;
            bool allowed = entry && !is_table && (1ull << bit & changes) && !wx;
            saved->entries[i] = changed;
            const char *wrong = ph__protections_check(&sample->layout, saved, &rules);
            /* A table's address is one among those of the region, and none that is used. */
            if (is_table && (1ull << bit & PH__PTE_ADDRESS))
                allowed = (changed & PH__PTE_ADDRESS) - ph__gpa_of_offset(sample->layout.page_tables.offset) <
                          sample->layout.page_tables.size;
            if ((wrong == NULL) != allowed)
                fail_msg("entry %zu, bit %u: %s", i, bit, wrong ? wrong : "taken");
        }
        saved->entries[i] = entry;
    }
    rules.allow_wx = true;
    saved->entries[slots] |= PH__PTE_WRITABLE;
    assert_null(ph__protections_check(&sample->layout, saved, &rules));
}

static void protections_have_as_many_entries_as_they_need(void **state) {
    const struct ph__protections_rules rules = {.allow_wx = true};
    struct ph__protections saved = sample->protections;
    (void)state;

    assert_true(saved.count <= ph__protections_count_max(&sample->layout));
    for (size_t count = 0; count < sample->protections.count; count++) {
        saved.count = count;
        assert_non_null(ph__protections_check(&sample->layout, &saved, &rules));
    }
    saved.entries = calloc(saved.count + 1024, sizeof *saved.entries);
    assert_non_null(saved.entries);
    memcpy(saved.entries, sample->protections.entries, sample->protections.count * 8);
    for (size_t count = 1; count < 1024; count++) {
        saved.count = sample->protections.count + count;
        assert_non_null(ph__protections_check(&sample->layout, &saved, &rules));
    }
    free(saved.entries);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(what_goes_in_comes_out),
        TEST(the_parts_are_where_the_table_says),
        TEST(every_bit_that_flips_is_found),
        TEST(a_file_that_is_cut_off_is_found),
        TEST(what_does_not_fit_is_named),
        TEST(counts_that_do_not_fit_into_the_file_are_refused),
        TEST(pages_that_no_snapshot_holds_are_refused),
        TEST(pages_out_of_order_are_refused),
        TEST(sizes_that_no_config_asks_for_are_refused),
        TEST(numbers_without_a_meaning_are_refused),
        TEST(a_processor_that_no_guest_has_is_refused),
        TEST(protections_that_no_guest_has_are_refused),
        TEST(protections_have_as_many_entries_as_they_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
