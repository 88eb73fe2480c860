/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Starting a guest: the control page, the initial stack as the System V x86-64 ABI (section 3.4.1) wants it,
 * and the first entry, up to where the guest waits for calls or, for a whole program, to its exit.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/system.h"
#include "sandbox/sandbox.h"
#include "vm/boot.h"

void ph__control_write(ph_sandbox *sandbox) {
    const struct ph__layout *layout = &sandbox->memory.layout;
    struct ph__control *control = ph__memory_control(&sandbox->memory);

    control->abi_version = PH__ABI_VERSION;
    control->flags = sandbox->image->flags & PH_IMAGE_ALLOW_WX ? PH__CONTROL_ALLOW_WX : 0;
    control->inbox_gva = layout->messages.gva + PH__BOX_IN * layout->box_size;
    control->host_inbox_gva = layout->messages.gva + PH__BOX_HOST_IN * layout->box_size;
    control->outbox_gva = layout->messages.gva + PH__BOX_OUT * layout->box_size;
    control->box_size = layout->box_size;
    control->max_message = layout->max_message;
    control->image_gva = layout->image.gva;
    control->image_size = layout->image.size;
    control->arena_gva = layout->arena.gva;
    control->arena_size = layout->arena.size;
    control->stack_gva = layout->stack.gva;
    control->stack_size = layout->stack.size;
    control->bookkeeping_gva = layout->bookkeeping.gva;
    control->bookkeeping_size = layout->bookkeeping.size;
    control->files_size = layout->files.size;
    control->file_count = sandbox->files.count;
}

static ph_status fill_random(void *bytes, size_t size, ph_error *error) {
    if (ph__system.getrandom(bytes, size, 0) != (ssize_t)size)
        return ph__error_set_system(error, PH_E_SYSTEM, errno, "no random bytes from the kernel");
    return PH_OK;
}

ph_status ph__seed_renew(ph_sandbox *sandbox, ph_error *error) {
    struct ph__control *control = ph__memory_control(&sandbox->memory);

    control->seed_generation = sandbox->seed_generation;
    return fill_random(control->seed, sizeof control->seed, error);
}

/* The initial stack while it is written: strings at the top, and below them the words that point at them. */
struct initial_stack {
    uint8_t *base; /* host address of stack_gva */
    uint64_t gva;
    uint64_t strings; /* where the next string goes */
    uint64_t words;   /* where the next word goes; the stack pointer at first */
};

static void put_word(struct initial_stack *stack, uint64_t word) {
    memcpy(stack->base + stack->words, &word, sizeof word);
    stack->words += sizeof word;
}

static uint64_t put_bytes(struct initial_stack *stack, const void *bytes, size_t size) {
    uint64_t gva = stack->gva + stack->strings;
    memcpy(stack->base + stack->strings, bytes, size);
    stack->strings += size;
    return gva;
}

static void put_string(struct initial_stack *stack, const char *text) {
    put_word(stack, put_bytes(stack, text, strlen(text) + 1));
}

static void put_strings(struct initial_stack *stack, const char *const *strings) {
    for (size_t i = 0; strings && strings[i]; i++)
        put_string(stack, strings[i]);
    put_word(stack, 0);
}

/* Adds the number and the bytes of (strings). */
static void measure(const char *const *strings, size_t *count, size_t *bytes) {
    for (size_t i = 0; strings && strings[i]; i++) {
        *count += 1;
        *bytes += strlen(strings[i]) + 1;
    }
}

#define RANDOM_SIZE 16u
#define AUXILIARY_MAX 24u
#define HWCAP2_FSGSBASE 2u     /* Linux, arch/x86/include/uapi/asm/hwcap2.h */
#define SIGNAL_STACK_MIN 4096u /* our signal frame with AVX-512 state stays below */

