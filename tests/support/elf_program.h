/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A small static program, byte by byte, for tests to damage: sound as it is made, with every header where a
 * test can reach it. Four segments, as linkers make them, a note and tables of the guest library on demand,
 * and symbols.
 *
 *   file     address    what
 *   0x0000   0x400000   headers, read-only
 *   0x1000   0x401000   code
 *   0x2000   0x402000   read-only data: note, tables and names
 *   0x3e80   0x403e80   data, and behind it three pages of bss
 *   0x4000              symbols, strings and section headers, not loaded
 *   0x6000              six pages of nothing, for a test to load
 */
#ifndef PH_TESTS_ELF_PROGRAM_H
#define PH_TESTS_ELF_PROGRAM_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "abi/control.h"
#include "abi/table.h"

enum program_segment {
    PROGRAM_HEADERS,
    PROGRAM_CODE,
    PROGRAM_RODATA,
    PROGRAM_DATA,
    PROGRAM_NOTE,
    PROGRAM_TLS,
    PROGRAM_STACK,
    PROGRAM_SPARE, /* PT_NULL until a test wants it; followed by room for many more */
};

#define PROGRAM_BASE 0x400000ull
#define PROGRAM_ENTRY 0x401010ull
#define PROGRAM_CODE_OFFSET 0x1000u
#define PROGRAM_CODE_SIZE 0x200u
#define PROGRAM_RODATA_OFFSET 0x2000u
#define PROGRAM_RODATA_SIZE 0x1000u
#define PROGRAM_DATA_OFFSET 0x3e80u
#define PROGRAM_DATA_SIZE 0x100u
#define PROGRAM_BSS_SIZE 0x3000u
#define PROGRAM_NOTE_OFFSET 0x2000u
#define PROGRAM_TABLES_OFFSET 0x2100u
#define PROGRAM_NAMES_OFFSET 0x2800u
#define PROGRAM_SYMBOLS_OFFSET 0x4000u
#define PROGRAM_SYMBOLS_MAX 16u
#define PROGRAM_STRINGS_OFFSET 0x4200u
#define PROGRAM_STRINGS_SIZE 0x1400u
#define PROGRAM_SECTIONS_OFFSET 0x5600u
#define PROGRAM_BLANK_OFFSET 0x6000u
#define PROGRAM_BLANK_SIZE 0x6000u
#define PROGRAM_SIZE 0xc000u

struct program {
    _Alignas(16) uint8_t bytes[PROGRAM_SIZE];
    size_t size;
    uint32_t names_used, strings_used, symbols_used;
    uint32_t exports, imports;
};

static inline Elf64_Ehdr *program_header_of(struct program *program) {
    return (Elf64_Ehdr *)program->bytes;
}

static inline Elf64_Phdr *program_segment(struct program *program, unsigned index) {
    return (Elf64_Phdr *)(program->bytes + sizeof(Elf64_Ehdr)) + index;
}

static inline Elf64_Shdr *program_section(struct program *program, unsigned index) {
    return (Elf64_Shdr *)(program->bytes + PROGRAM_SECTIONS_OFFSET) + index;
}

static inline Elf64_Sym *program_symbol(struct program *program, unsigned index) {
    return (Elf64_Sym *)(program->bytes + PROGRAM_SYMBOLS_OFFSET) + index;
}

static inline void program_set_segment(struct program *program, unsigned index, uint32_t type, uint32_t flags,
                                       uint64_t offset, uint64_t file_size, uint64_t memory_size) {
    *program_segment(program, index) = (Elf64_Phdr){
        .p_type = type,
        .p_flags = flags,
        .p_offset = offset,
        .p_vaddr = PROGRAM_BASE + offset,
        .p_paddr = PROGRAM_BASE + offset,
        .p_filesz = file_size,
        .p_memsz = memory_size,
        .p_align = type == PT_LOAD ? 0x1000 : 4,
    };
}

