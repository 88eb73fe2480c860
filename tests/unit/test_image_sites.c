/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The table of trace sites is read as the guest's macros wrote it, and one that is damaged is refused with
 * the words that say why; texts come out fit to be shown.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sandbox/image.h"
#include "support/elf_program.h"
#include "support/failing.h"
#include "support/guarded.h"

/* Where in the program they are, all of it read-only data. */
#define SITES_OFFSET 0x2200u
#define WORDS_OFFSET 0x2600u
#define TEXTS_OFFSET PROGRAM_NAMES_OFFSET

static struct guarded memory;
static struct program program;
static ph_image *image;
static ph_error error;
static uint32_t sites, texts_used;

static struct ph__site_entry *entry_of(unsigned index) {
    return (struct ph__site_entry *)(program.bytes + SITES_OFFSET) + index;
}

/* Puts (size) bytes at (text), with a NUL, into the program. Returns where. */
static uint64_t add_text(const char *text, size_t size) {
    uint64_t offset = TEXTS_OFFSET + texts_used;

    memcpy(program.bytes + offset, text, size);
    program.bytes[offset + size] = 0;
    texts_used += (uint32_t)size + 1;
    return offset;
}

#define TEXT(text) add_text(text, sizeof(text) - 1)

/* Adds a site with (count) fields, which are (fields) in the form of the table. */
static struct ph__site_entry *add_site(uint8_t kind, const char *name, uint8_t count, const char *fields,
                                       size_t fields_size) {
    struct ph__site_entry *entry = entry_of(sites);

    *entry =
        (struct ph__site_entry){.line = 100 + sites, .kind = kind, .level = PH_LEVEL_INFO, .count = count};
    program_set_distance(&program, &entry->name, add_text(name, strlen(name)));
    program_set_distance(&program, &entry->file, TEXT("src/main.c"));
    program_set_distance(&program, &entry->function, TEXT("main"));
    program_set_distance(&program, &entry->fields, add_text(fields, fields_size));
    program_set_distance(&program, &entry->word, WORDS_OFFSET + 8 * sites);
    sites++;
    program_set_distance(&program, &program_note(&program)->sites_end, SITES_OFFSET + sites * sizeof *entry);
    program_set_distance(&program, &program_note(&program)->words_end, WORDS_OFFSET + 8 * sites);
    return entry;
}

static int start_with_a_sound_program(void **state) {
    struct ph__note *note = program_note(&program);

    (void)state;
    failing = (struct failing){0};
    program_init(&program);
    program_add_note(&program);
    program_set_distance(&program, &note->sites_start, SITES_OFFSET);
    program_set_distance(&program, &note->sites_end, SITES_OFFSET);
    program_set_distance(&program, &note->words_start, WORDS_OFFSET);
    program_set_distance(&program, &note->words_end, WORDS_OFFSET);
    sites = texts_used = 0;
    ph_image_close(image);
    image = NULL;
    return 0;
}

static int close_the_image(void **state) {
    (void)state;
    ph_image_close(image);
    image = NULL;
    return 0;
}

static void assert_opened(void) {
    ph_image_close(image);
    if (ph_image_open_bytes(guarded_copy(&memory, program.bytes, program.size), program.size, "program", 0,
                            &image, &error) != PH_OK)
        fail_msg("refused: %s", error.message);
}

static void assert_refused(const char *why) {
    ph_image_close(image);
    assert_int_equal(ph_image_open_bytes(program.bytes, program.size, "program", 0, &image, &error),
                     PH_E_IMAGE);
    assert_null(image);
    if (strncmp(error.message, "program: ", 9) != 0 || !strstr(error.message, why))
        fail_msg("refused with '%s' and not with '%s'", error.message, why);
}

static void a_program_may_have_no_sites(void **state) {
    (void)state;
    assert_opened();
    assert_int_equal(image->site_count, 0);
    assert_int_equal(image->word_count, 0);
    assert_int_equal(image->words_gva, 0);
    /* Nor the guest library. */
    program_segment(&program, PROGRAM_NOTE)->p_type = PT_NULL;
    assert_opened();
    assert_int_equal(image->site_count, 0);
}

