/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reads the table of trace sites that the guest's macros put into a program (abi/trace.h), as hostile as all
 * of the file. Text that is only odd is made fit to be shown; what would make the host misread a record, or
 * map a page where the guest does not expect it, is refused.
 */
#include "sandbox/image_parts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "abi/table.h"
#include "base/error.h"
#include "trace/text.h"

/* Bytes of texts that are kept; longer ones are cut. */
#define NAME_BYTES_MAX 255u
#define PATH_BYTES_MAX 1023u
#define FORMAT_BYTES_MAX 4096u

/* How far a text's end is looked for. */
#define TEXT_SCAN_MAX (64u << 10)

/* The most bytes of texts that all sites have together: a small file can have a million sites point into the
 * same kilobyte, each a byte further on. */
#define TEXTS_MAX (256ull << 20)

/* How far the search for a text that is known already goes. Sharing saves memory and nothing else, so a file
 * that makes hashes collide gains nothing. */
#define SLOTS_PROBED 8u
#define SLOTS_MAX (1u << 20)

enum text_kind {
    TEXT_NAME,
    TEXT_PATH,
    TEXT_FORMAT,
};

/* Positions in the texts: these move as they grow. */
struct positions {
    uint32_t name, file, function;
    uint32_t fields[PH__TRACE_FIELDS_MAX];
};

struct reader {
    ph_image *image;
    const uint8_t *bytes;
    const struct ph__elf *elf;
    ph_error *error;
    struct positions *positions;
    uint64_t seen; /* bytes of texts, up to TEXTS_MAX */
    size_t used, capacity;
    /* Positions of texts, plus one; 0 is an empty slot. */
    uint32_t *slots;
    uint32_t slot_count;  /* a power of two */
    uint8_t *words_taken; /* a bit for each word */
};

static ph_status refuse_site(const struct reader *reader, uint32_t number, const char *what) {
    return ph__image_refuse(reader->image, reader->error, "trace site %u is damaged: %s", number, what);
}

/* What a program can do by mistake, so this says where: a level that is a cast, or no constant of ours. The
 * texts of the site have been taken. */
static ph_status refuse_level(const struct reader *reader, uint32_t number, const struct ph__site *site) {
    const struct positions *positions = &reader->positions[number];
    const char *texts = reader->image->site_texts;

    return ph__image_refuse(reader->image, reader->error,
                            "trace site %u (\"%.60s\", %.120s:%u) has level %u, which is none", number,
                            texts + positions->name, texts + positions->file, site->line, site->level);
}

static ph_status no_memory(ph_error *error) {
    return ph__error_set(error, PH_E_MEMORY, "no memory for the image's trace sites");
}

static uint64_t hash(const char *text, size_t length) {
    uint64_t value = 0xcbf29ce484222325ull;

    for (size_t i = 0; i < length; i++)
        value = (value ^ (uint8_t)text[i]) * 0x100000001b3ull;
    return value ^ value >> 32;
}

/* Keeps the (length) bytes at (text) and a NUL, or finds that it has them. */
static bool text_keep(struct reader *reader, const char *text, size_t length, uint32_t *position) {
    uint32_t mask = reader->slot_count - 1;
    uint32_t first = (uint32_t)hash(text, length) & mask;
    uint32_t *slot = &reader->slots[first];

    for (uint32_t i = 0; i < SLOTS_PROBED; i++) {
        slot = &reader->slots[(first + i) & mask];
        if (*slot == 0)
            break;
        const char *kept = reader->image->site_texts + (*slot - 1);
        if (reader->used - (*slot - 1) > length && memcmp(kept, text, length) == 0 && kept[length] == 0) {
            *position = *slot - 1;
            return true;
        }
    }
    if (reader->capacity - reader->used <= length) {
        size_t capacity = 2 * reader->capacity + length + 4096;
        char *texts = realloc(reader->image->site_texts, capacity);
        if (!texts)
            return false;
        reader->image->site_texts = texts;
        reader->capacity = capacity;
    }
    memcpy(reader->image->site_texts + reader->used, text, length);
    reader->image->site_texts[reader->used + length] = 0;
    *position = (uint32_t)reader->used;
    *slot = *position + 1;
    reader->used += length + 1;
    return true;
}

