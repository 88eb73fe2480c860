/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guests that do anything at random, from a seed that a failure names. Of each the host makes some status that a guest
 * can bring about, within the time-out, and is none the worse for it. The numbers are divided by PH_TEST_SCALE.
 *
 * PH_TEST_SEED=N starts at seed N, to repeat a failure or to look further.
 */
#include "hostile/hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUEST "hostile_random"

#define TIMEOUT_NS 20000000ull
#define BOUND_NS 10000000000ull

static uint64_t first_seed(void) {
    const char *text = getenv("PH_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 1;

    return seed ? seed : 1;
}

/* Calls (name), and checks all that can be known of what comes of it. */
static void call(struct hostile *hostile, const char *name, const ph_value *args, size_t count, uint64_t seed) {
    char what[64];

    snprintf(what, sizeof what, "%s, PH_TEST_SEED=%llu", name, (unsigned long long)seed);
    hostile->may_change_tables = true;
    hostile->brief = seed % 32 != 0;
    uint64_t start = test_now_ns();
    hostile->last =
        ph_call_timeout(hostile->sandbox, test_export(hostile->image, name), args, count, NULL, TIMEOUT_NS);
    if (test_now_ns() - start > BOUND_NS)
        fail_msg("%s: it took %llu ns", what, (unsigned long long)(test_now_ns() - start));
    if (hostile->last != PH_OK && hostile->last != PH_E_GUEST && hostile->last != PH_E_HOST_FUNCTION &&
        !hostile_is_end(hostile->last))
        fail_msg("%s: %s (%s)", what, ph_status_kind(hostile->last),
                 ph_sandbox_error(hostile->sandbox)->message);
    hostile_end(hostile, what);
}

static void random_deeds_do_no_harm(void **state) {
    const uint64_t first = first_seed();
    const uint64_t end = first + test_scaled(2500);

    (void)state;
    test_needs_kvm();
    for (uint64_t seed = first; seed < end; seed++) {
        struct hostile hostile;
        uint64_t random = seed * 0x9e3779b97f4a7c15ull | 1;
        hostile_begin(&hostile, GUEST, NULL);
        call(&hostile, "anything", ARGS(U64(hostile_random(&random) | 1), U32(200)), seed);
    }
}

/* Instructions that matter here, between which the rest is rubbish. */
static const struct {
    uint8_t size;
    uint8_t bytes[12];
} pieces[] = {
    {2, {0xe7, 0x50}},                               /* the doorbell */
    {7, {0xb8, 1, 0, 0, 0, 0xe7, 0x50}},             /* ... READY */
    {7, {0xb8, 2, 0, 0, 0, 0xe7, 0x50}},             /* ... RETURN */
    {7, {0xb8, 3, 0, 0, 0, 0xe7, 0x50}},             /* ... HOST_CALL */
    {7, {0xb8, 5, 0, 0, 0, 0xe7, 0x50}},             /* ... WRITE */
    {7, {0xb8, 9, 0, 0, 0, 0xe7, 0x50}},             /* ... PROTECT */
    {7, {0xb8, 11, 0, 0, 0, 0xe7, 0x50}},            /* ... UNHANDLED */
    {1, {0xef}},                                     /* out %eax, %dx */
    {2, {0x66, 0xef}},                               /* out %ax, %dx */
    {1, {0xee}},                                     /* out %al, %dx */
    {2, {0xe5, 0x50}},                               /* in */
    {2, {0xf3, 0x6f}},                               /* rep outsl */
    {2, {0xf3, 0x6d}},                               /* rep insl */
    {4, {0x66, 0xba, 0x50, 0x00}},                   /* mov $0x50, %dx */
    {2, {0x0f, 0x05}},                               /* syscall */
    {7, {0xb8, 10, 0, 0, 0, 0x0f, 0x05}},            /* ... mprotect */
    {7, {0xb8, 13, 0, 0, 0, 0x0f, 0x05}},            /* ... rt_sigaction */
    {7, {0xb8, 15, 0, 0, 0, 0x0f, 0x05}},            /* ... rt_sigreturn */
    {7, {0xb8, 131, 0, 0, 0, 0x0f, 0x05}},           /* ... sigaltstack */
    {2, {0x0f, 0x34}},                               /* sysenter */
    {2, {0xcd, 0x80}},                               /* int */
    {1, {0xcc}},                                     /* int3 */
    {1, {0xf1}},                                     /* int1 */
    {2, {0x48, 0xcf}},                               /* iretq */
    {3, {0x48, 0x0f, 0x07}},                         /* sysretq */
    {2, {0x48, 0xcb}},                               /* lretq */
    {3, {0xff, 0x2c, 0x24}},                         /* ljmp *(%rsp) */
    {9, {0x9c, 0x81, 0x0c, 0x24, 0, 1, 0, 0, 0x9d}}, /* set TF */
    {9, {0x9c, 0x81, 0x0c, 0x24, 0, 0x44, 4, 0, 0x9d}}, /* set AC, NT and DF */
    {2, {0x8e, 0xd0}},                               /* mov %eax, %ss */
    {2, {0x8e, 0xd8}},                               /* mov %eax, %ds */
    {2, {0x8e, 0xe0}},                               /* mov %eax, %fs */
    {3, {0x0f, 0x22, 0xd8}},                         /* mov %rax, %cr3 */
    {2, {0x0f, 0x30}},                               /* wrmsr */
    {3, {0x0f, 0x01, 0xd1}},                         /* xsetbv */
    {3, {0x0f, 0x01, 0xc1}},                         /* vmcall */
    {3, {0x0f, 0x01, 0xd9}},                         /* vmmcall */
    {5, {0xf3, 0x48, 0x0f, 0xae, 0xd0}},             /* wrfsbase %rax */
    {5, {0xf3, 0x48, 0x0f, 0xae, 0xd8}},             /* wrgsbase %rax */
    {3, {0x0f, 0xae, 0x2f}},                         /* xrstor (%rdi) */
    {3, {0x0f, 0xae, 0x27}},                         /* xsave (%rdi) */
    {3, {0x0f, 0xae, 0x17}},                         /* ldmxcsr (%rdi) */
    {3, {0x48, 0x89, 0xc4}},                         /* mov %rax, %rsp */
    {3, {0x48, 0x89, 0x07}},                         /* mov %rax, (%rdi) */
    {3, {0x48, 0x8b, 0x06}},                         /* mov (%rsi), %rax */
    {3, {0xf3, 0x48, 0xab}},                         /* rep stosq */
    {2, {0xf3, 0xa4}},                               /* rep movsb */
    {2, {0xff, 0xe0}},                               /* jmp *%rax */
    {2, {0xff, 0xd1}},                               /* call *%rcx */
    {2, {0x0f, 0xa2}},                               /* cpuid */
    {2, {0xeb, 0xfe}},                               /* jmp . */
    {1, {0xf4}},                                     /* hlt */
};
#define PIECES (sizeof pieces / sizeof pieces[0])

/* Fills (code) with (size) bytes of nonsense. */
static void code_write(uint8_t *code, size_t size, uint64_t *random) {
    size_t at = 0;

    while (at < size) {
        if (hostile_random(random) % 2) {
            code[at++] = (uint8_t)hostile_random(random);
            continue;
        }
        const size_t piece = hostile_random(random) % PIECES;
        for (size_t i = 0; i < pieces[piece].size && at < size; i++)
            code[at++] = pieces[piece].bytes[i];
    }
}

static void random_code_does_no_harm(void **state) {
    const uint64_t first = first_seed();
    const uint64_t end = first + test_scaled(3000);

    (void)state;
    test_needs_kvm();
    for (uint64_t seed = first; seed < end; seed++) {
        struct hostile hostile;
        ph_value address = {.type = PH_U64};
        uint64_t random = seed * 0xd1b54a32d192ed03ull | 1;
        hostile_begin(&hostile, GUEST, NULL);
        hostile_expect(&hostile, hostile_call(&hostile, "code_address", NO_ARGS, &address), PH_OK, "code_address");
        const struct ph__region *image = &hostile.sandbox->memory.layout.image;
        assert_true(address.u64 >= image->gva && address.u64 - image->gva <= image->size - 4096);
        uint8_t *code = hostile.sandbox->memory.base + image->offset + (address.u64 - image->gva);
        code_write(code, 16 + hostile_random(&random) % 240, &random);
        call(&hostile, "run_code", ARGS(U64(hostile_random(&random) | 1)), seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_deeds_do_no_harm),
        cmocka_unit_test(random_code_does_no_harm),
    };

    return cmocka_run_group_tests_name("hostile at random", tests, NULL, NULL);
}
