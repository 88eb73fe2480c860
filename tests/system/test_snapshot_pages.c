/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * How a restore learns which pages a guest has written: by PAGEMAP_SCAN, or by words of pagemap where the
 * kernel does not know it. Both find the same pages, those among them that the kernel has swapped out, in
 * pieces, and whatever interrupts them. This program stands between the library and the kernel
 * (base/system.h), so that pages which are present look as if they were swapped out where there is no swap.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pinhole/snapshot.h>

#include "base/system.h"
#include "sandbox/snapshot.h"
#include "support/memory_image.h"
#include "support/traced.h"

static const ph_config small = {.size = sizeof small, .memory = 12ull << 20, .timeout_ns = TEST_TIMEOUT_NS};

/* ---- between library and kernel ------------------------------------------------------------------------ */

/* As in <linux/fs.h> of Linux 6.7. */
struct scan_argument {
    uint64_t size, flags, start, end, walk_end, regions, region_count, max_pages;
    uint64_t inverted, all_of, any_of, returned;
};
#define SCAN _IOWR('f', 16, struct scan_argument)
#define SCAN_PRESENT (1ull << 3)
#define SCAN_SWAPPED (1ull << 4)

#define WORD_PRESENT (1ull << 63)
#define WORD_SWAPPED (1ull << 62)
#define WORD_FILE (1ull << 61)

/* What is done to what passes through. All zero: nothing. */
static struct {
    int pagemap;       /* the descriptor */
    bool swapped;      /* present pages of the sandbox are swapped out, and the other way round */
    int scan_error;    /* PAGEMAP_SCAN fails so */
    bool interrupted;  /* every second PAGEMAP_SCAN fails with EINTR */
    unsigned pieces;   /* regions that PAGEMAP_SCAN gives at a time; 0: as many as it is asked for */
    bool short_reads;  /* pagemap gives half of what it is asked for */
    unsigned scans;    /* counted */
    unsigned readings; /* counted */
} between;

static uint64_t exchange(uint64_t mask, uint64_t a, uint64_t b) {
    return (mask & ~(a | b)) | (mask & a ? b : 0) | (mask & b ? a : 0);
}

static struct ph__system real;

static int between_ioctl(int file, unsigned long request, ...) {
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);

    if (request != SCAN)
        return real.ioctl(file, request, argument);
    between.scans++;
    if (between.scan_error || (between.interrupted && between.scans % 2)) {
        errno = between.scan_error ? between.scan_error : EINTR;
        return -1;
    }
    struct scan_argument scan = *(struct scan_argument *)argument;
    if (between.swapped) {
        scan.inverted = exchange(scan.inverted, SCAN_PRESENT, SCAN_SWAPPED);
        scan.all_of = exchange(scan.all_of, SCAN_PRESENT, SCAN_SWAPPED);
        scan.any_of = exchange(scan.any_of, SCAN_PRESENT, SCAN_SWAPPED);
    }
    if (between.pieces && scan.region_count > between.pieces)
        scan.region_count = between.pieces;
    int result = real.ioctl(file, request, &scan);
    ((struct scan_argument *)argument)->walk_end = scan.walk_end;
    return result;
}

static ssize_t words_change(int file, uint64_t *words, ssize_t got) {
    if (file != between.pagemap || got <= 0)
        return got;
    between.readings++;
    for (ssize_t i = 0; between.swapped && i < got / 8; i++)
        words[i] = exchange(words[i], WORD_PRESENT, WORD_SWAPPED);
    return got;
}

static ssize_t between_pread(int file, void *bytes, size_t size, off_t offset) {
    if (file == between.pagemap && between.short_reads && size >= 16)
        size = size / 16 * 8;
    return words_change(file, bytes, real.pread(file, bytes, size, offset));
}

