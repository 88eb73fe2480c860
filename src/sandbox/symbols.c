/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The functions of an image's symbol table, to say in which one a guest was. The table is as hostile as all
 * of the file, and nothing but messages depends on it: what makes no sense is left out and never refused.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sandbox/image_parts.h"

static const struct ph__elf_segment *code_at(const struct ph__elf *elf, uint64_t address) {
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        const struct ph__elf_segment *segment = &elf->segments[i];
        if (segment->executable && address >= segment->address &&
            address - segment->address < segment->memory_size)
            return segment;
    }
    return NULL;
}

/* Makes the strings of a symbol table printable and bounds them, with every string staying where it is:
 * symbols point into the middle of each other's names. (names) is NUL-terminated behind (size) bytes. */
static void clean_names(char *names, uint64_t size) {
    char printable[PH__SYMBOL_NAME_MAX + 1];

    for (uint64_t position = 0; position < size;) {
        char *name = names + position;
        size_t length = strnlen(name, PH__SYMBOL_NAME_MAX);
        name[length] = 0;
        if (ph__text_copy_printable(printable, sizeof printable, name, length) != length ||
            memcmp(printable, name, length) != 0) {
            for (size_t i = 0; i < length; i++)
                if (name[i] < 0x20 || name[i] > 0x7e)
                    name[i] = '?';
        }
        position += length + 1;
    }
}

/* How many underscores (name) begins with. Counted once, and no further than matters: a hostile file has long
 * names, and many at one address. */
static uint32_t count_underscores(const char *name) {
    uint32_t count = 0;

    while (count < PH__UNDERSCORES_MAX && name[count] == '_')
        count++;
    return count;
}

/* Takes symbol number (index) of the file. False when it is no function with a name inside the code. */
static bool take_symbol(const ph_image *image, const uint8_t *bytes, const struct ph__elf *elf,
                        uint64_t index, struct ph__symbol *symbol) {
    Elf64_Sym untrusted_symbol;

    memcpy(&untrusted_symbol, bytes + elf->symbols_offset + index * sizeof untrusted_symbol,
           sizeof untrusted_symbol);
    if (ELF64_ST_TYPE(untrusted_symbol.st_info) != STT_FUNC || untrusted_symbol.st_shndx == SHN_UNDEF)
        return false;
    if (untrusted_symbol.st_name >= elf->strings_size)
        return false;
    /* Not empty, and not starting inside a character. */
    unsigned char first = (unsigned char)image->symbol_names[untrusted_symbol.st_name];
    if (first == 0 || (first & 0xc0) == 0x80)
        return false;
    *symbol = (struct ph__symbol){
        .address = untrusted_symbol.st_value + elf->bias,
        .size = untrusted_symbol.st_size,
        .name = untrusted_symbol.st_name,
        .underscores = count_underscores(image->symbol_names + untrusted_symbol.st_name),
    };
    return code_at(elf, symbol->address) != NULL;
}

/* By address. Among names of one address the one a person would write comes first: the one with the fewest
 * underscores before it (`write`, not `__libc_write`), then one with a size. The rest makes the order total.
 */
static int compare_symbols(const void *left, const void *right) {
    const struct ph__symbol *a = left;
    const struct ph__symbol *b = right;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a->underscores != b->underscores)
        return a->underscores < b->underscores ? -1 : 1;
    if ((a->size == 0) != (b->size == 0))
        return a->size != 0 ? -1 : 1;
    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    return 0;
}

ph_status ph__image_read_symbols(ph_image *image, const uint8_t *bytes, const struct ph__elf *elf,
                                 ph_error *error) {
    struct ph__symbol symbol;
    size_t capacity = 0;
    size_t count = 0;
    size_t kept = 0;

    if (elf->symbol_count == 0)
        return PH_OK;
    image->symbol_names = malloc(elf->strings_size + 1);
    if (!image->symbol_names)
        goto no_memory;
    memcpy(image->symbol_names, bytes + elf->strings_offset, elf->strings_size);
    image->symbol_names[elf->strings_size] = 0;
    clean_names(image->symbol_names, elf->strings_size);

    for (uint64_t i = 0; i < elf->symbol_count; i++)
        capacity += take_symbol(image, bytes, elf, i, &symbol) ? 1 : 0;
    if (capacity == 0)
        return PH_OK;
    image->symbols = calloc(capacity, sizeof *image->symbols);
    if (!image->symbols)
        goto no_memory;
    for (uint64_t i = 0; i < elf->symbol_count && count < capacity; i++)
        if (take_symbol(image, bytes, elf, i, &symbol))
            image->symbols[count++] = symbol;

    qsort(image->symbols, count, sizeof *image->symbols, compare_symbols);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || image->symbols[kept - 1].address != image->symbols[i].address)
            image->symbols[kept++] = image->symbols[i];
    image->symbol_count = kept;

    /* A function without a size, from an assembly file, reaches to the next one or to the end of the code. */
    for (size_t i = 0; i < kept; i++) {
        struct ph__symbol *function = &image->symbols[i];
        if (function->size != 0)
            continue;
        const struct ph__elf_segment *code = code_at(elf, function->address);
        uint64_t end = code ? code->address + code->memory_size : function->address;
        if (i + 1 < kept && function[1].address < end)
            end = function[1].address;
        function->size = end - function->address;
    }
    return PH_OK;

no_memory:
    return ph__error_set(error, PH_E_MEMORY, "no memory for the symbol table of the image");
}

const char *ph__image_symbol(const ph_image *image, uint64_t gva, uint64_t *offset) {
    size_t low = 0;
    size_t high = image->symbol_count;

    /* The first symbol above (gva) is at (high) when the loop ends. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (image->symbols[middle].address <= gva)
            low = middle + 1;
        else
            high = middle;
    }
    if (high == 0)
        return NULL;
    const struct ph__symbol *symbol = &image->symbols[high - 1];
    if (gva - symbol->address >= symbol->size)
        return NULL;
    *offset = gva - symbol->address;
    return image->symbol_names + symbol->name;
}