/* Takes the text at the (untrusted_address) of site (number). (*length), unless NULL, gets its bytes in the
 * file. */
static ph_status text_take(struct reader *reader, uint32_t number, uint64_t untrusted_address,
                           enum text_kind kind, uint32_t *position, uint64_t *length) {
    static const uint32_t most[] = {NAME_BYTES_MAX, PATH_BYTES_MAX, FORMAT_BYTES_MAX};
    char text[3 * FORMAT_BYTES_MAX + 1];
    uint64_t available = ph__elf_available(reader->elf, untrusted_address);
    size_t limit = available < TEXT_SCAN_MAX ? (size_t)available : TEXT_SCAN_MAX;
    const char *untrusted_text =
        (const char *)ph__elf_at(reader->bytes, reader->elf, untrusted_address, limit);
    size_t size = untrusted_text ? strnlen(untrusted_text, limit) : 0;

    if (size == limit || !untrusted_text)
        return refuse_site(reader, number, "a text of it does not end inside a segment of the file");
    if (length)
        *length = size;
    reader->seen += size + 1;
    if (reader->seen > TEXTS_MAX)
        return ph__image_refuse(reader->image, reader->error,
                                "the texts of its trace sites are longer than %llu MiB together",
                                TEXTS_MAX >> 20);
    if (size > most[kind]) {
        size = most[kind];
        while (size > most[kind] - 3 && (untrusted_text[size] & 0xc0) == 0x80)
            size--;
    }
    if (kind == TEXT_FORMAT)
        size = ph__text_make_valid(text, untrusted_text, size, false);
    else
        size = ph__text_copy_printable(text, sizeof text, untrusted_text, size);
    return text_keep(reader, text, size, position) ? PH_OK : no_memory(reader->error);
}

static bool is_field_type(uint8_t type) {
    return type == PH_I64 || type == PH_U64 || type == PH_F64 || type == PH_BOOL || type == PH_STR ||
           type == PH_BYTES || type == PH_POINTER;
}

/* Takes the types and names of the fields from the (untrusted_address) on. */
static ph_status fields_take(struct reader *reader, uint32_t number, uint64_t untrusted_address,
                             struct ph__site *site) {
    for (uint32_t i = 0; i < site->count; i++) {
        const uint8_t *untrusted_type = ph__elf_at(reader->bytes, reader->elf, untrusted_address, 1);
        uint64_t length = 0;

        if (!untrusted_type || !is_field_type(*untrusted_type))
            return refuse_site(reader, number, "it has a field of no type");
        site->types[i] = *untrusted_type;
        ph_status status = text_take(reader, number, untrusted_address + 1, TEXT_NAME,
                                     &reader->positions[number].fields[i], &length);
        if (status != PH_OK)
            return status;
        untrusted_address += 1 + length + 1;
    }
    return PH_OK;
}

/* Whether a site of (kind) can have these fields. What a log's values are is in its records. */
static bool is_count_right(const struct ph__site *site) {
    switch ((enum ph__site_kind)site->kind) {
    case PH__SITE_LOG:
    case PH__SITE_FUNCTION:
        return site->count == 0;
    case PH__SITE_COUNTER:
        return site->count == 1;
    default:
        return site->count <= PH__TRACE_FIELDS_MAX;
    }
}

/* Takes the word at the (untrusted_address), which no other site has. */
static ph_status word_take(struct reader *reader, uint32_t number, uint64_t untrusted_address,
                           struct ph__site *site) {
    uint64_t offset = untrusted_address - reader->image->words_gva;

    if (offset % sizeof(uint64_t) != 0 || offset / sizeof(uint64_t) >= reader->image->word_count)
        return refuse_site(reader, number, "it has no word among those of the sites");
    site->word = (uint32_t)(offset / sizeof(uint64_t));
    if (reader->words_taken[site->word / 8] >> site->word % 8 & 1)
        return refuse_site(reader, number, "it has the word of another site");
    reader->words_taken[site->word / 8] |= (uint8_t)(1u << site->word % 8);
    return PH_OK;
}