/* The descriptor of this process's pagemap, which the library has opened. */
static int pagemap_file(void) {
    DIR *folder = opendir("/proc/self/fd");
    int file = -1;

    assert_non_null(folder);
    /* cppcheck-suppress readdirCalled ; no other thread has this folder */
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char link[64] = "";
        if (readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1) > 0 && strstr(link, "/pagemap"))
            file = (int)strtol(entry->d_name, NULL, 10);
    }
    closedir(folder);
    assert_true(file >= 0);
    return file;
}

/* ---- a sandbox ----------------------------------------------------------------------------------------- */

struct subject {
    ph_sandbox *sandbox;
    ph_snapshot *snapshot;
    uint8_t *image;
};

static ph_status call(const struct subject *subject, const char *name, const ph_value *args, size_t count,
                      ph_value *result) {
    return test_call(subject->sandbox, subject->sandbox->image, name, args, count, result);
}

/* One that was started, or, of a snapshot of that, one that (made) is. */
static void begin(struct subject *subject, bool made) {
    ph_error error;

    memset(&between, 0, sizeof between);
    subject->sandbox = test_started("snapshot", &small);
    test_status(subject->sandbox, ph_snapshot_take(subject->sandbox, &subject->snapshot), PH_OK);
    subject->image = memory_image_take(subject->sandbox);
    if (made) {
        ph_sandbox_destroy(subject->sandbox);
        assert_int_equal(ph_sandbox_create_from(subject->snapshot, NULL, &subject->sandbox, &error), PH_OK);
    }
    between.pagemap = pagemap_file();
}

static void finish(struct subject *subject) {
    ph_sandbox_destroy(subject->sandbox);
    ph_snapshot_close(subject->snapshot);
    free(subject->image);
}

static struct ph__page_list scan(const struct subject *subject, bool plain) {
    struct ph__page_list list = {0};
    ph_error error;

    if (ph__private_pages_scan(&subject->sandbox->memory, plain, &list, &error) != PH_OK)
        fail_msg("%s", error.message);
    return list;
}

static void same_lists(const struct ph__page_list *a, const struct ph__page_list *b) {
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->pages, b->pages, a->count * sizeof a->pages[0]);
}

/* Words of pagemap do not tell the kernel's page of zeroes, which is mapped where somebody has only read. So
 * pages may be listed beside (exact), and they are zero. */
static void same_but_zeroes(const struct subject *subject, const struct ph__page_list *exact,
                            const struct ph__page_list *words) {
    static const uint8_t zeroes[PH__PAGE_SIZE];
    size_t at = 0;

    for (size_t i = 0; i < words->count; i++) {
        if (at < exact->count && words->pages[i] == exact->pages[at])
            at++;
        else
            assert_memory_equal(subject->sandbox->memory.base + words->pages[i] * PH__PAGE_SIZE, zeroes,
                                PH__PAGE_SIZE);
    }
    assert_int_equal(at, exact->count);
}

/* Whether this kernel knows PAGEMAP_SCAN at all. */
static bool has_scan(void) {
    struct scan_argument nothing = {.size = sizeof nothing};

    return real.ioctl(between.pagemap, SCAN, &nothing) >= 0;
}

/* A guest writes, the list is what it was as (expected) without anything between, and the restore undoes all
 * of it, and then again. */
static void undone(struct subject *subject, bool plain) {
    ph_value result;

    subject->sandbox->restore->plain = plain;
    for (uint32_t turn = 0; turn < 3; turn++) {
        test_status(subject->sandbox, call(subject, "change", ARGS(U32(turn + 5)), NULL), PH_OK);
        test_status(subject->sandbox, call(subject, "greedy", ARGS(U32(40)), NULL), PH_OK);
        test_status(subject->sandbox, ph_sandbox_restore(subject->sandbox, subject->snapshot), PH_OK);
        memory_image_check(subject->sandbox, subject->image);
        test_status(subject->sandbox, call(subject, "count", NO_ARGS, &result), PH_OK);
        assert_int_equal(result.u32, 1);
    }
}

