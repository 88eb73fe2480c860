/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every floor of the soft backend. This file links the Unicorn Engine, which is under the GPL; the benchmark
 * program is for those who build pinhole, it is neither installed nor handed on.
 *
 * Computing, the floor of soft.mips_ratio: the file that is the guest's image, so the same machine code at
 * the same addresses.
 *   1. (once) uc_open, uc_mem_map_ptr of each segment and of a stack, no hook
 *   2. uc_reg_write of the argument and the stack pointer, with a return address on the stack
 *   3. uc_emu_start at the function, until the return address
 *   4. uc_reg_read of the result
 *
 * Exit, the floor of soft.call_us_ratio: two instructions, `out` and a `jmp` back to it, and a hook for
 * `out`.
 *   1. uc_emu_start at the `out`
 *   2. the hook calls uc_emu_stop
 *   3. uc_emu_start returns
 */
#include "floor_soft.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unicorn/unicorn.h>

#define PAGE 4096u
#define STACK_GVA 0x7f0000000000ull
#define STACK_SIZE (64u << 10)
#define RETURN_GVA 0x7f1000000000ull
#define CODE_GVA 0x400000u
#define SEGMENTS_MAX 8u
#define PORT 0x50u

static void check(uc_err result, const char *what) {
    if (result != UC_ERR_OK)
        bench_fail("%s: %s", what, uc_strerror(result));
}

static uint8_t *pages_new(size_t size) {
    uint8_t *pages = aligned_alloc(PAGE, size);

    if (!pages)
        bench_fail("out of memory");
    memset(pages, 0, size);
    return pages;
}

static void map(uc_engine *engine, uint64_t gva, size_t size, uint32_t protection, void *pages) {
    check(uc_mem_map_ptr(engine, gva, size, protection, pages), "uc_mem_map_ptr");
}

static void write_register(uc_engine *engine, int number, uint64_t value) {
    check(uc_reg_write(engine, number, &value), "uc_reg_write");
}

/* ---- a program ----------------------------------------------------------------------------------------- */

struct floor_soft_program {
    uc_engine *engine;
    uint8_t *file;
    uint8_t *stack, *back; /* the stack, and the page of the return address */
    uint8_t *segments[SEGMENTS_MAX];
};

static uint8_t *read_file(const char *path) {
    FILE *file = fopen(path, "rbe");
    long size;

    if (!file || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < (long)sizeof(Elf64_Ehdr) ||
        fseek(file, 0, SEEK_SET) != 0)
        bench_fail("%s cannot be read", path);
    uint8_t *bytes = malloc((size_t)size);
    if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size)
        bench_fail("%s cannot be read", path);
    fclose(file);
    return bytes;
}

static uint32_t protection_of(const Elf64_Phdr *segment) {
    return (segment->p_flags & PF_R ? UC_PROT_READ : 0u) | (segment->p_flags & PF_W ? UC_PROT_WRITE : 0u) |
           (segment->p_flags & PF_X ? UC_PROT_EXEC : 0u);
}

static void map_segments(struct floor_soft_program *program) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)program->file;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(program->file + header->e_phoff);
    size_t count = 0;

    for (size_t i = 0; i < header->e_phnum; i++) {
        const Elf64_Phdr *segment = &segments[i];
        if (segment->p_type != PT_LOAD)
            continue;
        const size_t before = segment->p_vaddr % PAGE;
        const size_t size = (before + segment->p_memsz + PAGE - 1) / PAGE * PAGE;
        if (count == SEGMENTS_MAX)
            bench_fail("a guest has too many segments");
        uint8_t *pages = program->segments[count++] = pages_new(size);
        memcpy(pages + before, program->file + segment->p_offset, segment->p_filesz);
        map(program->engine, segment->p_vaddr - before, size, protection_of(segment), pages);
    }
}

/* The address of (function), by the file's table of symbols. */
static uint64_t find(const struct floor_soft_program *program, const char *function) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)program->file;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(program->file + header->e_shoff);

    for (size_t i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(program->file + sections[i].sh_offset);
        const char *names = (const char *)program->file + sections[sections[i].sh_link].sh_offset;
        for (size_t j = 0; j < sections[i].sh_size / sizeof *symbols; j++)
            if (ELF64_ST_TYPE(symbols[j].st_info) == STT_FUNC &&
                strcmp(names + symbols[j].st_name, function) == 0)
                return symbols[j].st_value;
    }
    bench_fail("a guest has no function `%s`", function);
}

