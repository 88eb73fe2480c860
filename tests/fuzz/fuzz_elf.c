/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Feeds any bytes to the loader, as an untrusted file: what is taken must keep the promises of elf.h, and
 * opening it as an image, with tables, sites, symbols and content, must be sound too. libFuzzer finds the
 * bytes; replay.c takes them from files. By hand, from the top of the source tree, for as long as one likes:
 *
 *   clang -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined \
 *       -fno-sanitize-recover=all -Iinclude -Isrc -Itests \
 *       tests/fuzz/fuzz_elf.c -o fuzz_elf \
 *       src/sandbox/{image,image_content,image_sites,image_tables,symbols}.c \
 *       src/vm/elf.c src/base/error.c src/trace/{filter,sites,text}.c
 *   mkdir corpus && cp build/tests/unit/programs/tables* corpus
 *   ./fuzz_elf -max_len=49152 corpus
 */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/image.h"
#include "support/elf_invariants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
/* From libFuzzer. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));

static void expect(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

static void check_function(const ph_function *function, size_t index) {
    size_t length = strlen(function->name);

    expect(function->index == index, "a function knows its index");
    expect(length >= 1 && length <= 255, "a name has 1 to 255 bytes");
    for (size_t i = 0; i < length; i++)
        expect((unsigned char)function->name[i] > ' ' && function->name[i] != 0x7f, "a name is printable");
    expect(function->signature.result >= PH_VOID && function->signature.result <= PH_BYTES,
           "a result has a type");
    expect(function->signature.count <= PH_MAX_ARGS, "there are no more arguments than there can be");
    for (uint32_t i = 0; i < PH_MAX_ARGS; i++) {
        ph_type type = function->signature.args[i];
        expect(i < function->signature.count ? type > PH_VOID && type <= PH_BYTES : type == PH_VOID,
               "an argument has a type");
    }
}

static void check_image(const ph_image *image) {
    uint64_t position = 0;
    uint64_t offset;

    for (size_t i = 0; i < ph_image_export_count(image); i++) {
        check_function(ph_image_export(image, i), i);
        expect(ph_image_find_export(image, ph_image_export(image, i)->name) == ph_image_export(image, i),
               "an export is found by its name, which is its own");
    }
    for (size_t i = 0; i < ph_image_import_count(image); i++)
        check_function(ph_image_import(image, i), i);
    for (size_t i = 0; i < image->import_entry_count; i++)
        expect(image->import_of_entry[i] < image->import_count, "an entry leads to an import");
    /* fuzz_sites.c looks closer. */
    for (size_t i = 0; i < image->site_count; i++) {
        const struct ph__site *site = &image->sites[i];
        expect(strlen(site->file) <= 1023 && strlen(site->function) <= 1023, "a site's texts are bounded");
        expect(site->word < image->word_count, "a site has a word");
        for (uint32_t j = 0; j < site->count; j++)
            expect(strlen(site->fields[j]) <= 255, "a field's name is bounded");
    }
    for (uint32_t i = 0; i < image->extent_count; i++) {
        const struct ph__image_extent *extent = &image->extents[i];
        expect(extent->gva % PH__PAGE_SIZE == 0 && extent->size % PH__PAGE_SIZE == 0 && extent->size > 0,
               "extents are whole pages");
        expect(extent->file_offset == position, "extents are packed");
        expect(extent->gva >= image->gva && extent->gva + extent->size <= image->gva + image->size,
               "extents are inside the span");
        expect(i == 0 || extent->gva >= extent[-1].gva + extent[-1].size, "extents ascend");
        position += extent->size;
    }
    for (size_t i = 0; i < image->symbol_count; i++) {
        const struct ph__symbol *symbol = &image->symbols[i];
        const char *name = ph__image_symbol(image, symbol->address, &offset);
        expect(i == 0 || symbol[-1].address < symbol->address, "symbols ascend");
        expect(name == image->symbol_names + symbol->name && offset == 0, "a symbol is found by its address");
        expect(name[0] != 0 && strlen(name) <= 1023, "a symbol's name is bounded");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int allow_wx = 0; allow_wx < 2; allow_wx++) {
        struct ph__elf elf;
        struct ph__elf_error elf_error;
        ph_image *image;
        ph_error error;

        if (!ph__elf_parse(data, size, allow_wx, &elf, &elf_error)) {
            expect(elf_error.message[0] != 0, "a refusal says why");
            continue;
        }
        const char *broken = elf_broken_promise(&elf, size, allow_wx);
        expect(!broken, broken);
        ph_status status =
            ph_image_open_bytes(data, size, "fuzz", allow_wx ? PH_IMAGE_ALLOW_WX : 0, &image, &error);
        if (status != PH_OK) {
            expect(status == PH_E_IMAGE && error.message[0] != 0, "a refusal says why");
            continue;
        }
        check_image(image);
        ph_image_close(image);
        /* What was taken without the flag is taken with it. */
        break;
    }
    return 0;
}

/* Headers, notes and tables are a small part of a file: half of all changes put a telling number into one of
 * those fields, which blind changes of bytes would take long to do. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    static const uint64_t telling[] = {
        0,           1,          3,          4,          7,
        8,           12,         24,         56,         64,
        0xfff,       0x1000,     0x1001,     0x10000,    0x200000,
        0x400000,    0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff,
        0x100000000, 1ull << 36, 1ull << 47, 1ull << 63, UINT64_MAX - 7,
        UINT64_MAX,
    };
    uint64_t random = seed * 0x9e3779b97f4a7c15ull;
    uint64_t value = 0;
    size_t width = (size_t)1 << ((random >> 60) & 3);
    size_t start = 0;
    size_t fields = sizeof(Elf64_Ehdr);

    if ((random >> 59 & 1) || size < sizeof(Elf64_Ehdr) + width)
        return LLVMFuzzerMutate(data, size, max_size);

    Elf64_Ehdr header;
    Elf64_Phdr segment;
    memcpy(&header, data, sizeof header);
    size_t count = header.e_phnum % 32;
    size_t place = random >> 20 & 0x3f;
    if (place < 40 && count > 0 && header.e_phoff < size && size - header.e_phoff >= count * sizeof segment) {
        /* A program header, or what it leads to. */
        start = header.e_phoff + place % count * sizeof segment;
        fields = sizeof segment;
        memcpy(&segment, data + start, sizeof segment);
        if ((segment.p_type == PT_NOTE || segment.p_type == PT_DYNAMIC) && place & 1 &&
            segment.p_filesz > 0 && segment.p_offset < size && segment.p_filesz <= size - segment.p_offset) {
            start = segment.p_offset;
            fields = segment.p_filesz;
        }
    } else if (place < 50 && header.e_shoff < size) {
        start = header.e_shoff;
        fields = size - start;
    }
    start += (random >> 30 & 0xff) % fields / width * width;
    if (start > size - width)
        return LLVMFuzzerMutate(data, size, max_size);

    switch (random >> 40 & 3) {
    case 0:
        value = telling[(random >> 44) % (sizeof telling / sizeof telling[0])];
        break;
    case 1:
        value = size - (random >> 44 & 0xff) % 9 + 4;
        break;
    default:
        memcpy(&value, data + start, width);
        value += (random >> 44 & 1 ? 1u : 0xfffu) * (random >> 45 & 1 ? 1 : -1ull);
        break;
    }
    memcpy(data + start, &value, width);
    return size;
}
