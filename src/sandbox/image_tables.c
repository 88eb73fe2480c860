/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reads the tables of exports and imports that the guest library put into a program (abi/table.h). They are
 * read from the file, once, and copied: what a guest does to its own memory later changes nothing here. Every
 * distance, size, name and type in them is hostile.
 */
#include "sandbox/image_parts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "abi/control.h"
#include "abi/table.h"
#include "base/error.h"

/* One entry of a table, checked. (name) points into the file, (length) bytes long. */
struct entry {
    const char *name;
    uint32_t length;
    uint32_t first; /* position of the first entry with this name */
    ph_signature signature;
};

struct table {
    const char *what; /* "export" or "import", for messages */
    uint32_t count;
    struct entry *entries;
};

/* The name at the (untrusted_address), NULL when it does not end within PH__NAME_MAX bytes and its segment,
 * or is not something to call a function by: it ends up in messages, on command lines and in traces. */
static const char *name_at(const uint8_t *bytes, const struct ph__elf *elf, uint64_t untrusted_address,
                           uint32_t *length) {
    char printable[PH__NAME_MAX + 1];
    uint64_t available = ph__elf_available(elf, untrusted_address);
    size_t limit = available < PH__NAME_MAX + 1 ? (size_t)available : PH__NAME_MAX + 1;
    const char *untrusted_name = (const char *)ph__elf_at(bytes, elf, untrusted_address, limit);

    if (!untrusted_name)
        return NULL;
    size_t size = strnlen(untrusted_name, limit);
    if (size == limit || size == 0)
        return NULL;
    if (ph__text_copy_printable(printable, sizeof printable, untrusted_name, size) != size ||
        memcmp(printable, untrusted_name, size) != 0 || memchr(printable, ' ', size))
        return NULL;
    *length = (uint32_t)size;
    return untrusted_name;
}

static bool take_signature(const struct ph__function_entry *untrusted_entry, ph_signature *signature) {
    if (untrusted_entry->count > PH_MAX_ARGS || untrusted_entry->result > PH_BYTES ||
        untrusted_entry->reserved != 0)
        return false;
    *signature = (ph_signature){.result = (ph_type)untrusted_entry->result, .count = untrusted_entry->count};
    for (uint32_t i = 0; i < PH_MAX_ARGS; i++) {
        uint8_t untrusted_type = untrusted_entry->args[i];
        if (i >= signature->count ? untrusted_type != 0
                                  : untrusted_type == PH_VOID || untrusted_type > PH_BYTES)
            return false;
        signature->args[i] = (ph_type)untrusted_type;
    }
    return true;
}

/* Whether an export's thunk lies in code. Only the guest ever goes there; this is to find damage early. */
static bool is_code(const struct ph__elf *elf, uint64_t untrusted_address) {
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        const struct ph__elf_segment *segment = &elf->segments[i];
        if (untrusted_address >= segment->address &&
            untrusted_address - segment->address < segment->file_size)
            return segment->executable;
    }
    return false;
}

