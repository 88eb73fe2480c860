/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reads a static ELF file that nobody trusts (elf.h). Every number of the file is hostile until it is checked
 * here; what leaves in struct ph__elf needs no second check. Nothing is allocated, and the bytes are read
 * with memcpy, since nothing in such a file need be aligned.
 */
#include "vm/elf.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "abi/layout.h"
#include "abi/table.h"

/* Where static-PIE is loaded: where static programs are linked to by default, a multiple of 2 MiB. */
#define PIE_BASE 0x400000ull

/* The most that the segments may span. Far above what a sandbox can hold, so that sums of sizes cannot
 * overflow anywhere behind this file; also the largest alignment of static-PIE. */
#define SPAN_MAX (64ull << 30)

/* The file, and the parts that every check needs. */
struct file {
    const uint8_t *bytes;
    uint64_t size;
    Elf64_Ehdr header; /* type, machine, program headers' number and place are checked; the rest is not */
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct ph__elf_error *error, const char *format,
                                                         ...) {
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return false;
}

static bool is_inside(uint64_t offset, uint64_t size, uint64_t whole) {
    return offset <= whole && size <= whole - offset;
}

/* The gABI's rule for alignments: 0 and 1 mean none. */
static bool is_alignment(uint64_t alignment) {
    return (alignment & (alignment - 1)) == 0;
}

static uint64_t align_down(uint64_t value, uint64_t alignment) {
    return value & ~(alignment - 1);
}

static uint64_t align_up(uint64_t value, uint64_t alignment) {
    return align_down(value + alignment - 1, alignment);
}

static Elf64_Phdr program_header(const struct file *file, uint32_t index) {
    Elf64_Phdr untrusted_header;

    memcpy(&untrusted_header, file->bytes + file->header.e_phoff + index * sizeof untrusted_header,
           sizeof untrusted_header);
    return untrusted_header;
}

static bool starts_with(const uint8_t *bytes, uint64_t size, const char *start) {
    size_t length = strlen(start);

    return size >= length && memcmp(bytes, start, length) == 0;
}

/* Whether the file begins like text, for a message that helps. */
static bool looks_like_text(const uint8_t *bytes, uint64_t size) {
    uint64_t length = size < 64 ? size : 64;

    for (uint64_t i = 0; i < length; i++)
        if ((bytes[i] < 0x20 && !(bytes[i] >= '\t' && bytes[i] <= '\r')) || bytes[i] == 0x7f)
            return false;
    return true;
}

/* The file begins as an ELF file of 64 bits. */
static bool check_magic(const uint8_t *bytes, uint64_t size, struct ph__elf_error *error) {
    uint64_t magic = size < SELFMAG ? size : SELFMAG;

    if (size == 0)
        return refuse(error, "the file is empty");
    if (starts_with(bytes, size, "#!"))
        return refuse(error, "this is a script, not a program: pinhole runs static ELF programs");
    if (starts_with(bytes, size, "!<arch>\n"))
        return refuse(error, "this is a library archive, not a program: link it into one with -static");
    if (memcmp(bytes, ELFMAG, magic) != 0) {
        if (looks_like_text(bytes, size))
            return refuse(error, "this is a text file, not an ELF program");
        return refuse(error, "this is not an ELF file");
    }
    if (size < EI_NIDENT)
        return refuse(error, "the file is cut off within its ELF header");
    if (bytes[EI_CLASS] == ELFCLASS32)
        return refuse(error, "this is a 32-bit program: build it for 64-bit x86");
    if (bytes[EI_CLASS] != ELFCLASS64)
        return refuse(error, "the ELF header is damaged: there is no class %u", bytes[EI_CLASS]);
    if (size < sizeof(Elf64_Ehdr))
        return refuse(error, "the file is cut off within its ELF header");
    return true;
}

