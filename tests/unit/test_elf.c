/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The loader takes what a linker makes of a static program, says of everything else what it is and what to do
 * about it, and whatever a file says, keeps the promises of elf.h and reads nothing outside the file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/elf_invariants.h"
#include "support/elf_program.h"
#include "support/guarded.h"
#include "vm/elf.h"

static struct guarded memory;
static struct program program;
static struct ph__elf elf;
static struct ph__elf_error elf_error;

static int start_with_a_sound_program(void **state) {
    (void)state;
    program_init(&program);
    memset(&elf, 0xa5, sizeof elf);
    return 0;
}

static bool parse(bool allow_wx) {
    return ph__elf_parse(guarded_copy(&memory, program.bytes, program.size), program.size, allow_wx, &elf,
                         &elf_error);
}

static void assert_taken(void) {
    if (!parse(false))
        fail_msg("refused: %s", elf_error.message);
    const char *broken = elf_broken_promise(&elf, program.size, 0);
    if (broken)
        fail_msg("broken promise: %s", broken);
}

/* The program is refused, and the message says (why). */
static void assert_refused(const char *why) {
    if (parse(false))
        fail_msg("taken, and should be refused: %s", why);
    if (!strstr(elf_error.message, why))
        fail_msg("refused with '%s' and not with '%s'", elf_error.message, why);
}

static void a_static_program_is_taken_as_it_says(void **state) {
    (void)state;
    assert_taken();
    assert_false(elf.static_pie);
    assert_int_equal(elf.bias, 0);
    assert_int_equal(elf.entry, PROGRAM_ENTRY);
    assert_int_equal(elf.start, 0x400000);
    assert_int_equal(elf.end, 0x407000);
    assert_int_equal(elf.headers_address, 0x400040);
    assert_int_equal(elf.header_count, PROGRAM_SPARE + 1);
    assert_false(elf.executable_stack);
    assert_false(elf.has_note);
    assert_int_equal(elf.symbols_offset, PROGRAM_SYMBOLS_OFFSET);
    assert_int_equal(elf.symbol_count, 2);
    assert_int_equal(elf.strings_offset, PROGRAM_STRINGS_OFFSET);
    assert_int_equal(elf.strings_size, PROGRAM_STRINGS_SIZE);

    assert_int_equal(elf.segment_count, 4);
    const struct ph__elf_segment *code = &elf.segments[PROGRAM_CODE];
    assert_int_equal(code->address, 0x401000);
    assert_int_equal(code->memory_size, PROGRAM_CODE_SIZE);
    assert_int_equal(code->file_offset, PROGRAM_CODE_OFFSET);
    assert_int_equal(code->file_size, PROGRAM_CODE_SIZE);
    assert_true(code->executable && !code->writable);
    const struct ph__elf_segment *data = &elf.segments[PROGRAM_DATA];
    assert_int_equal(data->memory_size, PROGRAM_DATA_SIZE + PROGRAM_BSS_SIZE);
    assert_int_equal(data->file_size, PROGRAM_DATA_SIZE);
    assert_true(data->writable && !data->executable);
    assert_true(!elf.segments[PROGRAM_RODATA].writable && !elf.segments[PROGRAM_RODATA].executable);
}

static void static_pie_is_moved_by_its_bias(void **state) {
    (void)state;
    program_make_pie(&program);
    assert_taken();
    assert_true(elf.static_pie);
    assert_int_equal(elf.bias, 0x400000);
    assert_int_equal(elf.entry, PROGRAM_ENTRY);
    assert_int_equal(elf.start, 0x400000);
    assert_int_equal(elf.headers_address, 0x400040);
    assert_int_equal(elf.segments[PROGRAM_DATA].address, 0x400000 + PROGRAM_DATA_OFFSET);
}

static void static_pie_gets_the_alignment_it_asks_for(void **state) {
    (void)state;
    program_make_pie(&program);
    program_segment(&program, PROGRAM_DATA)->p_align = 2 << 20;
    assert_taken();
    assert_int_equal(elf.bias, 0x400000);
    program_segment(&program, PROGRAM_DATA)->p_align = 1 << 30;
    assert_taken();
    assert_int_equal(elf.bias, 1 << 30);
    program_segment(&program, PROGRAM_DATA)->p_align = 64ull << 30;
    assert_taken();
    assert_int_equal(elf.bias, 64ull << 30);
    program_segment(&program, PROGRAM_DATA)->p_align = 1ull << 40;
    assert_refused("asks for an alignment of 0x10000000000");
    /* The largest counts, and only of what is loaded. */
    program_segment(&program, PROGRAM_DATA)->p_align = 0x1000;
    program_segment(&program, PROGRAM_HEADERS)->p_align = 1 << 28;
    program_segment(&program, PROGRAM_TLS)->p_align = 1 << 30;
    assert_taken();
    assert_int_equal(elf.bias, 1 << 28);
}

static void static_pie_without_the_mark_is_taken_if_it_can_be_entered(void **state) {
    (void)state;
    program_make_pie(&program);
    program_dynamic(&program)[0].d_tag = DT_NULL;
    assert_taken();
    program_segment(&program, PROGRAM_SPARE)->p_type = PT_NULL;
    assert_taken();
    program_header_of(&program)->e_entry = 0;
    assert_refused("a shared library");
}