/* Takes site (number), whose entry is at (address) and reads (untrusted_entry). */
static ph_status site_take(struct reader *reader, uint32_t number, uint64_t address,
                           const struct ph__site_entry *untrusted_entry) {
    static const uint8_t no_reserved[sizeof untrusted_entry->reserved];
    struct ph__site *site = &reader->image->sites[number];
    struct positions *positions = &reader->positions[number];
    ph_status status;

    if (untrusted_entry->kind < PH__SITE_SPAN || untrusted_entry->kind > PH__SITE_FUNCTION)
        return refuse_site(reader, number, "it is of no kind");
    if (memcmp(untrusted_entry->reserved, no_reserved, sizeof no_reserved) != 0)
        return refuse_site(reader, number, "its reserved bytes are not 0");
    site->kind = untrusted_entry->kind;
    site->level = untrusted_entry->level;
    site->count = untrusted_entry->count;
    site->line = untrusted_entry->line;
    if (!is_count_right(site))
        return refuse_site(reader, number, "it has more or fewer fields than it can have");

/* Distances count from the field that holds them. */
#define ADDRESS(field)                                                                                       \
    (address + offsetof(struct ph__site_entry, field) + (uint64_t)(int64_t)untrusted_entry->field)
    status = text_take(reader, number, ADDRESS(name), site->kind == PH__SITE_LOG ? TEXT_FORMAT : TEXT_NAME,
                       &positions->name, NULL);
    if (status != PH_OK)
        return status;
    status = text_take(reader, number, ADDRESS(file), TEXT_PATH, &positions->file, NULL);
    if (status != PH_OK)
        return status;
    status = text_take(reader, number, ADDRESS(function), TEXT_PATH, &positions->function, NULL);
    if (status != PH_OK)
        return status;
    if (site->level < PH_LEVEL_ERROR || site->level > PH_LEVEL_TRACE)
        return refuse_level(reader, number, site);
    status = fields_take(reader, number, ADDRESS(fields), site);
    if (status != PH_OK)
        return status;
    if (site->kind == PH__SITE_COUNTER && site->types[0] != PH_I64 && site->types[0] != PH_F64)
        return refuse_site(reader, number, "a counter's value is an i64 or an f64");
    return word_take(reader, number, ADDRESS(word), site);
#undef ADDRESS
}

static const struct ph__elf_segment *segment_at(const struct ph__elf *elf, uint64_t address) {
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        const struct ph__elf_segment *segment = &elf->segments[i];
        if (address >= segment->address && address - segment->address < segment->file_size)
            return segment;
    }
    return NULL;
}

/* Finds the sites' words between the addresses (untrusted_start) and (untrusted_end). The host maps pages of
 * its own there: read-only ones, so nothing that the guest could write may be there before. */
static ph_status words_find(struct reader *reader, uint64_t untrusted_start, uint64_t untrusted_end) {
    uint64_t untrusted_size = untrusted_end - untrusted_start;
    uint64_t count = untrusted_size / sizeof(uint64_t);
    const struct ph__elf_segment *segment = segment_at(reader->elf, untrusted_start);
    const char *why = NULL;

    if (untrusted_end < untrusted_start || untrusted_size % sizeof(uint64_t) != 0 ||
        untrusted_start % sizeof(uint64_t) != 0)
        return ph__image_refuse(reader->image, reader->error,
                                "the words of its trace sites are damaged: they are no aligned words");
    if (count > PH__SITE_MAX)
        return ph__image_refuse(reader->image, reader->error,
                                "there are words for %llu trace sites, more than the %u that are possible",
                                (unsigned long long)count, PH__SITE_MAX);
    if (count == 0)
        return PH_OK;
    const uint8_t *words = ph__elf_at(reader->bytes, reader->elf, untrusted_start, untrusted_size);
    if (!words || !segment)
        why = "they are not inside a segment of the file";
    else if (segment->writable)
        why = "they are writable";
    for (uint64_t i = 0; !why && i < untrusted_size; i++)
        if (words[i] != 0)
            why = "they are not 0";
    if (why)
        return ph__image_refuse(reader->image, reader->error, "the words of its trace sites are damaged: %s",
                                why);
    reader->image->words_gva = untrusted_start;
    reader->image->word_count = (uint32_t)count;
    return PH_OK;
}