/* The ELF header names a Linux program for x86-64 whose program headers are all in the file. */
static bool check_header(const uint8_t *bytes, uint64_t size, struct file *file,
                         struct ph__elf_error *error) {
    Elf64_Ehdr *header = &file->header;

    if (!check_magic(bytes, size, error))
        return false;
    *file = (struct file){.bytes = bytes, .size = size};
    memcpy(header, bytes, sizeof *header);

    if (header->e_ident[EI_DATA] == ELFDATA2MSB)
        return refuse(error, "this is a big-endian program: build it for 64-bit x86");
    if (header->e_ident[EI_DATA] != ELFDATA2LSB)
        return refuse(error, "the ELF header is damaged: there is no byte order %u",
                      header->e_ident[EI_DATA]);
    if (header->e_machine != EM_X86_64)
        return refuse(error,
                      "this program is for another processor (ELF machine %u): build it for 64-bit x86",
                      header->e_machine);
    if (header->e_ident[EI_VERSION] != EV_CURRENT || header->e_version != EV_CURRENT)
        return refuse(error, "the ELF header is damaged: its version is not 1");
    /* A static glibc program says GNU when it has indirect functions. */
    if (header->e_ident[EI_OSABI] != ELFOSABI_SYSV && header->e_ident[EI_OSABI] != ELFOSABI_GNU)
        return refuse(error,
                      "this program is for another operating system (ELF OS/ABI %u): build it for Linux",
                      header->e_ident[EI_OSABI]);
    if (header->e_type == ET_REL)
        return refuse(error, "this is an object file, not a program: link it into one with -static");
    if (header->e_type == ET_CORE)
        return refuse(error, "this is a core file, not a program");
    if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
        return refuse(error, "the ELF header is damaged: there is no file type %u", header->e_type);

    if (header->e_phnum == 0)
        return refuse(error, "there is nothing to load: the file has no program headers");
    if (header->e_phnum == PN_XNUM)
        return refuse(error, "the file has too many program headers");
    if (header->e_phentsize != sizeof(Elf64_Phdr))
        return refuse(error, "the ELF header is damaged: its program headers have %u bytes instead of %zu",
                      header->e_phentsize, sizeof(Elf64_Phdr));
    if (!is_inside(header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr), size))
        return refuse(error, "the program headers are not all inside the file: it is cut off or damaged");
    return true;
}

/* What the dynamic section at (untrusted_header) says. */
struct dynamic {
    bool needs_libraries, has_library_name, is_pie;
};

static bool read_dynamic(const struct file *file, const Elf64_Phdr *untrusted_header, struct dynamic *dynamic,
                         struct ph__elf_error *error) {
    if (!is_inside(untrusted_header->p_offset, untrusted_header->p_filesz, file->size))
        return refuse(error, "the dynamic section is not all inside the file: it is cut off or damaged");
    const uint8_t *start = file->bytes + untrusted_header->p_offset;
    for (uint64_t i = 0; i < untrusted_header->p_filesz / sizeof(Elf64_Dyn); i++) {
        Elf64_Dyn untrusted_entry;
        memcpy(&untrusted_entry, start + i * sizeof untrusted_entry, sizeof untrusted_entry);
        if (untrusted_entry.d_tag == DT_NULL)
            break;
        if (untrusted_entry.d_tag == DT_NEEDED)
            dynamic->needs_libraries = true;
        else if (untrusted_entry.d_tag == DT_SONAME)
            dynamic->has_library_name = true;
        else if (untrusted_entry.d_tag == DT_FLAGS_1 && (untrusted_entry.d_un.d_val & DF_1_PIE))
            dynamic->is_pie = true;
    }
    return true;
}

/* The program is static: nobody else is needed to load it. An ET_DYN file without the mark of a PIE, which
 * old linkers do not set, is taken for one if it can be entered and does not call itself a library. */
static bool check_static(const struct file *file, struct ph__elf_error *error) {
    struct dynamic dynamic = {0};

    for (uint32_t i = 0; i < file->header.e_phnum; i++) {
        Elf64_Phdr untrusted_header = program_header(file, i);
        if (untrusted_header.p_type == PT_INTERP)
            return refuse(error,
                          "this program is dynamically linked (it has an interpreter): link it with -static");
        if (untrusted_header.p_type == PT_DYNAMIC && !read_dynamic(file, &untrusted_header, &dynamic, error))
            return false;
    }
    if (file->header.e_type == ET_DYN && !dynamic.is_pie &&
        (dynamic.has_library_name || file->header.e_entry == 0))
        return refuse(error, "this is a shared library, not a program: link it with -static into one");
    if (dynamic.needs_libraries)
        return refuse(error,
                      "this program is dynamically linked (it needs shared libraries): link it with -static");
    return true;
}