static void a_shared_library_is_refused(void **state) {
    (void)state;
    program_make_pie(&program);
    program_dynamic(&program)[0].d_tag = DT_SONAME;
    assert_refused("link it with -static");
    assert_non_null(strstr(elf_error.message, "a shared library"));
    /* With the mark it is a program, also if it has a name. */
    program_segment(&program, PROGRAM_SPARE)->p_filesz = 2 * sizeof(Elf64_Dyn);
    program_dynamic(&program)[1] = (Elf64_Dyn){.d_tag = DT_FLAGS_1, .d_un.d_val = DF_1_NOW};
    assert_refused("a shared library");
    program_dynamic(&program)[1].d_un.d_val = DF_1_NOW | DF_1_PIE;
    assert_taken();
}

static void a_dynamic_program_is_told_to_link_with_static(void **state) {
    (void)state;
    program_make_pie(&program);
    program_dynamic(&program)[1].d_tag = DT_NEEDED;
    assert_refused("link it with -static");

    program_init(&program);
    program_set_segment(&program, PROGRAM_SPARE, PT_INTERP, PF_R, 0x2800, 8, 8);
    assert_refused("link it with -static");
}

static void the_dynamic_section_ends_at_its_null_entry(void **state) {
    (void)state;
    program_make_pie(&program);
    program_segment(&program, PROGRAM_SPARE)->p_filesz = 3 * sizeof(Elf64_Dyn);
    program_dynamic(&program)[2].d_tag = DT_NEEDED;
    assert_taken();
    /* Or, without one, where the section ends. */
    program_segment(&program, PROGRAM_SPARE)->p_filesz = 2 * sizeof(Elf64_Dyn) + 8;
    program_dynamic(&program)[1].d_tag = DT_DEBUG;
    assert_taken();
    program_segment(&program, PROGRAM_SPARE)->p_filesz = 3 * sizeof(Elf64_Dyn);
    assert_refused("link it with -static");
}

static void a_dynamic_section_outside_the_file_is_refused(void **state) {
    (void)state;
    program_make_pie(&program);
    program_segment(&program, PROGRAM_SPARE)->p_offset = UINT64_MAX - 8;
    assert_refused("the dynamic section is not all inside the file");
}

static void what_is_no_elf_file_is_named_for_what_it_is(void **state) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *why;
    } files[] = {
        {"", 0, "the file is empty"},
        {"#!/bin/sh\necho hi\n", 18, "this is a script"},
        {"#!", 2, "this is a script"},
        {"Dear reader,\n\tnothing to run here.\r\n", 36, "this is a text file"},
        {"x", 1, "this is a text file"},
        {"MZ\x90\0\x03\0\0\0", 8, "this is not an ELF file"},
        {"!<arch>\n", 8, "this is a library archive"},
        {"\x7f", 1, "cut off within its ELF header"},
        {"\x7f"
         "ELF",
         4, "cut off within its ELF header"},
        {"\x7f"
         "ELF\x02\x01\x01\0\0\0\0\0\0\0\0\0",
         16, "cut off within its ELF header"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        memcpy(program.bytes, files[i].bytes, files[i].size);
        program.size = files[i].size;
        assert_refused(files[i].why);
    }
}

static void programs_for_other_machines_are_named_for_what_they_are(void **state) {
    Elf64_Ehdr *header = program_header_of(&program);

    (void)state;
    header->e_ident[EI_CLASS] = ELFCLASS32;
    header->e_machine = EM_386;
    assert_refused("a 32-bit program");
    /* A whole 32-bit header is shorter than one of 64 bits. */
    program.size = sizeof(Elf32_Ehdr);
    assert_refused("a 32-bit program");
    program.size = EI_NIDENT;
    assert_refused("a 32-bit program");

    program_init(&program);
    header->e_ident[EI_CLASS] = 3;
    assert_refused("no class 3");
    program_init(&program);
    header->e_ident[EI_DATA] = ELFDATA2MSB;
    assert_refused("a big-endian program");
    program_init(&program);
    header->e_ident[EI_DATA] = 0;
    assert_refused("no byte order 0");
    program_init(&program);
    header->e_machine = EM_AARCH64;
    assert_refused("for another processor (ELF machine 183)");
    program_init(&program);
    header->e_ident[EI_OSABI] = ELFOSABI_FREEBSD;
    assert_refused("for another operating system (ELF OS/ABI 9)");
    program_init(&program);
    header->e_ident[EI_VERSION] = 0;
    assert_refused("its version is not 1");
    program_init(&program);
    header->e_version = 2;
    assert_refused("its version is not 1");

    program_init(&program);
    header->e_ident[EI_OSABI] = ELFOSABI_GNU;
    assert_taken();
}

static void files_that_are_no_program_are_named_for_what_they_are(void **state) {
    Elf64_Ehdr *header = program_header_of(&program);

    (void)state;
    header->e_type = ET_REL;
    assert_refused("an object file, not a program: link it into one");
    header->e_type = ET_CORE;
    assert_refused("a core file");
    header->e_type = ET_NONE;
    assert_refused("no file type 0");
    header->e_type = 0xfe00;
    assert_refused("no file type 65024");
}