static void sites_are_read_in_the_order_of_the_table(void **state) {
    static const char all[] = "\3a\0\4b\0\6c\0\7d\0\10e\0\11f\0\12g";
    static const uint8_t types[] = {PH_I64, PH_U64, PH_F64, PH_BOOL, PH_STR, PH_BYTES, PH_POINTER};
    static const uint8_t kinds[] = {PH__SITE_EVENT,   PH__SITE_LOG,         PH__SITE_FIELDS,
                                    PH__SITE_COUNTER, PH__SITE_ASYNC_BEGIN, PH__SITE_ASYNC_END,
                                    PH__SITE_FUNCTION};

    (void)state;
    add_site(PH__SITE_SPAN, "query", 7, all, sizeof all - 1)->level = PH_LEVEL_TRACE;
    for (size_t i = 0; i < sizeof kinds; i++)
        add_site(kinds[i], "other", kinds[i] == PH__SITE_COUNTER, "\6value", 6)->level = PH_LEVEL_ERROR;
    assert_opened();
    assert_int_equal(image->site_count, 8);
    assert_int_equal(image->word_count, 8);
    assert_int_equal(image->words_gva, PROGRAM_BASE + WORDS_OFFSET);

    const struct ph__site *site = &image->sites[0];
    assert_string_equal(site->name, "query");
    assert_string_equal(site->file, "src/main.c");
    assert_string_equal(site->function, "main");
    assert_int_equal(site->line, 100);
    assert_int_equal(site->word, 0);
    assert_int_equal(site->kind, PH__SITE_SPAN);
    assert_int_equal(site->level, PH_LEVEL_TRACE);
    assert_int_equal(site->count, 7);
    assert_memory_equal(site->types, types, sizeof types);
    for (int i = 0; i < 7; i++) {
        const char name[] = {(char)('a' + i), 0};
        assert_string_equal(site->fields[i], name);
    }
    for (uint32_t i = 1; i < 8; i++) {
        assert_int_equal(image->sites[i].kind, kinds[i - 1]);
        assert_int_equal(image->sites[i].line, 100 + i);
        assert_int_equal(image->sites[i].word, i);
        assert_int_equal(image->sites[i].level, PH_LEVEL_ERROR);
    }
    assert_string_equal(image->sites[4].fields[0], "value");
}

static void equal_texts_are_kept_once(void **state) {
    (void)state;
    add_site(PH__SITE_EVENT, "main", 0, "", 0);
    add_site(PH__SITE_EVENT, "src/main.cc", 0, "", 0);
    add_site(PH__SITE_EVENT, "src/main", 0, "", 0);
    assert_opened();
    assert_ptr_equal(image->sites[0].file, image->sites[1].file);
    assert_ptr_equal(image->sites[0].function, image->sites[2].function);
    assert_ptr_equal(image->sites[0].function, image->sites[0].name);
    assert_string_equal(image->sites[1].name, "src/main.cc");
    assert_string_equal(image->sites[2].name, "src/main");
}

static void words_may_be_in_any_order(void **state) {
    (void)state;
    program_set_distance(&program, &add_site(PH__SITE_EVENT, "a", 0, "", 0)->word, WORDS_OFFSET + 8);
    program_set_distance(&program, &add_site(PH__SITE_EVENT, "b", 0, "", 0)->word, WORDS_OFFSET + 24);
    program_set_distance(&program, &program_note(&program)->words_end, WORDS_OFFSET + 32);
    assert_opened();
    assert_int_equal(image->word_count, 4);
    assert_int_equal(image->sites[0].word, 1);
    assert_int_equal(image->sites[1].word, 3);
}

static void static_pie_is_moved_by_its_bias(void **state) {
    (void)state;
    add_site(PH__SITE_SPAN, "query", 1, "\3rows", 5);
    program_make_pie(&program);
    assert_opened();
    assert_int_equal(image->words_gva, PROGRAM_BASE + WORDS_OFFSET);
    assert_string_equal(image->sites[0].fields[0], "rows");
}

static void the_table_must_be_whole_and_in_the_file(void **state) {
    struct ph__note *note = program_note(&program);

    (void)state;
    add_site(PH__SITE_EVENT, "event", 0, "", 0);
    program_set_distance(&program, &note->sites_end, SITES_OFFSET + 31);
    assert_refused("the table of trace sites is damaged: it has no whole number of entries");
    program_set_distance(&program, &note->sites_end, SITES_OFFSET - 32);
    assert_refused("the table of trace sites is damaged: it has no whole number of entries");
    program_set_distance(&program, &note->sites_end, SITES_OFFSET + 32 * 0xfffff);
    assert_refused("the table of trace sites is damaged: it is not inside a segment");
    program_set_distance(&program, &note->sites_end, SITES_OFFSET + 32 * 0x100000);
    assert_refused("there are 1048576 trace sites, more than the 1048575 that are possible");
    note->sites_start = INT32_MIN;
    note->sites_end = INT32_MIN + 28;
    assert_refused("the table of trace sites is damaged: it is not inside a segment");
}