/* The load bias of static-PIE honours the largest alignment that a segment asks for, as Linux does. */
static bool find_bias(const struct file *file, uint64_t *bias, struct ph__elf_error *error) {
    uint64_t alignment = PH__PAGE_SIZE;

    *bias = 0;
    if (file->header.e_type != ET_DYN)
        return true;
    for (uint32_t i = 0; i < file->header.e_phnum; i++) {
        Elf64_Phdr untrusted_header = program_header(file, i);
        if (untrusted_header.p_type != PT_LOAD || !is_alignment(untrusted_header.p_align))
            continue; /* check_segment refuses what is no alignment */
        if (untrusted_header.p_align > SPAN_MAX)
            return refuse(error, "segment %u asks for an alignment of 0x%llx, which is too large", i,
                          (unsigned long long)untrusted_header.p_align);
        if (untrusted_header.p_align > alignment)
            alignment = untrusted_header.p_align;
    }
    *bias = align_up(PIE_BASE, alignment);
    return true;
}

/* Checks the PT_LOAD (untrusted_header), number (index) among the program headers, and adds it to (elf). */
static bool add_segment(const struct file *file, const Elf64_Phdr *untrusted_header, uint32_t index,
                        bool allow_wx, struct ph__elf *elf, struct ph__elf_error *error) {
    uint64_t address_max = PH__WINDOW_GVA - elf->bias;
    struct ph__elf_segment segment = {
        .address = untrusted_header->p_vaddr + elf->bias,
        .memory_size = untrusted_header->p_memsz,
        .file_offset = untrusted_header->p_offset,
        .file_size = untrusted_header->p_filesz,
        /* x86 pages cannot be executed or written without being readable, and Linux gives the same. */
        .readable = true,
        .writable = untrusted_header->p_flags & PF_W,
        .executable = untrusted_header->p_flags & PF_X,
    };

    if (segment.file_size > segment.memory_size)
        return refuse(error, "segment %u is damaged: it has more bytes in the file than in memory", index);
    if (!is_inside(segment.file_offset, segment.file_size, file->size))
        return refuse(error, "segment %u is not all inside the file: it is cut off or damaged", index);
    if (!is_alignment(untrusted_header->p_align))
        return refuse(error, "segment %u is damaged: its alignment 0x%llx is not a power of two", index,
                      (unsigned long long)untrusted_header->p_align);
    if (segment.memory_size == 0)
        return true;
    if (segment.file_size > 0 && (untrusted_header->p_vaddr - segment.file_offset) % PH__PAGE_SIZE != 0)
        return refuse(error, "segment %u is damaged: address and file offset differ within their pages",
                      index);
    if (!is_inside(untrusted_header->p_vaddr, segment.memory_size, address_max) ||
        segment.address < PH__IMAGE_GVA_MIN)
        return refuse(error, "segment %u lies outside the addresses 0x%llx to 0x%llx that a program may use",
                      index, PH__IMAGE_GVA_MIN, PH__WINDOW_GVA);
    if (segment.writable && segment.executable && !allow_wx)
        return refuse(error,
                      "segment %u is writable and executable: link the program without -N, or open it with "
                      "PH_IMAGE_ALLOW_WX",
                      index);
    if (elf->segment_count == PH__ELF_SEGMENTS_MAX)
        return refuse(error, "the file has more than %u segments to load", PH__ELF_SEGMENTS_MAX);

    uint64_t start = align_down(segment.address, PH__PAGE_SIZE);
    if (elf->segment_count > 0) {
        const struct ph__elf_segment *before = &elf->segments[elf->segment_count - 1];
        if (segment.address < before->address)
            return refuse(error, "segment %u is damaged: the segments' addresses do not ascend", index);
        if (segment.address < before->address + before->memory_size)
            return refuse(error, "segment %u is damaged: it overlaps the one before it", index);
        if (start < elf->end)
            return refuse(
                error,
                "segment %u shares the page at 0x%llx with the one before it: link the program with "
                "-z max-page-size=4096",
                index, (unsigned long long)start);
    } else {
        elf->start = start;
    }
    elf->end = align_up(segment.address + segment.memory_size, PH__PAGE_SIZE);
    if (elf->end - elf->start > SPAN_MAX)
        return refuse(error, "the program spans more than 64 GiB of addresses");
    elf->segments[elf->segment_count++] = segment;
    return true;
}

/* The template of thread-local variables. Only the program's own libc uses it, so no more than sanity is
 * asked. */