/* Reads and checks the table between the addresses (untrusted_start) and (untrusted_end). */
static ph_status read_entries(const ph_image *image, const uint8_t *bytes, const struct ph__elf *elf,
                              uint64_t untrusted_start, uint64_t untrusted_end, bool exports,
                              struct table *table, ph_error *error) {
    uint64_t untrusted_size = untrusted_end - untrusted_start;
    uint64_t count = untrusted_size / sizeof(struct ph__function_entry);

    table->what = exports ? "export" : "import";
    if (untrusted_end < untrusted_start || untrusted_size % sizeof(struct ph__function_entry) != 0)
        return ph__image_refuse(
            image, error, "the table of %ss is damaged: it has no whole number of entries", table->what);
    if (count > PH__FUNCTIONS_MAX)
        return ph__image_refuse(image, error, "there are %llu %ss, more than the %u that are possible",
                                (unsigned long long)count, table->what, PH__FUNCTIONS_MAX);
    const uint8_t *start = ph__elf_at(bytes, elf, untrusted_start, untrusted_size);
    if (count > 0 && !start)
        return ph__image_refuse(
            image, error, "the table of %ss is damaged: it is not inside a segment of the file", table->what);
    table->entries = calloc(count + 1, sizeof *table->entries);
    if (!table->entries)
        return ph__error_set(error, PH_E_MEMORY, "no memory for the image's table of %ss", table->what);

    for (uint32_t i = 0; i < count; i++) {
        struct ph__function_entry untrusted_entry;
        memcpy(&untrusted_entry, start + i * sizeof untrusted_entry, sizeof untrusted_entry);
        uint64_t address = untrusted_start + i * sizeof untrusted_entry;
        uint64_t name =
            address + offsetof(struct ph__function_entry, name) + (uint64_t)(int64_t)untrusted_entry.name;
        uint64_t thunk =
            address + offsetof(struct ph__function_entry, thunk) + (uint64_t)(int64_t)untrusted_entry.thunk;
        struct entry *entry = &table->entries[i];

        entry->first = i;
        entry->name = name_at(bytes, elf, name, &entry->length);
        if (!entry->name)
            return ph__image_refuse(
                image, error, "%s %u has no usable name: 1 to %u bytes of printable UTF-8 without spaces",
                table->what, i, PH__NAME_MAX);
        if (!take_signature(&untrusted_entry, &entry->signature))
            return ph__image_refuse(image, error, "%s '%.*s' is damaged: its signature has unknown types",
                                    table->what, (int)entry->length, entry->name);
        if (exports ? !is_code(elf, thunk) : untrusted_entry.thunk != 0)
            return ph__image_refuse(image, error, "%s '%.*s' is damaged: it does not lead to code",
                                    table->what, (int)entry->length, entry->name);
    }
    table->count = (uint32_t)count;
    return PH_OK;
}

/* Compares two positions in the table by the names there, and equal names by their order. */
static int compare_positions(const void *left, const void *right, void *entries) {
    uint32_t a_position = *(const uint32_t *)left;
    uint32_t b_position = *(const uint32_t *)right;
    const struct entry *a = (const struct entry *)entries + a_position;
    const struct entry *b = (const struct entry *)entries + b_position;
    int order = memcmp(a->name, b->name, a->length < b->length ? a->length : b->length);

    if (order != 0)
        return order;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return (a_position > b_position) - (a_position < b_position);
}

static bool same_name(const struct entry *a, const struct entry *b) {
    return a->length == b->length && memcmp(a->name, b->name, a->length) == 0;
}

static bool same_signature(const ph_signature *a, const ph_signature *b) {
    if (a->result != b->result || a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->args[i] != b->args[i])
            return false;
    return true;
}

/* Finds entries with the same name. Exports must have none; of imports each learns which was the first, and
 * all must agree on the signature. */
static ph_status find_duplicates(const ph_image *image, struct table *table, bool exports, ph_error *error) {
    ph_status status = PH_OK;
    uint32_t *order = calloc(table->count + 1u, sizeof *order);

    if (!order)
        return ph__error_set(error, PH_E_MEMORY, "no memory for the image's table of %ss", table->what);
    for (uint32_t i = 0; i < table->count; i++)
        order[i] = i;
    qsort_r(order, table->count, sizeof *order, compare_positions, table->entries);

    for (uint32_t i = 1; i < table->count; i++) {
        const struct entry *before = &table->entries[order[i - 1]];
        struct entry *entry = &table->entries[order[i]];
        if (!same_name(before, entry))
            continue;
        if (exports) {
            status = ph__image_refuse(image, error, "two functions are exported as '%.*s'",
                                      (int)entry->length, entry->name);
            goto done;
        }
        if (!same_signature(&before->signature, &entry->signature)) {
            status = ph__image_refuse(image, error, "'%.*s' is imported with two different signatures",
                                      (int)entry->length, entry->name);
            goto done;
        }
        entry->first = before->first;
    }

done:
    free(order);
    return status;
}

