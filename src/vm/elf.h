/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reading a static ELF file that nobody trusts: a pure function over bytes. It allocates nothing, keeps
 * nothing, and reports positions in the file that its caller may then use without checking again. Field names
 * follow the System V ABI (gABI chapter 4 and 5, and the x86-64 supplement).
 */
#ifndef PH_VM_ELF_H
#define PH_VM_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PH__ELF_SEGMENTS_MAX 32u
#define PH__BUILD_ID_MAX 64u

/* One PT_LOAD segment, checked: file range inside the file, memory range inside the image space, congruent,
 * in ascending order, sharing no page with another. */
struct ph__elf_segment {
    uint64_t address; /* p_vaddr, the load bias of static-PIE added */
    uint64_t memory_size;
    uint64_t file_offset;
    uint64_t file_size;
    bool readable, writable, executable;
};

struct ph__elf {
    bool static_pie;
    uint64_t bias;  /* added to every p_vaddr; 0 for ET_EXEC */
    uint64_t entry; /* inside an executable segment */
    uint64_t start; /* the span of all segments, in whole pages */
    uint64_t end;
    uint64_t
        headers_address; /* where the program headers are in memory (AT_PHDR), 0 if they are not loaded */
    uint32_t header_count;
    uint32_t segment_count;
    struct ph__elf_segment segments[PH__ELF_SEGMENTS_MAX];
    bool executable_stack; /* PT_GNU_STACK asks for one */

    /* The note of abi/table.h: position and size of its description in the file, and its address in memory.
     * The description is loaded, but it may be of another version and so of any size. */
    bool has_note;
    uint64_t note_offset;
    uint64_t note_size;
    uint64_t note_address;

    bool has_traceparent_note; /* PH__NOTE_TRACEPARENT of abi/table.h */

    /* What the linker calls this very program (NT_GNU_BUILD_ID): position in the file and size, at most
     * PH__BUILD_ID_MAX; 0 and 0 when it has no name, or a longer one. */
    uint64_t build_id_offset, build_id_size;

    /* The symbol table and its strings, in the file; 0 and 0 when stripped or not sound. */
    uint64_t symbols_offset, symbol_count;
    uint64_t strings_offset, strings_size;
};

/* Why a file was refused: a sentence that says what is wrong and, where one can, what to do. */
struct ph__elf_error {
    char message[256];
};

/* Checks the (size) bytes at (bytes) and fills (elf). (allow_wx) accepts segments that are writable and
 * executable. Returns false, with (error) filled, when the file is not a static x86-64 Linux program that can
 * be loaded. Reads nothing outside (bytes). */
bool ph__elf_parse(const uint8_t *bytes, size_t size, bool allow_wx, struct ph__elf *elf,
                   struct ph__elf_error *error);

/* How many bytes of the file are loaded from (address) on, up to the end of the file part of its segment. */
uint64_t ph__elf_available(const struct ph__elf *elf, uint64_t address);

/* The (size) bytes of the file that are loaded at (address), or NULL when they are not all inside the file
 * part of one segment. */
const uint8_t *ph__elf_at(const uint8_t *bytes, const struct ph__elf *elf, uint64_t address, uint64_t size);

#endif