static bool check_tls(const struct file *file, const Elf64_Phdr *untrusted_header,
                      struct ph__elf_error *error) {
    if (!is_inside(untrusted_header->p_offset, untrusted_header->p_filesz, file->size) ||
        untrusted_header->p_filesz > untrusted_header->p_memsz || untrusted_header->p_memsz > SPAN_MAX ||
        untrusted_header->p_vaddr > PH__WINDOW_GVA || !is_alignment(untrusted_header->p_align))
        return refuse(error, "the segment of thread-local variables is damaged");
    return true;
}

static bool note_is(const Elf64_Nhdr *untrusted_note, const uint8_t *name, uint32_t type, const char *wanted,
                    size_t wanted_size) {
    return untrusted_note->n_type == type && untrusted_note->n_namesz == wanted_size &&
           memcmp(name, wanted, wanted_size) == 0;
}

/* Looks for our notes and the build-id in a PT_NOTE, which holds notes of others too; the first of each
 * counts. What is not a sound note ends the search, as it does for every other reader of notes; Linux runs
 * such programs. */
static bool find_notes(const struct file *file, const Elf64_Phdr *untrusted_header, struct ph__elf *elf,
                       struct ph__elf_error *error) {
    uint64_t size = untrusted_header->p_filesz;
    uint64_t alignment = untrusted_header->p_align == 8 ? 8 : 4;
    uint64_t position = 0;
    bool found = false;

    if (!is_inside(untrusted_header->p_offset, size, file->size))
        return elf->has_note ||
               refuse(error, "the notes are not all inside the file: it is cut off or damaged");
    const uint8_t *start = file->bytes + untrusted_header->p_offset;
    while (position <= size && size - position >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr untrusted_note;
        memcpy(&untrusted_note, start + position, sizeof untrusted_note);
        uint64_t name = position + sizeof untrusted_note;
        uint64_t description = align_up(name + untrusted_note.n_namesz, alignment);
        if (!is_inside(description, untrusted_note.n_descsz, size))
            break;
        position = align_up(description + untrusted_note.n_descsz, alignment);
        if (!elf->build_id_size && untrusted_note.n_descsz <= PH__BUILD_ID_MAX &&
            note_is(&untrusted_note, start + name, NT_GNU_BUILD_ID, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU)) {
            elf->build_id_offset = untrusted_header->p_offset + description;
            elf->build_id_size = untrusted_note.n_descsz;
        }
        if (note_is(&untrusted_note, start + name, PH__NOTE_TRACEPARENT, PH__NOTE_NAME, sizeof PH__NOTE_NAME))
            elf->has_traceparent_note = true;
        if (elf->has_note ||
            !note_is(&untrusted_note, start + name, PH__NOTE_TABLES, PH__NOTE_NAME, sizeof PH__NOTE_NAME))
            continue;
        elf->has_note = found = true;
        elf->note_offset = untrusted_header->p_offset + description;
        elf->note_size = untrusted_note.n_descsz;
        elf->note_address = untrusted_header->p_vaddr + elf->bias + description;
    }
    /* Its distances count from its address, so it must be loaded from where it was read. */
    if (found &&
        ph__elf_at(file->bytes, elf, elf->note_address, elf->note_size) != file->bytes + elf->note_offset)
        return refuse(error, "the note of the pinhole guest library is damaged: it is not where it says");
    return true;
}

static const struct ph__elf_segment *segment_at(const struct ph__elf *elf, uint64_t address) {
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        const struct ph__elf_segment *segment = &elf->segments[i];
        if (address >= segment->address && address - segment->address < segment->memory_size)
            return segment;
    }
    return NULL;
}

/* The program starts at code that is in the file. */
static bool check_entry(const struct file *file, struct ph__elf *elf, struct ph__elf_error *error) {
    uint64_t untrusted_entry = file->header.e_entry + elf->bias;
    const struct ph__elf_segment *segment = segment_at(elf, untrusted_entry);

    if (!segment || !segment->executable || untrusted_entry - segment->address >= segment->file_size)
        return refuse(error, "the entry point 0x%llx is not in executable code of the file",
                      (unsigned long long)file->header.e_entry);
    elf->entry = untrusted_entry;
    return true;
}