static void program_headers_must_be_in_the_file(void **state) {
    Elf64_Ehdr *header = program_header_of(&program);

    (void)state;
    header->e_phnum = 0;
    assert_refused("no program headers");
    header->e_phnum = PN_XNUM;
    assert_refused("too many program headers");
    program_init(&program);
    header->e_phentsize = 32;
    assert_refused("program headers have 32 bytes instead of 56");
    program_init(&program);
    header->e_phoff = PROGRAM_SIZE - 56 * header->e_phnum + 1;
    assert_refused("the program headers are not all inside the file");
    header->e_phoff = UINT64_MAX - 55;
    assert_refused("the program headers are not all inside the file");
    /* The largest number that there can be, in a file that is not so long. */
    program_init(&program);
    header->e_phnum = 0xfffe;
    assert_refused("the program headers are not all inside the file");
    /* Nothing but the ELF header. */
    program_init(&program);
    program.size = sizeof *header;
    assert_refused("the program headers are not all inside the file");
    header->e_phnum = 0;
    assert_refused("no program headers");
}

static void headers_that_are_not_loaded_have_no_address(void **state) {
    (void)state;
    memmove(program.bytes + 0x5800, program_segment(&program, 0), 0x300);
    program_header_of(&program)->e_phoff = 0x5800;
    assert_taken();
    assert_int_equal(elf.headers_address, 0);
    /* They may also be the last thing in the file. */
    size_t size = program_header_of(&program)->e_phnum * sizeof(Elf64_Phdr);
    memmove(program.bytes + PROGRAM_SIZE - size, program_segment(&program, 0), size);
    program_header_of(&program)->e_phoff = PROGRAM_SIZE - size;
    assert_taken();
    program_init(&program);
    program_make_pie(&program);
    memmove(program.bytes + PROGRAM_SIZE - size, program_segment(&program, 0), size);
    program_header_of(&program)->e_phoff = PROGRAM_SIZE - size;
    assert_taken();
}

static void a_segment_must_be_in_the_file(void **state) {
    Elf64_Phdr *data = program_segment(&program, PROGRAM_DATA);

    (void)state;
    data->p_filesz = PROGRAM_SIZE - PROGRAM_DATA_OFFSET + 1;
    data->p_memsz = data->p_filesz;
    assert_refused("segment 3 is not all inside the file");
    data->p_filesz = UINT64_MAX;
    data->p_memsz = UINT64_MAX;
    assert_refused("segment 3 is not all inside the file");
    program_init(&program);
    data->p_offset = UINT64_MAX - 0x17f;
    assert_refused("segment 3 is not all inside the file");
}

static void a_segment_has_no_more_bytes_in_the_file_than_in_memory(void **state) {
    (void)state;
    program_segment(&program, PROGRAM_DATA)->p_memsz = PROGRAM_DATA_SIZE - 1;
    assert_refused("segment 3 is damaged: it has more bytes in the file than in memory");
}

static void a_segment_lies_at_the_same_place_of_a_page_in_file_and_memory(void **state) {
    (void)state;
    program_segment(&program, PROGRAM_DATA)->p_offset -= 8;
    assert_refused("differ within their pages");
    /* Without bytes in the file, its place there means nothing. */
    program_segment(&program, PROGRAM_DATA)->p_filesz = 0;
    assert_taken();
}

static void an_alignment_is_a_power_of_two(void **state) {
    (void)state;
    program_segment(&program, PROGRAM_DATA)->p_align = 0x3000;
    assert_refused("its alignment 0x3000 is not a power of two");
    program_segment(&program, PROGRAM_DATA)->p_align = 0;
    assert_taken();
    program_segment(&program, PROGRAM_DATA)->p_align = 1;
    assert_taken();
}

static void segments_ascend_and_neither_overlap_nor_share_a_page(void **state) {
    Elf64_Phdr *data = program_segment(&program, PROGRAM_DATA);

    (void)state;
    data->p_vaddr = PROGRAM_BASE + 0x1e80;
    assert_refused("the segments' addresses do not ascend");
    data->p_vaddr = PROGRAM_BASE + 0x2e80;
    assert_refused("segment 3 is damaged: it overlaps the one before it");
    program_segment(&program, PROGRAM_RODATA)->p_filesz = 0x800;
    program_segment(&program, PROGRAM_RODATA)->p_memsz = 0x800;
    assert_refused("segment 3 shares the page at 0x402000");
    data->p_vaddr = PROGRAM_BASE + 0x3e80;
    assert_taken();
    /* Side by side is fine. */
    start_with_a_sound_program(NULL);
    data->p_offset = 0x3000;
    data->p_vaddr = PROGRAM_BASE + 0x3000;
    assert_taken();
}

static void segments_stay_inside_the_addresses_of_a_program(void **state) {
    Elf64_Phdr *first = program_segment(&program, PROGRAM_HEADERS);
    Elf64_Phdr *last = program_segment(&program, PROGRAM_DATA);

    (void)state;
    first->p_vaddr = 0;
    assert_refused("segment 0 lies outside the addresses 0x10000 to 0x7e0000000000");
    first->p_vaddr = PH__IMAGE_GVA_MIN - PH__PAGE_SIZE;
    assert_refused("segment 0 lies outside");
    first->p_vaddr = PH__IMAGE_GVA_MIN;
    assert_taken();

    program_init(&program);
    last->p_memsz = PH__WINDOW_GVA;
    assert_refused("segment 3 lies outside");
    last->p_memsz = UINT64_MAX - last->p_vaddr;
    assert_refused("segment 3 lies outside");
    program_init(&program);
    last->p_vaddr = UINT64_MAX - 0x17f;
    assert_refused("segment 3 lies outside");

    /* The bias counts, and its sum with an address does not wrap. */
    program_init(&program);
    program_make_pie(&program);
    last->p_vaddr = PH__WINDOW_GVA - 0x400000 + PROGRAM_DATA_OFFSET % PH__PAGE_SIZE;
    assert_refused("segment 3 lies outside");
    last->p_vaddr = UINT64_MAX - 0x400000 + 1 + 0x10000 + PROGRAM_DATA_OFFSET % PH__PAGE_SIZE;
    assert_refused("segment 3 lies outside");
}