static size_t names_size(const struct table *table) {
    size_t size = 0;

    for (uint32_t i = 0; i < table->count; i++)
        if (table->entries[i].first == i)
            size += table->entries[i].length + 1;
    return size;
}

/* Copies each entry that is the first of its name to (functions), and its name to (*names). (position_of),
 * unless NULL, gets the place in (functions) of every entry. Returns how many functions there are. */
static size_t copy_functions(const struct table *table, ph_function *functions, char **names,
                             uint32_t *position_of) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < table->count; i++) {
        const struct entry *entry = &table->entries[i];
        if (position_of)
            position_of[i] = entry->first == i ? count : position_of[entry->first];
        if (entry->first != i)
            continue;
        memcpy(*names, entry->name, entry->length);
        (*names)[entry->length] = 0;
        functions[count] = (ph_function){.name = *names, .index = count, .signature = entry->signature};
        *names += entry->length + 1;
        count++;
    }
    return count;
}

/* Reads the note of the guest library, once: first its version, which says what the rest is. */
static ph_status read_note(const ph_image *image, const uint8_t *bytes, const struct ph__elf *elf,
                           struct ph__note *untrusted_note, ph_error *error) {
    uint32_t version = 0;

    if (elf->note_size >= sizeof version)
        memcpy(&version, bytes + elf->note_offset, sizeof version);
    if (version != PH__ABI_VERSION)
        return ph__image_refuse(
            image, error,
            "the guest library in it has ABI version %u and this pinhole has %u: rebuild the guest "
            "with this version's libpinhole-guest",
            version, PH__ABI_VERSION);
    if (elf->note_size != sizeof *untrusted_note)
        return ph__image_refuse(image, error, "the note of the guest library is damaged: it has %llu bytes",
                                (unsigned long long)elf->note_size);
    memcpy(untrusted_note, bytes + elf->note_offset, sizeof *untrusted_note);
    return PH_OK;
}

ph_status ph__image_read_tables(ph_image *image, const uint8_t *bytes, const struct ph__elf *elf,
                                ph_error *error) {
    struct ph__note untrusted_note = {0};
    struct table exports = {0};
    struct table imports = {0};
    char *names;
    ph_status status;

    if (!elf->has_note)
        return PH_OK;
    status = read_note(image, bytes, elf, &untrusted_note, error);
    if (status != PH_OK)
        return status;

/* Distances count from the field that holds them. */
#define ADDRESS(field)                                                                                       \
    (elf->note_address + offsetof(struct ph__note, field) + (uint64_t)(int64_t)untrusted_note.field)
    status =
        read_entries(image, bytes, elf, ADDRESS(exports_start), ADDRESS(exports_end), true, &exports, error);
    if (status != PH_OK)
        goto done;
    status =
        read_entries(image, bytes, elf, ADDRESS(imports_start), ADDRESS(imports_end), false, &imports, error);
    if (status != PH_OK)
        goto done;
#undef ADDRESS
    status = find_duplicates(image, &exports, true, error);
    if (status != PH_OK)
        goto done;
    status = find_duplicates(image, &imports, false, error);
    if (status != PH_OK)
        goto done;
    status = ph__image_read_sites(image, bytes, elf, &untrusted_note, error);
    if (status != PH_OK)
        goto done;

    image->names = malloc(names_size(&exports) + names_size(&imports) + 1);
    image->exports = calloc(exports.count + 1u, sizeof *image->exports);
    image->imports = calloc(imports.count + 1u, sizeof *image->imports);
    image->import_of_entry = calloc(imports.count + 1u, sizeof *image->import_of_entry);
    if (!image->names || !image->exports || !image->imports || !image->import_of_entry) {
        status = ph__error_set(error, PH_E_MEMORY, "no memory for the image's functions");
        goto done;
    }
    names = image->names;
    image->export_count = copy_functions(&exports, image->exports, &names, NULL);
    image->import_count = copy_functions(&imports, image->imports, &names, image->import_of_entry);
    image->import_entry_count = imports.count;
    image->has_tables = true;

done:
    free(imports.entries);
    free(exports.entries);
    return status;
}