/* ---- tests --------------------------------------------------------------------------------------------- */

static void both_ways_find_the_same_pages(void **state) {
    (void)state;
    test_needs_kvm();
    for (int made = 0; made < 2; made++) {
        struct subject subject;
        begin(&subject, made);
        if (!has_scan())
            print_message("this kernel has no PAGEMAP_SCAN\n");
        for (uint32_t turn = 0; turn < 4; turn++) {
            test_status(subject.sandbox, call(&subject, "change", ARGS(U32(turn)), NULL), PH_OK);
            between.scans = between.readings = 0;
            struct ph__page_list by_scan = scan(&subject, false);
            assert_true(!has_scan() || between.readings == 0);
            between.scans = 0;
            struct ph__page_list by_words = scan(&subject, true);
            assert_int_equal(between.scans, 0);
            assert_true(by_words.count > 64);
            same_but_zeroes(&subject, &by_scan, &by_words);
            free(by_scan.pages);
            free(by_words.pages);
        }
        undone(&subject, false);
        undone(&subject, true);
        finish(&subject);
    }
}

/* As a kernel before 6.7 answers, or one that knows another version of it. */
static void a_kernel_without_the_scan_is_asked_for_words(void **state) {
    static const int errors[] = {ENOTTY, EINVAL};

    (void)state;
    test_needs_kvm();
    for (int i = 0; i < 2; i++) {
        struct subject subject;
        begin(&subject, i);
        between.scan_error = errors[i];
        undone(&subject, false);
        assert_true(between.scans > 0 && between.readings > 0);
        finish(&subject);
    }
}

/* The list does not depend on the pieces in which it comes. */
static void pieces_and_interruptions_lose_no_page(void **state) {
    static const unsigned pieces[] = {1, 2, 7};

    (void)state;
    test_needs_kvm();
    struct subject subject;
    begin(&subject, false);
    for (int i = 0; i < 3; i++) {
        test_status(subject.sandbox, call(&subject, "change", ARGS(U32(1)), NULL), PH_OK);
        between.pieces = 0;
        between.interrupted = between.short_reads = false;
        struct ph__page_list whole = scan(&subject, false);
        between.pieces = pieces[i];
        between.interrupted = true;
        between.short_reads = true;
        struct ph__page_list by_scan = scan(&subject, false);
        struct ph__page_list by_words = scan(&subject, true);
        same_lists(&whole, &by_scan);
        same_but_zeroes(&subject, &whole, &by_words);
        free(whole.pages);
        free(by_scan.pages);
        free(by_words.pages);
        undone(&subject, false);
        undone(&subject, true);
    }
    finish(&subject);
}

/* A snapshot that cannot be taken may have learnt of a part of the pages, or of none. The next restore looks
 * for itself, also behind a call without page faults. */
static void a_restore_behind_a_failed_scan_finds_all_pages(void **state) {
    (void)state;
    test_needs_kvm();
    struct subject subject;
    begin(&subject, false);
    for (int turn = 0; turn < 8; turn++) {
        ph_snapshot *other = NULL;
        for (int i = 0; i < 4; i++) {
            test_status(subject.sandbox, call(&subject, "count", NO_ARGS, NULL), PH_OK);
            test_status(subject.sandbox, ph_sandbox_restore(subject.sandbox, subject.snapshot), PH_OK);
        }
        test_status(subject.sandbox, call(&subject, "count", NO_ARGS, NULL), PH_OK);
        between.scan_error = EIO;
        test_status(subject.sandbox, ph_snapshot_take(subject.sandbox, &other), PH_E_SYSTEM);
        between.scan_error = 0;
        test_status(subject.sandbox, ph_sandbox_restore(subject.sandbox, subject.snapshot), PH_OK);
        memory_image_check(subject.sandbox, subject.image);
    }
    finish(&subject);
}