static void put_auxiliary(struct initial_stack *stack, const ph_sandbox *sandbox, const uint8_t *random) {
    const ph_image *image = sandbox->image;
    const struct ph__features *features = sandbox->vcpu->features;
    static const char platform[] = "x86_64";
    const uint64_t random_gva = put_bytes(stack, random, RANDOM_SIZE);
    const uint64_t platform_gva = put_bytes(stack, platform, sizeof platform);
    const uint64_t name_gva = put_bytes(stack, image->name, strlen(image->name) + 1);
    const uint64_t vector[][2] = {
        {AT_PHDR, image->headers_gva},
        {AT_PHENT, sizeof(Elf64_Phdr)},
        {AT_PHNUM, image->header_count},
        {AT_PAGESZ, PH__PAGE_SIZE},
        {AT_BASE, 0},
        {AT_FLAGS, 0},
        {AT_ENTRY, image->entry},
        {AT_UID, PH__USER_ID},
        {AT_EUID, PH__USER_ID},
        {AT_GID, PH__USER_ID},
        {AT_EGID, PH__USER_ID},
        {AT_SECURE, 0},
        {AT_CLKTCK, 100},
        {AT_HWCAP, features->words[PH__FEATURES_1_EDX]}, /* Linux, arch/x86/include/asm/elf.h */
        {AT_HWCAP2, HWCAP2_FSGSBASE},
        {AT_PLATFORM, platform_gva},
        {AT_RANDOM, random_gva},
        {AT_EXECFN, name_gva},
        {AT_MINSIGSTKSZ, SIGNAL_STACK_MIN},
        {PH__AT_PINHOLE, PH__GVA(PH__CONTROL_GPA)},
        {AT_NULL, 0},
    };
    _Static_assert(sizeof vector / sizeof vector[0] <= AUXILIARY_MAX, "room was made for this many");

    for (size_t i = 0; i < sizeof vector / sizeof vector[0]; i++) {
        put_word(stack, vector[i][0]);
        put_word(stack, vector[i][1]);
    }
}

/* Writes the initial stack and returns the stack pointer in (*pointer). */
static ph_status write_stack(ph_sandbox *sandbox, uint64_t *pointer, ph_error *error) {
    const ph_image *image = sandbox->image;
    const struct ph__region *region = &sandbox->memory.layout.stack;
    struct initial_stack stack = {.base = sandbox->memory.base + region->offset, .gva = region->gva};
    uint8_t random[RANDOM_SIZE];
    size_t argc = 1, envc = 0;
    size_t name = strlen(image->name) + 1;
    size_t bytes = 2 * name + RANDOM_SIZE + 16;

    ph_status status = fill_random(random, sizeof random, error);
    if (status != PH_OK)
        return status;
    measure(sandbox->config.argv, &argc, &bytes);
    measure(sandbox->config.envp, &envc, &bytes);
    uint64_t words = 1 + argc + 1 + envc + 1 + 2 * AUXILIARY_MAX;
    /* As in Linux, arguments and environment may take a quarter of the stack. */
    if (bytes + words * 8 > region->size / 4)
        return ph__error_set(error, PH_E_TOO_LARGE,
                             "arguments and environment need %zu bytes, a quarter of the stack is %llu",
                             bytes + words * 8, (unsigned long long)region->size / 4);
    stack.strings = (region->size - bytes) & ~15ull;
    stack.words = (stack.strings - words * 8) & ~15ull;
    *pointer = stack.gva + stack.words;
    put_word(&stack, argc);
    put_string(&stack, image->name);
    put_strings(&stack, sandbox->config.argv);
    put_strings(&stack, sandbox->config.envp);
    put_auxiliary(&stack, sandbox, random);
    return PH_OK;
}