/* Adds a symbol with a (name), and returns it. */
static inline Elf64_Sym *program_add_symbol(struct program *program, const char *name, uint64_t address,
                                            uint64_t size) {
    Elf64_Sym *symbol = program_symbol(program, program->symbols_used++);

    *symbol = (Elf64_Sym){
        .st_name = program->strings_used,
        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
        .st_shndx = 1,
        .st_value = address,
        .st_size = size,
    };
    memcpy(program->bytes + PROGRAM_STRINGS_OFFSET + program->strings_used, name, strlen(name) + 1);
    program->strings_used += (uint32_t)strlen(name) + 1;
    program_section(program, 1)->sh_size = program->symbols_used * sizeof *symbol;
    return symbol;
}

static inline void program_init(struct program *program) {
    memset(program, 0, sizeof *program);
    program->size = PROGRAM_SIZE;
    *program_header_of(program) = (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT, ELFOSABI_SYSV},
        .e_type = ET_EXEC,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_entry = PROGRAM_ENTRY,
        .e_phoff = sizeof(Elf64_Ehdr),
        .e_shoff = PROGRAM_SECTIONS_OFFSET,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = PROGRAM_SPARE + 1,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = 3,
    };
    program_set_segment(program, PROGRAM_HEADERS, PT_LOAD, PF_R, 0, 0xf00, 0xf00);
    program_set_segment(program, PROGRAM_CODE, PT_LOAD, PF_R | PF_X, PROGRAM_CODE_OFFSET, PROGRAM_CODE_SIZE,
                        PROGRAM_CODE_SIZE);
    program_set_segment(program, PROGRAM_RODATA, PT_LOAD, PF_R, PROGRAM_RODATA_OFFSET, PROGRAM_RODATA_SIZE,
                        PROGRAM_RODATA_SIZE);
    program_set_segment(program, PROGRAM_DATA, PT_LOAD, PF_R | PF_W, PROGRAM_DATA_OFFSET, PROGRAM_DATA_SIZE,
                        PROGRAM_DATA_SIZE + PROGRAM_BSS_SIZE);
    program_set_segment(program, PROGRAM_NOTE, PT_NOTE, PF_R, PROGRAM_NOTE_OFFSET, 0, 0);
    program_set_segment(program, PROGRAM_TLS, PT_TLS, PF_R, PROGRAM_DATA_OFFSET, 0x20, 0x40);
    program_set_segment(program, PROGRAM_STACK, PT_GNU_STACK, PF_R | PF_W, 0, 0, 0);
    memset(program->bytes + PROGRAM_CODE_OFFSET, 0x90, PROGRAM_CODE_SIZE);
    memset(program->bytes + PROGRAM_DATA_OFFSET, 0xd0, PROGRAM_DATA_SIZE);

    *program_section(program, 1) = (Elf64_Shdr){
        .sh_type = SHT_SYMTAB,
        .sh_offset = PROGRAM_SYMBOLS_OFFSET,
        .sh_link = 2,
        .sh_entsize = sizeof(Elf64_Sym),
    };
    *program_section(program, 2) = (Elf64_Shdr){
        .sh_type = SHT_STRTAB,
        .sh_offset = PROGRAM_STRINGS_OFFSET,
        .sh_size = PROGRAM_STRINGS_SIZE,
    };
    program->strings_used = 1;
    program->symbols_used = 1;
    program_add_symbol(program, "_start", PROGRAM_ENTRY, 0x10);
}

/* Makes it a static-PIE: linked to address 0, with a dynamic section that has the mark. */
static inline void program_make_pie(struct program *program) {
    static const Elf64_Dyn dynamic[] = {
        {.d_tag = DT_FLAGS_1, .d_un.d_val = DF_1_PIE},
        {.d_tag = DT_NULL},
    };

    program_header_of(program)->e_type = ET_DYN;
    program_header_of(program)->e_entry -= PROGRAM_BASE;
    program_set_segment(program, PROGRAM_SPARE, PT_DYNAMIC, PF_R | PF_W, PROGRAM_DATA_OFFSET, sizeof dynamic,
                        sizeof dynamic);
    memcpy(program->bytes + PROGRAM_DATA_OFFSET, dynamic, sizeof dynamic);
    for (unsigned i = 0; i <= PROGRAM_SPARE; i++)
        program_segment(program, i)->p_vaddr -= PROGRAM_BASE;
    for (unsigned i = 1; i < program->symbols_used; i++)
        program_symbol(program, i)->st_value -= PROGRAM_BASE;
}