static void pages_that_look_swapped_out_are_restored(void **state) {
    (void)state;
    test_needs_kvm();
    for (int made = 0; made < 2; made++) {
        struct subject subject;
        begin(&subject, made);
        test_status(subject.sandbox, call(&subject, "change", ARGS(U32(1)), NULL), PH_OK);
        for (int plain = 0; plain < 2; plain++) {
            between.swapped = false;
            struct ph__page_list present = scan(&subject, plain);
            between.swapped = true;
            struct ph__page_list swapped = scan(&subject, plain);
            same_lists(&present, &swapped);
            free(present.pages);
            free(swapped.pages);
        }
        undone(&subject, false);
        undone(&subject, true);
        /* And a snapshot of them holds them. */
        test_status(subject.sandbox, call(&subject, "change", ARGS(U32(77)), NULL), PH_OK);
        ph_snapshot *later = NULL;
        test_status(subject.sandbox, ph_snapshot_take(subject.sandbox, &later), PH_OK);
        uint8_t *image = memory_image_take(subject.sandbox);
        test_status(subject.sandbox, ph_sandbox_restore(subject.sandbox, subject.snapshot), PH_OK);
        memory_image_check(subject.sandbox, subject.image);
        test_status(subject.sandbox, ph_sandbox_restore(subject.sandbox, later), PH_OK);
        memory_image_check(subject.sandbox, image);
        free(image);
        ph_snapshot_close(later);
        finish(&subject);
    }
}

/* Pages of the sandbox that are in swap. */
static unsigned swapped_count(const struct subject *subject) {
    const struct ph__memory *memory = &subject->sandbox->memory;
    unsigned count = 0;

    for (uint64_t at = 0; at < ph__memory_own(memory); at += PH__PAGE_SIZE) {
        uint64_t word = 0;
        uint64_t page = ((uint64_t)(uintptr_t)memory->base + at) / PH__PAGE_SIZE;
        if (real.pread(between.pagemap, &word, 8, (off_t)(page * 8)) == 8)
            count += (word & WORD_SWAPPED) && !(word & WORD_FILE);
    }
    return count;
}

/* The same with pages that are, where there is swap. */
static void pages_that_are_swapped_out_are_restored(void **state) {
    (void)state;
    test_needs_kvm();
    for (int way = 0; way < 4; way++) {
        struct subject subject;
        begin(&subject, way / 2);
        test_status(subject.sandbox, call(&subject, "change", ARGS(U32(1)), NULL), PH_OK);
        test_status(subject.sandbox, call(&subject, "greedy", ARGS(U32(300)), NULL), PH_OK);
        struct ph__page_list before = scan(&subject, way % 2);
        assert_int_equal(
            madvise(subject.sandbox->memory.base, ph__memory_own(&subject.sandbox->memory), MADV_PAGEOUT), 0);
        if (swapped_count(&subject) < 200) {
            free(before.pages);
            finish(&subject);
            print_message("nothing was swapped out: there is no swap\n");
            skip();
            return;
        }
        struct ph__page_list after = scan(&subject, way % 2);
        same_lists(&before, &after);
        free(before.pages);
        free(after.pages);
        subject.sandbox->restore->plain = way % 2;
        test_status(subject.sandbox, ph_sandbox_restore(subject.sandbox, subject.snapshot), PH_OK);
        memory_image_check(subject.sandbox, subject.image);
        undone(&subject, way % 2);
        finish(&subject);
    }
}

int main(void) {
    real = ph__system;
    ph__system.ioctl = between_ioctl;
    ph__system.pread = between_pread;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_find_the_same_pages),
        cmocka_unit_test(a_kernel_without_the_scan_is_asked_for_words),
        cmocka_unit_test(pieces_and_interruptions_lose_no_page),
        cmocka_unit_test(a_restore_behind_a_failed_scan_finds_all_pages),
        cmocka_unit_test(pages_that_look_swapped_out_are_restored),
        cmocka_unit_test(pages_that_are_swapped_out_are_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