static void the_words_are_zeros_that_the_guest_cannot_write(void **state) {
    struct ph__note *note = program_note(&program);

    (void)state;
    add_site(PH__SITE_EVENT, "event", 0, "", 0);
    program_set_distance(&program, &note->words_end, WORDS_OFFSET + 7);
    assert_refused("they are no aligned words");
    program_set_distance(&program, &note->words_end, WORDS_OFFSET - 8);
    assert_refused("they are no aligned words");
    program_set_distance(&program, &note->words_start, WORDS_OFFSET + 4);
    program_set_distance(&program, &note->words_end, WORDS_OFFSET + 12);
    assert_refused("they are no aligned words");
    program_set_distance(&program, &note->words_start, WORDS_OFFSET);
    program_set_distance(&program, &note->words_end, WORDS_OFFSET + 8 * 0x100000);
    assert_refused("there are words for 1048576 trace sites");
    program_set_distance(&program, &note->words_end, 0x4000);
    assert_refused("they are not inside a segment of the file");

    program_set_distance(&program, &note->words_end, WORDS_OFFSET + 8);
    program.bytes[WORDS_OFFSET + 7] = 1;
    assert_refused("they are not 0");
    program.bytes[WORDS_OFFSET + 7] = 0;
    assert_opened();

    memset(program.bytes + PROGRAM_DATA_OFFSET, 0, 8);
    program_set_distance(&program, &note->words_start, PROGRAM_DATA_OFFSET);
    program_set_distance(&program, &note->words_end, PROGRAM_DATA_OFFSET + 8);
    program_set_distance(&program, &entry_of(0)->word, PROGRAM_DATA_OFFSET);
    assert_refused("they are writable");
    /* In memory, but not in the file. */
    program_set_distance(&program, &note->words_start, PROGRAM_DATA_OFFSET + PROGRAM_DATA_SIZE);
    program_set_distance(&program, &note->words_end, PROGRAM_DATA_OFFSET + PROGRAM_DATA_SIZE + 8);
    assert_refused("they are not inside a segment of the file");
}

static void a_site_has_a_word_of_its_own(void **state) {
    struct ph__site_entry *entry;

    (void)state;
    add_site(PH__SITE_EVENT, "first", 0, "", 0);
    entry = add_site(PH__SITE_EVENT, "second", 0, "", 0);
    program_set_distance(&program, &entry->word, WORDS_OFFSET);
    assert_refused("trace site 1 is damaged: it has the word of another site");
    program_set_distance(&program, &entry->word, WORDS_OFFSET + 16);
    assert_refused("trace site 1 is damaged: it has no word among those of the sites");
    program_set_distance(&program, &entry->word, WORDS_OFFSET - 8);
    assert_refused("trace site 1 is damaged: it has no word");
    program_set_distance(&program, &entry->word, WORDS_OFFSET + 12);
    assert_refused("trace site 1 is damaged: it has no word");
    entry->word = INT32_MIN;
    assert_refused("trace site 1 is damaged: it has no word");
    entry->word = 0;
    assert_refused("trace site 1 is damaged: it has no word");
    program_set_distance(&program, &entry->word, WORDS_OFFSET + 8);
    assert_opened();
    program_set_distance(&program, &program_note(&program)->words_end, WORDS_OFFSET);
    assert_refused("trace site 0 is damaged: it has no word");
}

