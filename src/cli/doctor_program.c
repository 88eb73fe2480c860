/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The proof that the library works on this machine, for `pinhole doctor`: a program of a few instructions,
 * made here, loaded and run like any other. It rings the doorbell a thousand times, which also tells what one
 * exit costs.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi/doorbell.h"
#include "cli/doctor.h"

#define ROUNDS 1000
#define LOAD_ADDRESS 0x400000u

/* Writes nothing, ROUNDS times, then ends with status 0. */
static const uint8_t code[] = {
    0xbb,        ROUNDS & 0xff,
    ROUNDS >> 8, 0,
    0, /* mov $ROUNDS, %ebx */
    0xb8,        PH__DOORBELL_WRITE,
    0,           0,
    0, /* 1: mov $WRITE, %eax */
    0xbf,        1,
    0,           0,
    0,                              /* mov $1, %edi */
    0x31,        0xf6,              /* xor %esi, %esi */
    0xe7,        PH__DOORBELL_PORT, /* out %eax, $PORT */
    0xff,        0xcb,              /* dec %ebx */
    0x75,        0xee,              /* jnz 1b */
    0xb8,        PH__DOORBELL_EXIT,
    0,           0,
    0,                              /* mov $EXIT, %eax */
    0x31,        0xff,              /* xor %edi, %edi */
    0xe7,        PH__DOORBELL_PORT, /* out %eax, $PORT */
};

struct program {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    uint8_t code[sizeof code];
};

static void make_program(struct program *program) {
    *program = (struct program){
        .header =
            {
                .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                .e_type = ET_EXEC,
                .e_machine = EM_X86_64,
                .e_version = EV_CURRENT,
                .e_entry = LOAD_ADDRESS + offsetof(struct program, code),
                .e_phoff = offsetof(struct program, segment),
                .e_ehsize = sizeof(Elf64_Ehdr),
                .e_phentsize = sizeof(Elf64_Phdr),
                .e_phnum = 1,
            },
        .segment =
            {
                .p_type = PT_LOAD,
                .p_flags = PF_R | PF_X,
                .p_vaddr = LOAD_ADDRESS,
                .p_paddr = LOAD_ADDRESS,
                .p_filesz = sizeof *program,
                .p_memsz = sizeof *program,
                .p_align = 4096,
            },
    };
    memcpy(program->code, code, sizeof code);
}

/* When the guest was out, each time. */
struct visits {
    uint64_t ns[ROUNDS];
    size_t count;
};

/* A ph_output_fn: the guest writes nothing, and is here. */
static int64_t note_visit(void *context, int stream, const void *data, size_t size) {
    struct visits *visits = context;
    struct timespec now;

    (void)stream;
    (void)data;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (visits->count < ROUNDS)
        visits->ns[visits->count++] = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return (int64_t)size;
}

static int compare(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

/* The median time between two visits: on a busy machine the mean tells about the others. */
static uint64_t median_gap(struct visits *visits) {
    if (visits->count < 2)
        return 0;
    size_t gaps = visits->count - 1;
    for (size_t i = 0; i < gaps; i++)
        visits->ns[i] = visits->ns[i + 1] - visits->ns[i];
    qsort(visits->ns, gaps, sizeof visits->ns[0], compare);
    return visits->ns[gaps / 2];
}

static ph_status run(ph_image *image, ph_backend backend, struct visits *visits, ph_error *error) {
    const ph_config config = {
        .size = sizeof config,
        .backend = backend,
        .timeout_ns = 10000000000u,
        .output = note_visit,
        .output_context = visits,
    };
    ph_sandbox *sandbox;
    int exit_status;
    ph_status status = ph_sandbox_create(image, &config, &sandbox, error);

    if (status != PH_OK)
        return status;
    status = ph_sandbox_run(sandbox, &exit_status);
    if (status != PH_OK)
        *error = *ph_sandbox_error(sandbox);
    ph_sandbox_destroy(sandbox);
    return status;
}

/* Whether (backend) works, and the time of an exit. */
static bool try_backend(ph_backend backend, uint64_t *exit_ns, ph_error *error) {
    struct visits visits = {.count = 0};
    struct program program;
    ph_image *image = NULL;

    make_program(&program);
    ph_status status = ph_image_open_bytes(&program, sizeof program, "doctor", 0, &image, error);
    if (status == PH_OK)
        status = run(image, backend, &visits, error);
    *exit_ns = median_gap(&visits);
    ph_image_close(image);
    return status == PH_OK;
}

void ph__doctor_program(struct ph__doctor *doctor) {
    doctor->usable = try_backend(PH_BACKEND_KVM, &doctor->exit_ns, &doctor->error);
    doctor->soft.usable = try_backend(PH_BACKEND_SOFT, &doctor->soft.exit_ns, &doctor->soft.error);
}
