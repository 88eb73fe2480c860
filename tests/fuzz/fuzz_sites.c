/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Feeds any table of trace sites to the loader: what is taken keeps the promises of trace/sites.h. libFuzzer
 * finds the bytes; replay.c takes them from files. The file around the table is sound, so that all the bytes
 * go into what is tested. The input:
 *
 *   4 bytes           what is added to where the note says that sites and words start and end
 *   1 byte            how many sites there are
 *   33 bytes a site   0, and its entry; or 1, and its entry with distances that count from the texts
 *   the rest          texts
 *
 * By hand, from the top of the source tree, for as long as one likes:
 *
 *   clang -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined \
 *       -fno-sanitize-recover=all -Iinclude -Isrc -Itests \
 *       tests/fuzz/fuzz_sites.c -o fuzz_sites \
 *       src/sandbox/{image,image_content,image_sites,image_tables,symbols}.c \
 *       src/vm/elf.c src/base/error.c src/trace/{filter,sites,text}.c
 *   mkdir corpus && cp build/tests/fuzz/sites-* corpus
 *   ./fuzz_sites -max_len=2048 corpus
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sandbox/image_parts.h"
#include "support/elf_program.h"
#include "trace/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SITES_OFFSET 0x2100u
#define SITES_MAX 32u
#define WORDS_OFFSET (SITES_OFFSET + SITES_MAX * 32)
#define TEXTS_OFFSET (WORDS_OFFSET + SITES_MAX * 8)
#define TEXTS_END (PROGRAM_RODATA_OFFSET + PROGRAM_RODATA_SIZE)

static void expect(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

static void check_text(const char *text, size_t most, int is_format) {
    char again[3 * 3 * 4096 + 1];
    size_t length = strlen(text);

    expect(length <= most, "a text is cut");
    if (is_format)
        expect(ph__text_make_valid(again, text, length, 0) == length, "a format is valid UTF-8");
    else
        expect(ph__text_copy_printable(again, sizeof again, text, length) == length, "a text is printable");
    expect(memcmp(again, text, length) == 0, "a text stays as it is");
}

static void check_site(const struct ph__site *site, uint32_t number, const struct ph__filter *filters) {
    int is_log = site->kind == PH__SITE_LOG;

    expect(site->kind >= PH__SITE_SPAN && site->kind <= PH__SITE_FUNCTION, "a site has a kind");
    expect(site->level >= PH_LEVEL_ERROR && site->level <= PH_LEVEL_TRACE, "a site has a level");
    expect(site->count <= PH__TRACE_FIELDS_MAX, "there are no more fields than there can be");
    check_text(site->name, is_log ? 3 * 4096 : 255, is_log);
    check_text(site->file, 1023, 0);
    check_text(site->function, 1023, 0);
    for (uint32_t i = 0; i < site->count; i++) {
        uint8_t type = site->types[i];
        check_text(site->fields[i], 255, 0);
        expect(type == PH_I64 || type == PH_U64 || type == PH_F64 || type == PH_BOOL || type == PH_STR ||
                   type == PH_BYTES || type == PH_POINTER,
               "a field has a type");
    }
    if (site->kind == PH__SITE_COUNTER)
        expect(site->count == 1 && (site->types[0] == PH_I64 || site->types[0] == PH_F64),
               "a counter is a number");

    uint64_t word = ph__site_word(site, number, &filters[1]);
    expect((word & PH__RECORD_LENGTH_MASK) == ph__site_words(site) && word >> PH__RECORD_SITE_SHIFT == number,
           "a word is the head of a record");
    expect(site->kind == PH__SITE_FIELDS || ph__site_word(site, number, &filters[0]) == 0,
           "a site can be off");
}

/* The program, with what is in the input. Returns false when that is too short. */
static int make_program(struct program *program, const uint8_t *data, size_t size) {
    struct ph__note *note = program_note(program);
    int32_t *const bounds[] = {&note->sites_start, &note->sites_end, &note->words_start, &note->words_end};
    uint32_t count;

    program_init(program);
    program_add_note(program);
    if (size < 5 || (size - 5) / 33 < (count = data[4] % (SITES_MAX + 1)))
        return 0;
    program_set_distance(program, bounds[0], SITES_OFFSET);
    program_set_distance(program, bounds[1], SITES_OFFSET + count * 32);
    program_set_distance(program, bounds[2], WORDS_OFFSET);
    program_set_distance(program, bounds[3], WORDS_OFFSET + count * 8);
    for (int i = 0; i < 4; i++)
        *bounds[i] += (int8_t)data[i];
    data += 5;
    size -= 5;

    for (uint32_t i = 0; i < count; i++, data += 33, size -= 33) {
        struct ph__site_entry *entry = (struct ph__site_entry *)(program->bytes + SITES_OFFSET) + i;
        int32_t *const texts[] = {&entry->name, &entry->file, &entry->function, &entry->fields};
        memcpy(entry, data + 1, sizeof *entry);
        if (!(data[0] & 1))
            continue;
        for (int j = 0; j < 4; j++)
            program_set_distance(program, texts[j], TEXTS_OFFSET + (uint32_t)*texts[j] % 0x800);
        program_set_distance(program, &entry->word, WORDS_OFFSET + (uint32_t)entry->word % 0x100 * 4);
    }
    memcpy(program->bytes + TEXTS_OFFSET, data,
           size < TEXTS_END - TEXTS_OFFSET ? size : TEXTS_END - TEXTS_OFFSET);
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct ph__filter filters[] = {{.level = PH_LEVEL_OFF}, {.level = PH_LEVEL_TRACE}};
    static struct program program;
    char name[] = "fuzz";
    ph_image image = {.name = name};
    ph_error error;
    struct ph__elf elf;
    struct ph__elf_error elf_error;

    if (!make_program(&program, data, size))
        return 0;
    /* Copies of just their sizes, so that a sanitizer sees any step outside. */
    uint8_t *bytes = malloc(TEXTS_END);
    if (!bytes)
        return 0;
    program_segment(&program, PROGRAM_DATA)->p_type = PT_NULL;
    program_segment(&program, PROGRAM_TLS)->p_type = PT_NULL;
    program_header_of(&program)->e_shnum = 0;
    memcpy(bytes, program.bytes, TEXTS_END);
    expect(ph__elf_parse(bytes, TEXTS_END, 0, &elf, &elf_error) && elf.has_note, "the file is sound");

    ph_status status = ph__image_read_sites(&image, bytes, &elf, program_note(&program), &error);
    if (status == PH_OK) {
        uint8_t *taken = calloc(image.word_count + 1, 1);
        for (uint32_t i = 0; i < image.site_count && taken; i++) {
            check_site(&image.sites[i], i, filters);
            expect(image.sites[i].word < image.word_count, "a site has a word");
            expect(taken[image.sites[i].word]++ == 0, "a word has one site");
        }
        free(taken);
        const uint8_t *words = ph__elf_at(bytes, &elf, image.words_gva, image.word_count * 8ull);
        expect(image.word_count == 0 || (words && image.words_gva % 8 == 0), "the words are in the file");
        for (size_t i = 0; i < image.word_count * 8ull; i++)
            expect(words[i] == 0, "the words are 0");
    } else {
        expect(status == PH_E_IMAGE && error.message[0] != 0, "a refusal says why");
        expect(image.site_count == 0, "no site is left of a table that was refused");
    }
    free(image.site_texts);
    free(image.sites);
    free(bytes);
    return 0;
}