static void kinds_levels_and_fields_are_those_that_there_are(void **state) {
    struct ph__site_entry *entry = entry_of(0);
    static const char thirteen[] = "\3a\0\3b\0\3c\0\3d\0\3e\0\3f\0\3g\0\3h\0\3i\0\3j\0\3k\0\3l\0\3m";

    (void)state;
#define DAMAGED(damage, why)                                                                                 \
    do {                                                                                                     \
        start_with_a_sound_program(NULL);                                                                    \
        add_site(PH__SITE_SPAN, "span", 12, thirteen, sizeof thirteen - 1);                                  \
        assert_opened();                                                                                     \
        damage;                                                                                              \
        assert_refused("trace site 0 is damaged: " why);                                                     \
    } while (0)
    DAMAGED(entry->kind = 0, "it is of no kind");
    DAMAGED(entry->kind = PH__SITE_FUNCTION + 1, "it is of no kind");
    DAMAGED(entry->kind = UINT8_MAX, "it is of no kind");
    DAMAGED(entry->reserved[0] = 1, "its reserved bytes");
    DAMAGED(entry->reserved[4] = 1, "its reserved bytes");
    DAMAGED(entry->count = 13, "it has more or fewer fields");
    DAMAGED(entry->count = UINT8_MAX, "it has more or fewer fields");
    DAMAGED(entry->kind = PH__SITE_COUNTER, "it has more or fewer fields");
    DAMAGED((entry->kind = PH__SITE_COUNTER, entry->count = 0), "it has more or fewer fields");
    DAMAGED(entry->kind = PH__SITE_LOG, "it has more or fewer fields");
    DAMAGED(entry->kind = PH__SITE_FUNCTION, "it has more or fewer fields");
    uint8_t *type = program.bytes + TEXTS_OFFSET + sizeof "span" + sizeof "src/main.c" + sizeof "main";
    DAMAGED(*type = PH_VOID, "it has a field of no type");
    DAMAGED(*type = PH_I32, "it has a field of no type");
    DAMAGED(*type = PH_POINTER + 1, "it has a field of no type");
    DAMAGED(type[3] = PH_F32, "it has a field of no type");
    DAMAGED((entry->kind = PH__SITE_COUNTER, entry->count = 1, *type = PH_U64), "a counter's value");
    DAMAGED((entry->kind = PH__SITE_COUNTER, entry->count = 1, *type = PH_STR), "a counter's value");
#undef DAMAGED
}

static void a_level_that_there_is_not_is_refused_with_its_place(void **state) {
    struct ph__site_entry *entry;

    (void)state;
    add_site(PH__SITE_EVENT, "sound", 0, "", 0);
    entry = add_site(PH__SITE_SPAN, "sp\x1b\nan", 0, "", 0);
    entry->level = 0;
    assert_refused("trace site 1 (\"sp??an\", src/main.c:101) has level 0, which is none");
    entry->level = 6;
    assert_refused("trace site 1 (\"sp??an\", src/main.c:101) has level 6, which is none");
    entry->level = PH_LEVEL_TRACE;
    assert_opened();
}

static void texts_end_inside_their_segment(void **state) {
    struct ph__site_entry *entry = entry_of(0);
    static const uint32_t ends[] = {PROGRAM_RODATA_OFFSET + PROGRAM_RODATA_SIZE,
                                    PROGRAM_DATA_OFFSET + PROGRAM_DATA_SIZE};

    (void)state;
    add_site(PH__SITE_SPAN, "span", 1, "\3field", 6);
    int32_t *const fields[] = {&entry->name, &entry->file, &entry->function, &entry->fields};
    for (size_t i = 0; i < 4; i++) {
        int32_t before = *fields[i];
        for (size_t j = 0; j < 2; j++) {
            uint8_t *end = program.bytes + ends[j];
            memset(end - 4, 3, 4);
            program_set_distance(&program, fields[i], ends[j] - 4);
            assert_refused("trace site 0 is damaged: a text of it does not end inside a segment");
            end[-1] = 0;
            assert_opened();
            program_set_distance(&program, fields[i], ends[j]);
            assert_refused("trace site 0 is damaged");
        }
        *fields[i] = INT32_MIN;
        assert_refused("trace site 0 is damaged");
        *fields[i] = INT32_MAX;
        assert_refused("trace site 0 is damaged");
        *fields[i] = before;
        assert_opened();
    }
    /* The second field begins beyond the end. */
    program.bytes[PROGRAM_RODATA_OFFSET + PROGRAM_RODATA_SIZE - 3] = PH_I64;
    memcpy(program.bytes + PROGRAM_RODATA_OFFSET + PROGRAM_RODATA_SIZE - 2, "x", 2);
    program_set_distance(&program, &entry->fields, PROGRAM_RODATA_OFFSET + PROGRAM_RODATA_SIZE - 3);
    assert_opened();
    entry->count = 2;
    assert_refused("trace site 0 is damaged: it has a field of no type");
}