/* Prepares everything for the first entry. */
static ph_status prepare(ph_sandbox *sandbox) {
    ph_error *error = &sandbox->error;
    uint64_t stack = 0;

    ph__control_write(sandbox);
    sandbox->seed_generation = 1;
    ph_status status = ph__seed_renew(sandbox, error);
    if (status == PH_OK)
        status = write_stack(sandbox, &stack, error);
    if (status != PH_OK)
        return status;
    const struct ph__regs regs = {
        .rip = PH__GVA(PH__MONITOR_GPA) + ph__monitor()->start,
        .rsp = PH__GVA(PH__MONITOR_STACK_GPA) + PH__MONITOR_STACK_SIZE,
        .rdi = sandbox->image->entry,
        .rsi = stack,
    };
    return sandbox->vcpu->backend->start(sandbox->vcpu, &regs, error);
}

ph_status ph__imports_check(ph_sandbox *sandbox) {
    for (size_t i = 0; i < sandbox->image->import_count; i++)
        if (!sandbox->host_functions[i].function)
            return ph__error_set(&sandbox->error, PH_E_UNREGISTERED,
                                 "the image imports the host function `%s`, which is not registered",
                                 sandbox->image->imports[i].name);
    return PH_OK;
}

/* Opens the window, if the guest may run at all: otherwise it is still new, and registering what is missing
 * helps. */
static ph_status open_window(ph_sandbox *sandbox) {
    ph_status status = ph__imports_check(sandbox);

    if (status == PH_OK)
        status = ph__window_open(&sandbox->window, sandbox->config.timeout_ns, sandbox->processor_max != 0,
                                 &sandbox->error);
    if (status != PH_OK)
        ph__count_error(sandbox->counts, status);
    return status;
}

/* From the first instruction to the doorbell (until). */
static ph_status run_from_start(ph_sandbox *sandbox, enum ph__doorbell until) {
    const enum ph__host_span span = until == PH__DOORBELL_READY ? PH__HOST_START : PH__HOST_RUN;
    const uint64_t begin = ph__count_begin(sandbox->counts);
    ph_status status = open_window(sandbox);

    if (status != PH_OK)
        return status;
    ph__stream_begin(sandbox->stream, span, NULL, NULL);
    ph__limits_begin(sandbox);
    status = prepare(sandbox);
    ph__context_tell(sandbox);
    if (status == PH_OK)
        status = ph__sandbox_enter(sandbox, until);
    else if (status != PH_E_TOO_LARGE) /* the caller's arguments: nothing has happened yet */
        ph__sandbox_poison(sandbox, status);
    uint32_t marks = ph__window_close(&sandbox->window);
    if (status == PH_OK && marks)
        status = ph__fault_stopped(sandbox, ph__window_status(marks));
    ph__stream_end(sandbox->stream, status, &sandbox->error);
    ph__count_end(sandbox->counts, until == PH__DOORBELL_READY ? PH__CELL_START : PH__CELL_RUN, begin,
                  sandbox->used.processor, status);
    return status;
}

ph_status ph_sandbox_start(ph_sandbox *sandbox) {
    if (!sandbox)
        return PH_E_ARGUMENT;
    ph_status status = ph__sandbox_acquire(sandbox, PH_STATE_NEW, "starting");
    if (status != PH_OK)
        return ph__refused_count(sandbox, status);
    status = run_from_start(sandbox, PH__DOORBELL_READY);
    if (status == PH_OK)
        atomic_store_explicit(&sandbox->state, PH_STATE_READY, memory_order_relaxed);
    ph__sandbox_release(sandbox);
    return status;
}

ph_status ph_sandbox_run(ph_sandbox *sandbox, int *exit_status) {
    if (!sandbox)
        return PH_E_ARGUMENT;
    ph_status status = ph__sandbox_acquire(sandbox, PH_STATE_NEW, "running the program");
    if (status != PH_OK)
        return ph__refused_count(sandbox, status);
    status = run_from_start(sandbox, PH__DOORBELL_EXIT);
    if (status == PH_OK) {
        if (exit_status)
            *exit_status = (int)(sandbox->vcpu->regs->rdi & 0xff);
        ph__error_set(&sandbox->error, PH_OK, "the program has ended");
        ph__sandbox_poison(sandbox, PH_OK);
    }
    ph__sandbox_release(sandbox);
    return status;
}