/* Reads the table between the addresses (untrusted_start) and (untrusted_end). */
static ph_status sites_take(struct reader *reader, uint64_t untrusted_start, uint64_t untrusted_end) {
    uint64_t untrusted_size = untrusted_end - untrusted_start;
    uint64_t count = untrusted_size / sizeof(struct ph__site_entry);
    ph_image *image = reader->image;

    if (untrusted_end < untrusted_start || untrusted_size % sizeof(struct ph__site_entry) != 0)
        return ph__image_refuse(image, reader->error,
                                "the table of trace sites is damaged: it has no whole number of entries");
    if (count > PH__SITE_MAX)
        return ph__image_refuse(image, reader->error,
                                "there are %llu trace sites, more than the %u that are possible",
                                (unsigned long long)count, PH__SITE_MAX);
    if (count == 0)
        return PH_OK;
    const uint8_t *start = ph__elf_at(reader->bytes, reader->elf, untrusted_start, untrusted_size);
    if (!start)
        return ph__image_refuse(
            image, reader->error,
            "the table of trace sites is damaged: it is not inside a segment of the file");

    reader->slot_count = 64;
    while (reader->slot_count < 4 * count && reader->slot_count < SLOTS_MAX)
        reader->slot_count *= 2;
    reader->slots = calloc(reader->slot_count, sizeof *reader->slots);
    reader->positions = calloc(count, sizeof *reader->positions);
    reader->words_taken = calloc(image->word_count / 8 + 1, 1);
    image->sites = calloc(count, sizeof *image->sites);
    if (!reader->slots || !reader->positions || !reader->words_taken || !image->sites)
        return no_memory(reader->error);

    for (uint32_t i = 0; i < count; i++) {
        struct ph__site_entry untrusted_entry;
        memcpy(&untrusted_entry, start + i * sizeof untrusted_entry, sizeof untrusted_entry);
        ph_status status =
            site_take(reader, i, untrusted_start + i * sizeof untrusted_entry, &untrusted_entry);
        if (status != PH_OK)
            return status;
    }
    /* The texts stay where they are from here on. */
    for (uint32_t i = 0; i < count; i++) {
        struct ph__site *site = &image->sites[i];
        const struct positions *positions = &reader->positions[i];
        site->name = image->site_texts + positions->name;
        site->file = image->site_texts + positions->file;
        site->function = image->site_texts + positions->function;
        for (uint32_t j = 0; j < site->count; j++)
            site->fields[j] = image->site_texts + positions->fields[j];
    }
    image->site_count = count;
    return PH_OK;
}

ph_status ph__image_read_sites(ph_image *image, const uint8_t *bytes, const struct ph__elf *elf,
                               const struct ph__note *untrusted_note, ph_error *error) {
    struct reader reader = {.image = image, .bytes = bytes, .elf = elf, .error = error};
    ph_status status;

#define ADDRESS(field)                                                                                       \
    (elf->note_address + offsetof(struct ph__note, field) + (uint64_t)(int64_t)untrusted_note->field)
    status = words_find(&reader, ADDRESS(words_start), ADDRESS(words_end));
    if (status == PH_OK)
        status = sites_take(&reader, ADDRESS(sites_start), ADDRESS(sites_end));
#undef ADDRESS
    free(reader.words_taken);
    free(reader.positions);
    free(reader.slots);
    return status;
}