static void texts_are_made_fit_to_be_shown(void **state) {
    struct ph__site_entry *entry;

    (void)state;
    entry = add_site(PH__SITE_SPAN, "ev\x1b[2J\xff \xc3\xa9", 1, "\3li\nne", 6);
    program_set_distance(&program, &entry->file, TEXT("x\xe2\x80\xaey.c"));
    program_set_distance(&program, &entry->function, TEXT("\x80"));
    add_site(PH__SITE_LOG, "tab\t%d\x1b\xff\n", 0, "", 0);
    add_site(PH__SITE_FUNCTION, "", 0, "", 0);
    assert_opened();
    assert_string_equal(image->sites[0].name, "ev?[2J? \xc3\xa9");
    assert_string_equal(image->sites[0].file, "x?y.c");
    assert_string_equal(image->sites[0].function, "?");
    assert_string_equal(image->sites[0].fields[0], "li?ne");
    assert_string_equal(image->sites[1].name, "tab\t%d\x1b\xef\xbf\xbd\n");
    assert_string_equal(image->sites[2].name, "");
}

static void long_texts_are_cut_between_characters(void **state) {
    static char text[8192];
    struct ph__site_entry *entry;

    (void)state;
    program_set_segment(&program, PROGRAM_SPARE, PT_LOAD, PF_R, PROGRAM_BLANK_OFFSET, PROGRAM_BLANK_SIZE,
                        PROGRAM_BLANK_SIZE);
    program_segment(&program, PROGRAM_SPARE)->p_vaddr += 0x10000;
    entry = add_site(PH__SITE_SPAN, "span", 2, "", 0);
    memset(text, 'n', sizeof text);
    text[254] = '\xc3';
    text[255] = '\xa9';
    memcpy(program.bytes + PROGRAM_BLANK_OFFSET, text, 5000);
    program_set_distance(&program, &entry->name, 0x10000 + PROGRAM_BLANK_OFFSET);
    program_set_distance(&program, &entry->file, 0x10000 + PROGRAM_BLANK_OFFSET);
    program_set_distance(&program, &entry->function, 0x10000 + PROGRAM_BLANK_OFFSET + 256);
    /* A long name of a field, and one behind it. */
    program.bytes[PROGRAM_BLANK_OFFSET + 5001] = PH_I64;
    memcpy(program.bytes + PROGRAM_BLANK_OFFSET + 5002, text + 256, 300);
    memcpy(program.bytes + PROGRAM_BLANK_OFFSET + 5303, "\4next", 6);
    program_set_distance(&program, &entry->fields, 0x10000 + PROGRAM_BLANK_OFFSET + 5001);
    entry = add_site(PH__SITE_LOG, "", 0, "", 0);
    program_set_distance(&program, &entry->name, 0x10000 + PROGRAM_BLANK_OFFSET);
    assert_opened();
    assert_int_equal(strlen(image->sites[0].name), 254);
    assert_int_equal(strlen(image->sites[0].file), 1023);
    assert_int_equal(strlen(image->sites[0].function), 1023);
    assert_int_equal(strlen(image->sites[0].fields[0]), 255);
    assert_string_equal(image->sites[0].fields[1], "next");
    assert_int_equal(strlen(image->sites[1].name), 4096);
}

static void every_failing_call_leaves_nothing_behind(void **state) {
    (void)state;
    add_site(PH__SITE_SPAN, "span", 1, "\3rows", 5);
    add_site(PH__SITE_LOG, "%d", 0, "", 0);
    for (unsigned at = 1;; at++) {
        failing = (struct failing){.at = at};
        ph_status status = ph_image_open_bytes(program.bytes, program.size, "program", 0, &image, &error);
        const char *failed = failing.failed;
        failing = (struct failing){0};
        if (!failed) {
            assert_int_equal(status, PH_OK);
            assert_true(at > 12);
            return;
        }
        assert_null(image);
        assert_int_equal(error.status, status);
        assert_true(status == PH_E_MEMORY || status == PH_E_SYSTEM);
    }
}

/* A file with (count) sites, of which site (i) has its texts at bytes(i) behind the words. Room for (texts)
 * bytes there. */