/* Where the program headers are in memory: a static libc reads its TLS segment there. */
static void find_headers(const struct file *file, struct ph__elf *elf) {
    uint64_t size = (uint64_t)file->header.e_phnum * sizeof(Elf64_Phdr);

    elf->header_count = file->header.e_phnum;
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        const struct ph__elf_segment *segment = &elf->segments[i];
        if (file->header.e_phoff >= segment->file_offset &&
            is_inside(file->header.e_phoff - segment->file_offset, size, segment->file_size)) {
            elf->headers_address = segment->address + (file->header.e_phoff - segment->file_offset);
            return;
        }
    }
}

static bool section_header(const struct file *file, uint32_t index, Elf64_Shdr *untrusted_section) {
    if (index >= file->header.e_shnum)
        return false;
    memcpy(untrusted_section, file->bytes + file->header.e_shoff + index * sizeof *untrusted_section,
           sizeof *untrusted_section);
    return untrusted_section->sh_type == SHT_NOBITS ||
           is_inside(untrusted_section->sh_offset, untrusted_section->sh_size, file->size);
}

/* Section headers name functions in messages and nothing else: what is not sound means no names, never a
 * refusal. */
static void find_symbols(const struct file *file, struct ph__elf *elf) {
    Elf64_Shdr untrusted_symbols, untrusted_strings;

    if (file->header.e_shentsize != sizeof(Elf64_Shdr) ||
        !is_inside(file->header.e_shoff, (uint64_t)file->header.e_shnum * sizeof(Elf64_Shdr), file->size))
        return;
    for (uint32_t i = 0; i < file->header.e_shnum; i++) {
        if (!section_header(file, i, &untrusted_symbols) || untrusted_symbols.sh_type != SHT_SYMTAB)
            continue;
        if (untrusted_symbols.sh_entsize != sizeof(Elf64_Sym) ||
            !section_header(file, untrusted_symbols.sh_link, &untrusted_strings) ||
            untrusted_strings.sh_type != SHT_STRTAB || untrusted_strings.sh_size == 0)
            return;
        elf->symbols_offset = untrusted_symbols.sh_offset;
        elf->symbol_count = untrusted_symbols.sh_size / sizeof(Elf64_Sym);
        elf->strings_offset = untrusted_strings.sh_offset;
        elf->strings_size = untrusted_strings.sh_size;
        return;
    }
}

bool ph__elf_parse(const uint8_t *bytes, size_t size, bool allow_wx, struct ph__elf *elf,
                   struct ph__elf_error *error) {
    struct file file;

    *elf = (struct ph__elf){0};
    error->message[0] = 0;
    if (!check_header(bytes, size, &file, error) || !check_static(&file, error) ||
        !find_bias(&file, &elf->bias, error))
        return false;
    elf->static_pie = file.header.e_type == ET_DYN;

    for (uint32_t i = 0; i < file.header.e_phnum; i++) {
        Elf64_Phdr untrusted_header = program_header(&file, i);
        if (untrusted_header.p_type == PT_LOAD &&
            !add_segment(&file, &untrusted_header, i, allow_wx, elf, error))
            return false;
        if (untrusted_header.p_type == PT_TLS && !check_tls(&file, &untrusted_header, error))
            return false;
        /* Programs with assembly files in them ask for this by mistake, so it is no reason to refuse one. The
         * stack is never executable. */
        if (untrusted_header.p_type == PT_GNU_STACK && (untrusted_header.p_flags & PF_X))
            elf->executable_stack = true;
    }
    if (elf->segment_count == 0)
        return refuse(error, "there is nothing to load: the file has no loadable segment");
    if (!check_entry(&file, elf, error))
        return false;
    for (uint32_t i = 0; i < file.header.e_phnum; i++) {
        Elf64_Phdr untrusted_header = program_header(&file, i);
        if (untrusted_header.p_type == PT_NOTE && !find_notes(&file, &untrusted_header, elf, error))
            return false;
    }
    find_headers(&file, elf);
    find_symbols(&file, elf);
    return true;
}

uint64_t ph__elf_available(const struct ph__elf *elf, uint64_t address) {
    const struct ph__elf_segment *segment = segment_at(elf, address);

    if (!segment || address - segment->address > segment->file_size)
        return 0;
    return segment->file_size - (address - segment->address);
}

const uint8_t *ph__elf_at(const uint8_t *bytes, const struct ph__elf *elf, uint64_t address, uint64_t size) {
    const struct ph__elf_segment *segment = segment_at(elf, address);

    if (!segment || !is_inside(address - segment->address, size, segment->file_size))
        return NULL;
    return bytes + segment->file_offset + (address - segment->address);
}