static void segments_may_reach_the_end_of_the_addresses(void **state) {
    (void)state;
    for (unsigned i = 0; i <= PROGRAM_SPARE; i++)
        program_segment(&program, i)->p_vaddr += PH__WINDOW_GVA - 0x407000;
    program_header_of(&program)->e_entry += PH__WINDOW_GVA - 0x407000;
    assert_taken();
    assert_int_equal(elf.end, PH__WINDOW_GVA);
    program_segment(&program, PROGRAM_DATA)->p_memsz += PH__PAGE_SIZE;
    assert_refused("segment 3 lies outside");
}

static void the_span_is_limited(void **state) {
    Elf64_Phdr *data = program_segment(&program, PROGRAM_DATA);

    (void)state;
    data->p_memsz = (64ull << 30) - PROGRAM_DATA_OFFSET;
    assert_taken();
    data->p_memsz++;
    assert_refused("more than 64 GiB");
}

static void writable_and_executable_segments_must_be_asked_for(void **state) {
    (void)state;
    program_segment(&program, PROGRAM_DATA)->p_flags = PF_R | PF_W | PF_X;
    assert_refused("segment 3 is writable and executable");
    assert_non_null(strstr(elf_error.message, "PH_IMAGE_ALLOW_WX"));
    assert_true(parse(true));
    assert_true(elf.segments[PROGRAM_DATA].writable && elf.segments[PROGRAM_DATA].executable);
}

static void a_segment_that_cannot_be_read_is_readable(void **state) {
    (void)state;
    program_segment(&program, PROGRAM_CODE)->p_flags = PF_X;
    program_segment(&program, PROGRAM_RODATA)->p_flags = 0;
    assert_taken();
    assert_true(elf.segments[PROGRAM_CODE].readable && elf.segments[PROGRAM_RODATA].readable);
}

static void an_empty_segment_is_left_out(void **state) {
    (void)state;
    program_set_segment(&program, PROGRAM_SPARE, PT_LOAD, PF_R, PROGRAM_CODE_OFFSET, 0, 0);
    assert_taken();
    assert_int_equal(elf.segment_count, 4);
}

static void the_number_of_segments_is_limited(void **state) {
    unsigned most = PROGRAM_SPARE + PH__ELF_SEGMENTS_MAX - 4;

    (void)state;
    for (unsigned i = PROGRAM_SPARE; i <= most; i++) {
        program_set_segment(&program, i, PT_LOAD, PF_R, PROGRAM_BLANK_OFFSET, 8, 8);
        program_segment(&program, i)->p_vaddr = 0x500000 + i * PH__PAGE_SIZE;
    }
    program_header_of(&program)->e_phnum = (Elf64_Half)most;
    assert_taken();
    assert_int_equal(elf.segment_count, PH__ELF_SEGMENTS_MAX);
    program_header_of(&program)->e_phnum++;
    assert_refused("more than 32 segments");
}

static void a_file_without_segments_is_refused(void **state) {
    (void)state;
    for (unsigned i = 0; i < PROGRAM_NOTE; i++)
        program_segment(&program, i)->p_type = PT_NULL;
    assert_refused("no loadable segment");
}

static void the_entry_is_code_in_the_file(void **state) {
    uint64_t *entry = &program_header_of(&program)->e_entry;

    (void)state;
    *entry = 0;
    assert_refused("the entry point 0x0 is not in executable code");
    *entry = PROGRAM_BASE + PROGRAM_RODATA_OFFSET;
    assert_refused("the entry point 0x402000 is not in executable code");
    *entry = PROGRAM_BASE + PROGRAM_CODE_OFFSET + PROGRAM_CODE_SIZE;
    assert_refused("is not in executable code");
    program_segment(&program, PROGRAM_CODE)->p_memsz += 16;
    assert_refused("is not in executable code");
    *entry -= 1;
    assert_taken();
    *entry = UINT64_MAX;
    assert_refused("is not in executable code");
}

static void thread_local_variables_must_be_sane(void **state) {
    Elf64_Phdr *tls = program_segment(&program, PROGRAM_TLS);

    (void)state;
    tls->p_filesz = tls->p_memsz + 1;
    assert_refused("thread-local variables is damaged");
    start_with_a_sound_program(NULL);
    tls->p_memsz = UINT64_MAX;
    assert_refused("thread-local variables is damaged");
    start_with_a_sound_program(NULL);
    tls->p_offset = PROGRAM_SIZE;
    assert_refused("thread-local variables is damaged");
    start_with_a_sound_program(NULL);
    tls->p_align = 24;
    assert_refused("thread-local variables is damaged");
    start_with_a_sound_program(NULL);
    tls->p_vaddr = UINT64_MAX;
    assert_refused("thread-local variables is damaged");
}

static void an_executable_stack_is_noted_and_not_refused(void **state) {
    (void)state;
    program_segment(&program, PROGRAM_STACK)->p_flags |= PF_X;
    assert_taken();
    assert_true(elf.executable_stack);
}