static uint8_t *make_large(uint32_t count, uint32_t texts, size_t *size) {
    uint32_t words = PROGRAM_SIZE + count * 32;
    uint32_t end = words + (count * 8 + 63) / 64 * 64 + texts;
    struct ph__note *note;

    *size = end;
    uint8_t *bytes = calloc(1, end);
    program_set_segment(&program, PROGRAM_SPARE, PT_LOAD, PF_R, PROGRAM_SIZE, end - PROGRAM_SIZE,
                        end - PROGRAM_SIZE);
    note = program_note(&program);
    program_set_distance(&program, &note->sites_start, PROGRAM_SIZE);
    program_set_distance(&program, &note->sites_end, words);
    program_set_distance(&program, &note->words_start, words);
    program_set_distance(&program, &note->words_end, words + count * 8);
    memcpy(bytes, program.bytes, PROGRAM_SIZE);
    memset(bytes + end - texts, 'a', texts);
    bytes[end - 1] = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = PROGRAM_SIZE + i * 32;
        struct ph__site_entry entry = {.kind = PH__SITE_SPAN, .level = 1, .line = i};
        uint32_t text = end - texts + i % texts;
        entry.name = (int32_t)(text - at);
        entry.file = (int32_t)(text - at - 4);
        entry.function = (int32_t)(text - at - 8);
        entry.word = (int32_t)(words + i * 8 - at - 16);
        memcpy(bytes + at, &entry, sizeof entry);
    }
    return bytes;
}

static void there_may_be_a_million_sites(void **state) {
    size_t size;
    uint8_t *bytes = make_large(PH__SITE_MAX, 16, &size);

    (void)state;
    assert_int_equal(ph_image_open_bytes(bytes, size, "large", 0, &image, &error), PH_OK);
    assert_int_equal(image->site_count, PH__SITE_MAX);
    assert_int_equal(image->sites[PH__SITE_MAX - 1].word, PH__SITE_MAX - 1);
    assert_string_equal(image->sites[1].name, "aaaaaaaaaaaaaa");
    assert_ptr_equal(image->sites[0].file, image->sites[16].name);
    free(bytes);
}

static void a_small_file_does_not_become_a_large_one(void **state) {
    size_t size;
    uint8_t *bytes = make_large(1 << 17, 8192, &size);

    (void)state;
    assert_int_equal(ph_image_open_bytes(bytes, size, "large", 0, &image, &error), PH_E_IMAGE);
    assert_non_null(strstr(error.message, "longer than 256 MiB together"));
    free(bytes);
}

static void real_tables_are_read(void **state) {
    static const char *const programs[] = {"tables", "tables-pie"};
    char path[4096];

    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", getenv("PH_TEST_PROGRAMS"), programs[i]);
        ph_image_close(image);
        if (ph_image_open(path, 0, &image, &error) != PH_OK)
            fail_msg("refused: %s", error.message);
        assert_int_equal(image->site_count, 3);
        assert_int_equal(image->word_count, 3);
        assert_string_equal(image->sites[0].name, "query");
        assert_string_equal(image->sites[0].fields[1], "table");
        assert_int_equal(image->sites[0].types[1], PH_STR);
        assert_int_equal(image->sites[0].word, 1);
        assert_string_equal(image->sites[1].name, "%d rows of %s\n");
        assert_string_equal(image->sites[2].file, "src/main.c");
    }
}

static int make_memory(void **state) {
    (void)state;
    guarded_init(&memory, PROGRAM_SIZE);
    return 0;
}

static int free_memory(void **state) {
    (void)state;
    guarded_free(&memory);
    return 0;
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start_with_a_sound_program, close_the_image)
    const struct CMUnitTest tests[] = {
        TEST(a_program_may_have_no_sites),
        TEST(sites_are_read_in_the_order_of_the_table),
        TEST(equal_texts_are_kept_once),
        TEST(words_may_be_in_any_order),
        TEST(static_pie_is_moved_by_its_bias),
        TEST(the_table_must_be_whole_and_in_the_file),
        TEST(the_words_are_zeros_that_the_guest_cannot_write),
        TEST(a_site_has_a_word_of_its_own),
        TEST(kinds_levels_and_fields_are_those_that_there_are),
        TEST(a_level_that_there_is_not_is_refused_with_its_place),
        TEST(texts_end_inside_their_segment),
        TEST(texts_are_made_fit_to_be_shown),
        TEST(long_texts_are_cut_between_characters),
        TEST(every_failing_call_leaves_nothing_behind),
        TEST(there_may_be_a_million_sites),
        TEST(a_small_file_does_not_become_a_large_one),
        TEST(real_tables_are_read),
    };
    return cmocka_run_group_tests_name("image_sites", tests, make_memory, free_memory);
}