static inline Elf64_Dyn *program_dynamic(struct program *program) {
    return (Elf64_Dyn *)(program->bytes + PROGRAM_DATA_OFFSET);
}

static inline struct ph__note *program_note(struct program *program) {
    return (struct ph__note *)(program->bytes + PROGRAM_NOTE_OFFSET + sizeof(Elf64_Nhdr) + 8);
}

static inline Elf64_Nhdr *program_note_header(struct program *program) {
    return (Elf64_Nhdr *)(program->bytes + PROGRAM_NOTE_OFFSET);
}

/* Exports first, then imports, in one row. */
static inline struct ph__function_entry *program_entry(struct program *program, unsigned index) {
    return (struct ph__function_entry *)(program->bytes + PROGRAM_TABLES_OFFSET) + index;
}

/* Makes the (field), which is in (program), hold the distance to file offset (target). */
static inline void program_set_distance(struct program *program, int32_t *field, uint64_t target) {
    *field = (int32_t)((int64_t)target - ((const uint8_t *)field - program->bytes));
}

/* Adds the note, with tables that are empty. */
static inline void program_add_note(struct program *program) {
    struct ph__note *note = program_note(program);

    *program_note_header(program) = (Elf64_Nhdr){
        .n_namesz = sizeof PH__NOTE_NAME,
        .n_descsz = sizeof *note,
        .n_type = PH__NOTE_TABLES,
    };
    memcpy(program->bytes + PROGRAM_NOTE_OFFSET + sizeof(Elf64_Nhdr), PH__NOTE_NAME, sizeof PH__NOTE_NAME);
    note->abi_version = PH__ABI_VERSION;
    for (int32_t *field = &note->exports_start; field <= &note->words_end; field++)
        program_set_distance(program, field, PROGRAM_TABLES_OFFSET);
    program_segment(program, PROGRAM_NOTE)->p_filesz = sizeof(Elf64_Nhdr) + 8 + sizeof *note;
    program->names_used = 0;
    program->exports = 0;
    program->imports = 0;
}

/* Adds an export, or an import, with a (name) and a signature: its result's type, and those of its arguments.
 * All exports come before the first import. */
static inline struct ph__function_entry *program_add_function(struct program *program, int is_export,
                                                              const char *name, uint8_t result,
                                                              const uint8_t *args, uint8_t count) {
    struct ph__note *note = program_note(program);
    struct ph__function_entry *entry = program_entry(program, program->exports + program->imports);
    uint64_t end;

    *entry = (struct ph__function_entry){.result = result, .count = count};
    if (count > 0)
        memcpy(entry->args, args, count);
    program_set_distance(program, &entry->name, PROGRAM_NAMES_OFFSET + program->names_used);
    memcpy(program->bytes + PROGRAM_NAMES_OFFSET + program->names_used, name, strlen(name) + 1);
    program->names_used += (uint32_t)strlen(name) + 1;
    if (is_export)
        program_set_distance(program, &entry->thunk, PROGRAM_CODE_OFFSET + 0x20);

    program->exports += is_export ? 1 : 0;
    program->imports += is_export ? 0 : 1;
    end = PROGRAM_TABLES_OFFSET + program->exports * sizeof *entry;
    program_set_distance(program, &note->exports_end, end);
    program_set_distance(program, &note->imports_start, end);
    program_set_distance(program, &note->imports_end, end + program->imports * sizeof *entry);
    return entry;
}

#endif