struct floor_soft_program *floor_soft_program_new(const char *folder, const char *name) {
    struct floor_soft_program *program = calloc(1, sizeof *program);
    const uint64_t back = RETURN_GVA;
    char path[4096];

    if (!program)
        bench_fail("out of memory");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    program->file = read_file(path);
    program->stack = pages_new(STACK_SIZE);
    program->back = pages_new(PAGE);
    check(uc_open(UC_ARCH_X86, UC_MODE_64, &program->engine), "uc_open");
    map_segments(program);
    map(program->engine, STACK_GVA, STACK_SIZE, UC_PROT_READ | UC_PROT_WRITE, program->stack);
    map(program->engine, RETURN_GVA, PAGE, UC_PROT_READ | UC_PROT_EXEC, program->back);
    memcpy(program->stack + STACK_SIZE / 2, &back, sizeof back);
    return program;
}

void floor_soft_program_free(struct floor_soft_program *program) {
    uc_close(program->engine);
    for (size_t i = 0; i < SEGMENTS_MAX; i++)
        free(program->segments[i]);
    free(program->stack);
    free(program->back);
    free(program->file);
    free(program);
}

uint64_t floor_soft_once(void *context) {
    struct floor_soft_run *run = context;
    uc_engine *engine = run->program->engine;
    const uint64_t function = find(run->program, run->function);
    uint64_t start = bench_now_ns();

    write_register(engine, UC_X86_REG_RDI, run->argument);
    write_register(engine, UC_X86_REG_RSP, STACK_GVA + STACK_SIZE / 2);
    check(uc_emu_start(engine, function, RETURN_GVA, 0, 0), run->function);
    check(uc_reg_read(engine, UC_X86_REG_RAX, &run->result), "uc_reg_read");
    return bench_now_ns() - start;
}

/* Unicorn takes any callback as void *, which POSIX allows and ISO C does not. */
#define CALLBACK(function) (__extension__(void *)(function))

static void count_one(uc_engine *engine, uint64_t address, uint32_t size, void *context) {
    (void)engine;
    (void)address;
    (void)size;
    ++*(uint64_t *)context;
}

uint64_t floor_soft_count(struct floor_soft_run *run) {
    uint64_t count = 0;
    uc_hook hook;

    check(uc_hook_add(run->program->engine, &hook, UC_HOOK_CODE, CALLBACK(count_one), &count, 1, 0),
          "uc_hook_add");
    floor_soft_once(run); /* the first call makes what the others read */
    count = 0;
    floor_soft_once(run);
    check(uc_hook_del(run->program->engine, hook), "uc_hook_del");
    return count;
}

/* ---- an exit ------------------------------------------------------------------------------------------- */

struct floor_soft_exit {
    uc_engine *engine;
    uint8_t *code;
    uint64_t exits;
};

static void on_out(uc_engine *engine, uint32_t port, int size, uint32_t value, void *context) {
    struct floor_soft_exit *exit = context;

    (void)port;
    (void)size;
    (void)value;
    exit->exits++;
    uc_emu_stop(engine);
}

struct floor_soft_exit *floor_soft_exit_new(void) {
    static const uint8_t code[] = {0xe7, PORT, 0xeb, 0xfc}; /* out %eax, $PORT; jmp back to it */
    struct floor_soft_exit *exit = calloc(1, sizeof *exit);
    uc_hook hook;

    if (!exit)
        bench_fail("out of memory");
    exit->code = pages_new(PAGE);
    memcpy(exit->code, code, sizeof code);
    check(uc_open(UC_ARCH_X86, UC_MODE_64, &exit->engine), "uc_open");
    map(exit->engine, CODE_GVA, PAGE, UC_PROT_READ | UC_PROT_EXEC, exit->code);
    check(uc_hook_add(exit->engine, &hook, UC_HOOK_INSN, CALLBACK(on_out), exit, 1, 0, UC_X86_INS_OUT),
          "uc_hook_add");
    return exit;
}

void floor_soft_exit_free(struct floor_soft_exit *exit) {
    uc_close(exit->engine);
    free(exit->code);
    free(exit);
}

uint64_t floor_soft_exit_once(void *context) {
    struct floor_soft_exit *exit = context;
    const uint64_t exits = exit->exits;
    uint64_t start = bench_now_ns();
    uc_err result = uc_emu_start(exit->engine, CODE_GVA, CODE_GVA + PAGE - 1, 0, 0);
    uint64_t end = bench_now_ns();

    check(result, "uc_emu_start");
    if (exit->exits != exits + 1)
        bench_fail("the raw engine stopped for another reason than its `out`");
    return end - start;
}