static void the_note_is_found(void **state) {
    (void)state;
    program_add_note(&program);
    assert_taken();
    assert_true(elf.has_note);
    assert_int_equal(elf.note_offset, PROGRAM_NOTE_OFFSET + 20);
    assert_int_equal(elf.note_address, PROGRAM_BASE + PROGRAM_NOTE_OFFSET + 20);
    assert_int_equal(elf.note_size, sizeof(struct ph__note));

    program_make_pie(&program);
    assert_taken();
    assert_int_equal(elf.note_address, 0x400000 + PROGRAM_NOTE_OFFSET + 20);
}

/* Puts another note of 8 + (name_size) bytes of name and description in front of ours. */
static void add_note_in_front(uint32_t type, const char *name, uint32_t name_size, uint32_t description_size,
                              uint64_t alignment, size_t total) {
    uint8_t *notes = program.bytes + PROGRAM_NOTE_OFFSET;
    Elf64_Nhdr other = {.n_namesz = name_size, .n_descsz = description_size, .n_type = type};

    program_add_note(&program);
    memmove(notes + total, notes, sizeof(Elf64_Nhdr) + 8 + sizeof(struct ph__note));
    memset(notes, 0, total);
    memcpy(notes, &other, sizeof other);
    memcpy(notes + sizeof other, name, strlen(name) + 1);
    program_segment(&program, PROGRAM_NOTE)->p_filesz += total;
    program_segment(&program, PROGRAM_NOTE)->p_align = alignment;
}

static void the_note_is_found_behind_others(void **state) {
    (void)state;
    add_note_in_front(NT_GNU_BUILD_ID, "GNU", 4, 20, 4, 36);
    assert_taken();
    assert_true(elf.has_note);
    assert_int_equal(elf.note_offset, PROGRAM_NOTE_OFFSET + 36 + 20);

    /* Sizes that are no multiple of the alignment are filled up to one. */
    program_init(&program);
    add_note_in_front(7, "other", 6, 1, 4, 24);
    assert_taken();
    assert_int_equal(elf.note_offset, PROGRAM_NOTE_OFFSET + 24 + 20);
}

static void notes_with_another_name_or_type_are_passed_over(void **state) {
    (void)state;
    add_note_in_front(PH__NOTE_TABLES, "pinhol", 7, 4, 4, 24);
    assert_taken();
    assert_int_equal(elf.note_offset, PROGRAM_NOTE_OFFSET + 24 + 20);
    program_init(&program);
    add_note_in_front(PH__NOTE_TABLES, "PINHOLE", 8, 4, 4, 24);
    assert_taken();
    assert_int_equal(elf.note_offset, PROGRAM_NOTE_OFFSET + 24 + 20);
    program_init(&program);
    add_note_in_front(PH__NOTE_TABLES + 1, "pinhole", 8, 4, 4, 24);
    assert_taken();
    assert_int_equal(elf.note_offset, PROGRAM_NOTE_OFFSET + 24 + 20);

    program_init(&program);
    program_add_note(&program);
    program_note_header(&program)->n_type++;
    assert_taken();
    assert_false(elf.has_note);
}

static void the_note_is_found_in_any_of_several_segments(void **state) {
    (void)state;
    program_add_note(&program);
    *program_segment(&program, PROGRAM_SPARE) = *program_segment(&program, PROGRAM_NOTE);
    program_set_segment(&program, PROGRAM_NOTE, PT_NOTE, PF_R, PROGRAM_TABLES_OFFSET, 64, 64);
    assert_taken();
    assert_true(elf.has_note);
}

static void the_first_of_several_notes_counts(void **state) {
    (void)state;
    add_note_in_front(PH__NOTE_TABLES, PH__NOTE_NAME, 8, 4, 4, 24);
    assert_taken();
    assert_int_equal(elf.note_offset, PROGRAM_NOTE_OFFSET + 20);
    assert_int_equal(elf.note_size, 4);
}

static void the_note_of_who_asks_for_its_trace_is_found(void **state) {
    (void)state;
    program_add_note(&program);
    assert_taken();
    assert_false(elf.has_traceparent_note);

    /* In front of the other, and behind one. */
    add_note_in_front(PH__NOTE_TRACEPARENT, PH__NOTE_NAME, 8, 0, 4, 20);
    assert_taken();
    assert_true(elf.has_traceparent_note);
    assert_int_equal(elf.note_offset, PROGRAM_NOTE_OFFSET + 20 + 20);
    program_init(&program);
    add_note_in_front(PH__NOTE_TABLES, PH__NOTE_NAME, 8, 4, 4, 24);
    ((Elf64_Nhdr *)(program.bytes + PROGRAM_NOTE_OFFSET + 24))->n_type = PH__NOTE_TRACEPARENT;
    assert_taken();
    assert_true(elf.has_note);
    assert_true(elf.has_traceparent_note);

    /* Alone, in a program that serves no calls; and of somebody else. */
    program_init(&program);
    program_add_note(&program);
    program_note_header(&program)->n_type = PH__NOTE_TRACEPARENT;
    assert_taken();
    assert_false(elf.has_note);
    assert_true(elf.has_traceparent_note);
    program.bytes[PROGRAM_NOTE_OFFSET + sizeof(Elf64_Nhdr)] ^= 1;
    assert_taken();
    assert_false(elf.has_traceparent_note);
}

