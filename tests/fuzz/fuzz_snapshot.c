/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Feeds any bytes to what reads the files of snapshots, as the start of a file: what is taken must keep the
 * promises of snapshot_format.h. Since hardly any bytes have the right digest, they are looked at twice: as
 * they are, and as somebody would write them who knows how. libFuzzer finds the bytes; replay.c takes them
 * from files. By hand, from the top of the source tree:
 *
 *   clang -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Iinclude -Isrc
 *     tests/fuzz/fuzz_snapshot.c src/sandbox/{image_content,snapshot_format}.c
 *     src/base/{error,sha256}.c src/vm/{memory,paging_check,processor}.c -o fuzz_snapshot
 *   ./fuzz_snapshot -max_len=16384 build/tests/fuzz/snapshot-*
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/snapshot_format.h"
#include "vm/boot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The monitor is made for the library. Where its data lies is all that counts here. */
__attribute__((weak)) const struct ph__monitor_header *ph__monitor(void) {
    static const struct ph__monitor_header monitor = {.data = 0x5000, .bss_end = 0x8000};
    return &monitor;
}

static void expect(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

/* The pages are where a guest writes. */
static void check_pages(const struct ph__layout *layout, const uint64_t *pages, uint64_t count) {
    const uint64_t data = PH__MONITOR_GPA + ph__monitor()->data;

    for (uint64_t i = 0; i < count; i++) {
        const uint64_t offset = pages[i] * PH__PAGE_SIZE;
        expect(i == 0 || pages[i] > pages[i - 1], "pages ascend");
        expect(pages[i] < layout->size / PH__PAGE_SIZE, "pages are in the layout");
        expect(offset >= data, "a page of ring 0 or of the host's is not among them");
        expect(offset - PH__IO_GPA >= layout->bookkeeping.offset - PH__IO_GPA,
               "nor one of page tables, messages or system calls");
        expect(offset < layout->trace.offset || offset >= layout->image.offset, "nor one of the trace ring");
        expect(offset - layout->site_words.offset >= layout->site_words.size, "nor one of trace filters");
        expect(offset < layout->stack.offset + layout->stack.size, "nor one of files");
    }
}

/* Every entry that leads somewhere leads ring 3 into the image, the arena or the stack. */
static void check_protections(const struct ph__layout *layout, const uint64_t *entries, uint64_t count) {
    const uint64_t end = ph__gpa_of_offset(layout->stack.offset + layout->stack.size);
    const uint64_t tables = ph__gpa_of_offset(layout->page_tables.offset);

    expect(count <= ph__protections_count_max(layout), "there are no more entries than there can be");
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t gpa = entries[i] & PH__PTE_ADDRESS;
        if (!entries[i])
            continue;
        expect(entries[i] & PH__PTE_USER, "an entry is for ring 3");
        expect((gpa >= layout->image.offset && gpa < end) || gpa - tables < layout->page_tables.size,
               "an entry leads to what a guest may protect");
    }
}

static void check(const uint8_t *data, size_t size, uint64_t file_size) {
    const struct ph__snapshot_wanted anything = {0};
    struct ph__snapshot_head head;
    struct ph__layout layout;
    ph_error error = {0};

    if (ph__snapshot_head_decode(data, size, file_size, &head, &error) != PH_OK) {
        expect(error.status == PH_E_SNAPSHOT && error.message[0] != 0, "a refusal says why");
        return;
    }
    expect(ph__snapshot_file_size(&head) == file_size, "all parts are in the file");
    if (ph__snapshot_data_offset(&head) > size)
        return;
    uint64_t *words = malloc(ph__snapshot_tables_size(&head) + 1);
    uint8_t *tables = malloc(ph__snapshot_tables_room(&head) + 1);
    if (words && tables) {
        /* Of just these sizes, so that a sanitizer sees any step outside. */
        memcpy(tables, data + PH__SNAPSHOT_HEAD_SIZE, ph__snapshot_tables_room(&head));
        if (ph__snapshot_format_check(data, &head, tables, &anything, &layout, words, &error) == PH_OK) {
            check_pages(&layout, words, head.page_count);
            check_protections(&layout, words + head.page_count, head.protection_count);
            expect(ph__processor_check(&head.processor, UINT64_MAX, NULL) == PH_OK, "a guest's processor");
        } else {
            expect(error.status == PH_E_SNAPSHOT && error.message[0] != 0, "a refusal says why");
        }
    }
    free(tables);
    free(words);
}

/* The same with sizes and digest that fit: the counts stay, and whatever is missing is zero. */
static void check_sealed(const uint8_t *data, size_t size) {
    struct ph__snapshot_head head;
    uint8_t *file;

    (void)ph__snapshot_head_decode(data, size, UINT64_MAX, &head, NULL);
    head.page_count %= 1u << 10;
    head.protection_count %= 1u << 13;
    head.format = PH__SNAPSHOT_FORMAT;
    head.head_size = PH__SNAPSHOT_HEAD_SIZE;
    head.page_size = PH__PAGE_SIZE;
    head.file_size = ph__snapshot_file_size(&head);
    const uint64_t room = ph__snapshot_data_offset(&head);
    const uint64_t given = size - PH__SNAPSHOT_HEAD_SIZE;
    const uint64_t used = ph__snapshot_tables_size(&head);
    file = calloc(1, room);
    if (!file)
        return;
    memcpy(file + PH__SNAPSHOT_HEAD_SIZE, data + PH__SNAPSHOT_HEAD_SIZE, given < used ? given : used);
    ph__snapshot_head_encode(&head, file);
    ph__snapshot_digest(file, file + PH__SNAPSHOT_HEAD_SIZE, used, head.digest);
    ph__snapshot_head_encode(&head, file);
    check(file, room, head.file_size);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t magic[8] = {0x89, 'p', 'i', 'n', 'h', 'o', 'l', 0x1a};

    check(data, size, size);
    if (size >= PH__SNAPSHOT_HEAD_SIZE && memcmp(data, magic, sizeof magic) == 0)
        check_sealed(data, size);
    return 0;
}