static void the_build_id_is_found_beside_the_note(void **state) {
    (void)state;
    assert_taken();
    assert_int_equal(elf.build_id_size, 0);
    add_note_in_front(NT_GNU_BUILD_ID, "GNU", 4, 20, 4, 36);
    assert_taken();
    assert_int_equal(elf.build_id_offset, PROGRAM_NOTE_OFFSET + 16);
    assert_int_equal(elf.build_id_size, 20);
    assert_true(elf.has_note);

    /* In a segment of its own, behind ours. */
    program_init(&program);
    program_add_note(&program);
    const Elf64_Nhdr note = {.n_namesz = 4, .n_descsz = PH__BUILD_ID_MAX, .n_type = NT_GNU_BUILD_ID};
    memcpy(program.bytes + PROGRAM_BLANK_OFFSET, &note, sizeof note);
    memcpy(program.bytes + PROGRAM_BLANK_OFFSET + sizeof note, "GNU", 4);
    program_set_segment(&program, PROGRAM_SPARE, PT_NOTE, PF_R, PROGRAM_BLANK_OFFSET, 16 + PH__BUILD_ID_MAX,
                        16 + PH__BUILD_ID_MAX);
    assert_taken();
    assert_int_equal(elf.build_id_offset, PROGRAM_BLANK_OFFSET + 16);
    assert_int_equal(elf.build_id_size, PH__BUILD_ID_MAX);
    assert_true(elf.has_note);
}

static void what_is_no_build_id_is_passed_over(void **state) {
    (void)state;
    add_note_in_front(NT_GNU_BUILD_ID, "gnu", 4, 20, 4, 36);
    assert_taken();
    assert_int_equal(elf.build_id_size, 0);
    program_init(&program);
    add_note_in_front(NT_GNU_BUILD_ID + 1, "GNU", 4, 20, 4, 36);
    assert_taken();
    assert_int_equal(elf.build_id_size, 0);
    /* Longer than any that a linker makes. */
    program_init(&program);
    add_note_in_front(NT_GNU_BUILD_ID, "GNU", 4, PH__BUILD_ID_MAX + 1, 4, 16 + PH__BUILD_ID_MAX + 4);
    assert_taken();
    assert_int_equal(elf.build_id_size, 0);
    assert_true(elf.has_note);
    /* Cut off. */
    program_init(&program);
    add_note_in_front(NT_GNU_BUILD_ID, "GNU", 4, 20, 4, 36);
    program_segment(&program, PROGRAM_NOTE)->p_filesz = 35;
    assert_taken();
    assert_int_equal(elf.build_id_size, 0);
}

static void notes_may_end_with_the_file(void **state) {
    const Elf64_Nhdr other = {.n_namesz = 4, .n_descsz = 8, .n_type = 3};

    (void)state;
    for (size_t rest = 0; rest < sizeof other; rest++) {
        size_t size = sizeof other + 12 + rest;
        memcpy(program.bytes + PROGRAM_SIZE - size, &other, sizeof other);
        program_set_segment(&program, PROGRAM_SPARE, PT_NOTE, PF_R, PROGRAM_SIZE - size, size, size);
        assert_taken();
        assert_false(elf.has_note);
    }
}

static void damaged_notes_end_the_search(void **state) {
    (void)state;
    add_note_in_front(7, "other", UINT32_MAX, 1, 4, 24);
    assert_taken();
    assert_false(elf.has_note);
    program_init(&program);
    add_note_in_front(7, "other", 6, UINT32_MAX, 4, 24);
    assert_taken();
    assert_false(elf.has_note);
    program_init(&program);
    program_add_note(&program);
    program_segment(&program, PROGRAM_NOTE)->p_filesz -= 1;
    assert_taken();
    assert_false(elf.has_note);
}

static void a_note_that_is_not_loaded_is_refused(void **state) {
    (void)state;
    program_add_note(&program);
    program_segment(&program, PROGRAM_NOTE)->p_vaddr += 4;
    assert_refused("it is not where it says");
    program_segment(&program, PROGRAM_NOTE)->p_vaddr = UINT64_MAX - 3;
    assert_refused("it is not where it says");
}

static void notes_outside_the_file_are_refused(void **state) {
    (void)state;
    program_segment(&program, PROGRAM_NOTE)->p_filesz = PROGRAM_SIZE;
    assert_refused("the notes are not all inside the file");
}

static void unsound_section_headers_mean_no_symbols(void **state) {
    Elf64_Ehdr *header = program_header_of(&program);
    Elf64_Shdr *symbols = program_section(&program, 1);
    Elf64_Shdr *strings = program_section(&program, 2);

    (void)state;
#define NO_SYMBOLS(damage)                                                                                   \
    do {                                                                                                     \
        start_with_a_sound_program(NULL);                                                                    \
        damage;                                                                                              \
        assert_taken();                                                                                      \
        assert_int_equal(elf.symbol_count, 0);                                                               \
        assert_int_equal(elf.symbols_offset, 0);                                                             \
        assert_int_equal(elf.strings_offset, 0);                                                             \
        assert_int_equal(elf.strings_size, 0);                                                               \
    } while (0)
    NO_SYMBOLS(header->e_shnum = 0);
    NO_SYMBOLS(header->e_shnum = UINT16_MAX);
    NO_SYMBOLS(header->e_shoff = UINT64_MAX - 8);
    NO_SYMBOLS(header->e_shentsize = 40);
    NO_SYMBOLS(symbols->sh_type = SHT_DYNSYM);
    NO_SYMBOLS(symbols->sh_offset = PROGRAM_SIZE);
    NO_SYMBOLS(symbols->sh_size = UINT64_MAX);
    NO_SYMBOLS(symbols->sh_entsize = 0);
    NO_SYMBOLS(symbols->sh_link = 3);
    NO_SYMBOLS(symbols->sh_link = UINT32_MAX);
    NO_SYMBOLS(strings->sh_type = SHT_PROGBITS);
    NO_SYMBOLS(strings->sh_size = 0);
    NO_SYMBOLS(strings->sh_offset = UINT64_MAX);
    /* The section headers end with the file, and the link leads behind them. */
    NO_SYMBOLS((memcpy(program.bytes + PROGRAM_SIZE - 3 * sizeof *symbols, program_section(&program, 0),
                       3 * sizeof *symbols),
                header->e_shoff = PROGRAM_SIZE - 3 * sizeof *symbols,
                ((Elf64_Shdr *)(void *)(program.bytes + header->e_shoff))[1].sh_link = 3));
#undef NO_SYMBOLS
}

static void only_loaded_bytes_of_the_file_are_found_by_address(void **state) {
    (void)state;
    assert_taken();
    const uint8_t *bytes = program.bytes;
    uint64_t data = PROGRAM_BASE + PROGRAM_DATA_OFFSET;
    assert_ptr_equal(ph__elf_at(bytes, &elf, data, 1), bytes + PROGRAM_DATA_OFFSET);
    assert_ptr_equal(ph__elf_at(bytes, &elf, data, PROGRAM_DATA_SIZE), bytes + PROGRAM_DATA_OFFSET);
    assert_ptr_equal(ph__elf_at(bytes, &elf, data + 0xff, 1), bytes + PROGRAM_DATA_OFFSET + 0xff);
    assert_null(ph__elf_at(bytes, &elf, data, PROGRAM_DATA_SIZE + 1));
    assert_null(ph__elf_at(bytes, &elf, data, UINT64_MAX));
    assert_null(ph__elf_at(bytes, &elf, data + PROGRAM_DATA_SIZE, 1));
    assert_null(ph__elf_at(bytes, &elf, data - 1, 1));
    assert_null(ph__elf_at(bytes, &elf, 0, 1));
    assert_null(ph__elf_at(bytes, &elf, UINT64_MAX, 1));
    assert_ptr_equal(ph__elf_at(bytes, &elf, data + PROGRAM_DATA_SIZE, 0),
                     bytes + PROGRAM_DATA_OFFSET + PROGRAM_DATA_SIZE);
    assert_null(ph__elf_at(bytes, &elf, data + PROGRAM_DATA_SIZE + 1, 0));

    assert_int_equal(ph__elf_available(&elf, data), PROGRAM_DATA_SIZE);
    assert_int_equal(ph__elf_available(&elf, data + 0xff), 1);
    assert_int_equal(ph__elf_available(&elf, data + PROGRAM_DATA_SIZE), 0);
    assert_int_equal(ph__elf_available(&elf, data + PROGRAM_DATA_SIZE + 1), 0);
    assert_int_equal(ph__elf_available(&elf, data - 1), 0);
    assert_int_equal(ph__elf_available(&elf, UINT64_MAX), 0);
}

/* The program is refused with a message, or it is taken and all promises hold. */
static void assert_sound(bool allow_wx) {
    if (!parse(allow_wx)) {
        assert_true(elf_error.message[0] != 0);
        assert_true(strlen(elf_error.message) < sizeof elf_error.message);
        return;
    }
    const char *broken = elf_broken_promise(&elf, program.size, allow_wx);
    if (broken)
        fail_msg("broken promise: %s", broken);
}

static void a_file_cut_off_anywhere_is_refused_or_sound(void **state) {
    size_t whole;

    (void)state;
    program_make_pie(&program);
    program_add_note(&program);
    whole = program.size;
    for (size_t size = 0; size < whole; size += size < 0x1000 || size > 0x1f00 ? 1 : 16) {
        program.size = size;
        assert_sound(false);
        /* Not without its data. */
        if (size < PROGRAM_DATA_OFFSET + PROGRAM_DATA_SIZE)
            assert_false(parse(true));
    }
}

static void a_file_with_any_changed_byte_is_refused_or_sound(void **state) {
    static const struct {
        size_t start, end;
    } parts[] = {
        {0, sizeof(Elf64_Ehdr) + (PROGRAM_SPARE + 1) * sizeof(Elf64_Phdr)},
        {PROGRAM_NOTE_OFFSET, PROGRAM_NOTE_OFFSET + 0x40},
        {PROGRAM_DATA_OFFSET, PROGRAM_DATA_OFFSET + 0x40},
        {PROGRAM_SECTIONS_OFFSET, PROGRAM_SECTIONS_OFFSET + 3 * sizeof(Elf64_Shdr)},
    };
    (void)state;
    program_make_pie(&program);
    program_add_note(&program);
    for (size_t part = 0; part < sizeof parts / sizeof parts[0]; part++) {
        for (size_t i = parts[part].start; i < parts[part].end; i++) {
            uint8_t before = program.bytes[i];
            for (unsigned value = 0; value < 256; value += value % 16 == 1 ? 14 : 1) {
                program.bytes[i] = (uint8_t)value;
                assert_sound(value & 1);
            }
            program.bytes[i] = before;
        }
    }
}

/* A program that a real linker made (programs/meson.build), or NULL with a skip where there is none. */
static uint8_t *read_program(const char *name, size_t *size) {
    const char *folder = getenv("PH_TEST_PROGRAMS");
    char path[4096];
    FILE *file;
    uint8_t *bytes = NULL;
    long length;

    if (!folder)
        skip();
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    fseek(file, 0, SEEK_END);
    length = ftell(file);
    rewind(file);
    bytes = malloc((size_t)length);
    assert_non_null(bytes);
    *size = fread(bytes, 1, (size_t)length, file);
    assert_int_equal(*size, length);
    fclose(file);
    return bytes;
}

static void assert_program_taken(const char *name, bool is_pie) {
    size_t size;
    uint8_t *bytes = read_program(name, &size);

    if (!ph__elf_parse(bytes, size, false, &elf, &elf_error))
        fail_msg("%s is refused: %s", name, elf_error.message);
    const char *broken = elf_broken_promise(&elf, size, 0);
    if (broken)
        fail_msg("%s: broken promise: %s", name, broken);
    assert_true(elf.static_pie == is_pie);
    assert_true(elf.symbol_count > 0);
    assert_true(elf.headers_address != 0);
    free(bytes);
}

static void assert_program_refused(const char *name, const char *why) {
    size_t size;
    uint8_t *bytes = read_program(name, &size);

    assert_false(ph__elf_parse(bytes, size, true, &elf, &elf_error));
    if (!strstr(elf_error.message, why))
        fail_msg("%s is refused with '%s' and not with '%s'", name, elf_error.message, why);
    free(bytes);
}

static void real_static_programs_are_taken(void **state) {
    (void)state;
    assert_program_taken("static", false);
    assert_program_taken("static-pie", true);
    assert_program_taken("static-musl", false);
    assert_program_taken("static-dense", false);
    assert_program_taken("static-aligned", true);
    assert_program_taken("tables", false);
    assert_program_taken("tables-pie", true);
}

static void real_files_of_other_kinds_are_refused(void **state) {
    (void)state;
    assert_program_refused("dynamic", "link it with -static");
    assert_program_refused("library.so", "link it with -static");
    assert_program_refused("library-alone.so", "link it with -static");
    assert_program_refused("object.o", "an object file");
    assert_program_refused("program.c", "a text file");
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
#define TEST(name) cmocka_unit_test_setup(name, start_with_a_sound_program)
    const struct CMUnitTest tests[] = {
        TEST(a_static_program_is_taken_as_it_says),
        TEST(static_pie_is_moved_by_its_bias),
        TEST(static_pie_gets_the_alignment_it_asks_for),
        TEST(static_pie_without_the_mark_is_taken_if_it_can_be_entered),
        TEST(a_shared_library_is_refused),
        TEST(a_dynamic_program_is_told_to_link_with_static),
        TEST(the_dynamic_section_ends_at_its_null_entry),
        TEST(a_dynamic_section_outside_the_file_is_refused),
        TEST(what_is_no_elf_file_is_named_for_what_it_is),
        TEST(programs_for_other_machines_are_named_for_what_they_are),
        TEST(files_that_are_no_program_are_named_for_what_they_are),
        TEST(program_headers_must_be_in_the_file),
        TEST(headers_that_are_not_loaded_have_no_address),
        TEST(a_segment_must_be_in_the_file),
        TEST(a_segment_has_no_more_bytes_in_the_file_than_in_memory),
        TEST(a_segment_lies_at_the_same_place_of_a_page_in_file_and_memory),
        TEST(an_alignment_is_a_power_of_two),
        TEST(segments_ascend_and_neither_overlap_nor_share_a_page),
        TEST(segments_stay_inside_the_addresses_of_a_program),
        TEST(segments_may_reach_the_end_of_the_addresses),
        TEST(the_span_is_limited),
        TEST(writable_and_executable_segments_must_be_asked_for),
        TEST(a_segment_that_cannot_be_read_is_readable),
        TEST(an_empty_segment_is_left_out),
        TEST(the_number_of_segments_is_limited),
        TEST(a_file_without_segments_is_refused),
        TEST(the_entry_is_code_in_the_file),
        TEST(thread_local_variables_must_be_sane),
        TEST(an_executable_stack_is_noted_and_not_refused),
        TEST(the_note_is_found),
        TEST(the_note_is_found_behind_others),
        TEST(notes_with_another_name_or_type_are_passed_over),
        TEST(the_note_is_found_in_any_of_several_segments),
        TEST(the_first_of_several_notes_counts),
        TEST(the_note_of_who_asks_for_its_trace_is_found),
        TEST(the_build_id_is_found_beside_the_note),
        TEST(what_is_no_build_id_is_passed_over),
        TEST(notes_may_end_with_the_file),
        TEST(damaged_notes_end_the_search),
        TEST(a_note_that_is_not_loaded_is_refused),
        TEST(notes_outside_the_file_are_refused),
        TEST(unsound_section_headers_mean_no_symbols),
        TEST(only_loaded_bytes_of_the_file_are_found_by_address),
        TEST(a_file_cut_off_anywhere_is_refused_or_sound),
        TEST(a_file_with_any_changed_byte_is_refused_or_sound),
        TEST(real_static_programs_are_taken),
        TEST(real_files_of_other_kinds_are_refused),
    };
    return cmocka_run_group_tests_name("elf", tests, make_memory, free_memory);
}
