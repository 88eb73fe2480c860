/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guests that do anything at random, from a seed that a failure names. Of each the host makes some status
 * that a guest can bring about, within the time-out, and is none the worse for it. The numbers are divided by
 * PH_TEST_SCALE.
 *
 * PH_TEST_SEED=N starts at seed N, to repeat a failure or to look further.
 */
#include "hostile/hostile.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUEST "hostile_random"

#define TIMEOUT_NS 20000000ull
#define BOUND_NS 10000000000ull

static ph_status accept(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    (void)call;
    (void)args;
    (void)result;
    return PH_OK;
}

static uint64_t first_seed(void) {
    const char *text = getenv("PH_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 1;

    return seed ? seed : 1;
}

/* Calls (name), and checks all that can be known of what comes of it. */
static void call(struct hostile *hostile, const char *name, const ph_value *args, size_t count,
                 uint64_t seed) {
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
    const uint64_t end = first + test_scaled(1000);

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
    {2, {0xe7, 0x50}},                                  /* the doorbell */
    {7, {0xb8, 1, 0, 0, 0, 0xe7, 0x50}},                /* ... READY */
    {7, {0xb8, 2, 0, 0, 0, 0xe7, 0x50}},                /* ... RETURN */
    {7, {0xb8, 3, 0, 0, 0, 0xe7, 0x50}},                /* ... HOST_CALL */
    {7, {0xb8, 5, 0, 0, 0, 0xe7, 0x50}},                /* ... WRITE */
    {7, {0xb8, 9, 0, 0, 0, 0xe7, 0x50}},                /* ... PROTECT */
    {7, {0xb8, 11, 0, 0, 0, 0xe7, 0x50}},               /* ... UNHANDLED */
    {1, {0xef}},                                        /* out %eax, %dx */
    {2, {0x66, 0xef}},                                  /* out %ax, %dx */
    {1, {0xee}},                                        /* out %al, %dx */
    {2, {0xe5, 0x50}},                                  /* in */
    {2, {0xf3, 0x6f}},                                  /* rep outsl */
    {2, {0xf3, 0x6d}},                                  /* rep insl */
    {4, {0x66, 0xba, 0x50, 0x00}},                      /* mov $0x50, %dx */
    {2, {0x0f, 0x05}},                                  /* syscall */
    {7, {0xb8, 10, 0, 0, 0, 0x0f, 0x05}},               /* ... mprotect */
    {7, {0xb8, 13, 0, 0, 0, 0x0f, 0x05}},               /* ... rt_sigaction */
    {7, {0xb8, 15, 0, 0, 0, 0x0f, 0x05}},               /* ... rt_sigreturn */
    {7, {0xb8, 131, 0, 0, 0, 0x0f, 0x05}},              /* ... sigaltstack */
    {2, {0x0f, 0x34}},                                  /* sysenter */
    {2, {0xcd, 0x80}},                                  /* int */
    {1, {0xcc}},                                        /* int3 */
    {1, {0xf1}},                                        /* int1 */
    {2, {0x48, 0xcf}},                                  /* iretq */
    {3, {0x48, 0x0f, 0x07}},                            /* sysretq */
    {2, {0x48, 0xcb}},                                  /* lretq */
    {3, {0xff, 0x2c, 0x24}},                            /* ljmp *(%rsp) */
    {9, {0x9c, 0x81, 0x0c, 0x24, 0, 1, 0, 0, 0x9d}},    /* set TF */
    {9, {0x9c, 0x81, 0x0c, 0x24, 0, 0x44, 4, 0, 0x9d}}, /* set AC, NT and DF */
    {2, {0x8e, 0xd0}},                                  /* mov %eax, %ss */
    {2, {0x8e, 0xd8}},                                  /* mov %eax, %ds */
    {2, {0x8e, 0xe0}},                                  /* mov %eax, %fs */
    {3, {0x0f, 0x22, 0xd8}},                            /* mov %rax, %cr3 */
    {2, {0x0f, 0x30}},                                  /* wrmsr */
    {3, {0x0f, 0x01, 0xd1}},                            /* xsetbv */
    {3, {0x0f, 0x01, 0xc1}},                            /* vmcall */
    {3, {0x0f, 0x01, 0xd9}},                            /* vmmcall */
    {5, {0xf3, 0x48, 0x0f, 0xae, 0xd0}},                /* wrfsbase %rax */
    {5, {0xf3, 0x48, 0x0f, 0xae, 0xd8}},                /* wrgsbase %rax */
    {3, {0x0f, 0xae, 0x2f}},                            /* xrstor (%rdi) */
    {3, {0x0f, 0xae, 0x27}},                            /* xsave (%rdi) */
    {3, {0x0f, 0xae, 0x17}},                            /* ldmxcsr (%rdi) */
    {3, {0x48, 0x89, 0xc4}},                            /* mov %rax, %rsp */
    {3, {0x48, 0x89, 0x07}},                            /* mov %rax, (%rdi) */
    {3, {0x48, 0x8b, 0x06}},                            /* mov (%rsi), %rax */
    {3, {0xf3, 0x48, 0xab}},                            /* rep stosq */
    {2, {0xf3, 0xa4}},                                  /* rep movsb */
    {2, {0xff, 0xe0}},                                  /* jmp *%rax */
    {2, {0xff, 0xd1}},                                  /* call *%rcx */
    {2, {0x0f, 0xa2}},                                  /* cpuid */
    {2, {0xeb, 0xfe}},                                  /* jmp . */
    {1, {0xf4}},                                        /* hlt */
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
    const uint64_t end = first + test_scaled(1500);

    (void)state;
    test_needs_kvm();
    if (test_is_soft())
        test_needs_soft_guard();
    for (uint64_t seed = first; seed < end; seed++) {
        struct hostile hostile;
        ph_value address = {.type = PH_U64};
        uint64_t random = seed * 0xd1b54a32d192ed03ull | 1;
        hostile_begin(&hostile, GUEST, NULL);
        hostile_expect(&hostile, hostile_call(&hostile, "code_address", NO_ARGS, &address), PH_OK,
                       "code_address");
        const struct ph__region *image = &hostile.sandbox->memory.layout.image;
        assert_true(address.u64 >= image->gva && address.u64 - image->gva <= image->size - 4096);
        uint8_t *code = hostile.sandbox->memory.base + image->offset + (address.u64 - image->gva);
        code_write(code, 16 + hostile_random(&random) % 240, &random);
        call(&hostile, "run_code", ARGS(U64(hostile_random(&random) | 1)), seed);
    }
}

/* ---- side by side ----------------------------------------------------------------------------------------
 */

#define ATTACKERS 3u

struct attacker {
    ph_image *image;
    atomic_bool *stop;
    uint64_t seed;
    unsigned sandboxes;
    char failure[256];
};

/* Assertions belong to the main thread: a failure is noted. */
static void *attack(void *argument) {
    struct attacker *attacker = argument;
    const ph_function *anything = ph_image_find_export(attacker->image, "anything");
    const ph_signature take_text = {.result = PH_I32, .count = 1, .args = {PH_STR}};
    const ph_signature give_bytes = {.result = PH_BYTES, .count = 2, .args = {PH_U64, PH_BOOL}};

    while (!atomic_load(attacker->stop) && !attacker->failure[0]) {
        ph_config config = PH_CONFIG_INIT;
        ph_sandbox *sandbox = NULL;
        ph_error error;
        config.timeout_ns = TIMEOUT_NS;
        if (ph_sandbox_create(attacker->image, &config, &sandbox, &error) != PH_OK) {
            snprintf(attacker->failure, sizeof attacker->failure, "create: %.200s", error.message);
            break;
        }
        ph_sandbox_register(sandbox, "take_text", &take_text, accept, NULL);
        ph_sandbox_register(sandbox, "give_bytes", &give_bytes, accept, NULL);
        ph_status status = ph_sandbox_start(sandbox);
        attacker->seed = attacker->seed * 6364136223846793005u + 1;
        if (status == PH_OK)
            status = ph_call(sandbox, anything, ARGS(U64(attacker->seed | 1), U32(200)), NULL);
        if (status != PH_OK && status != PH_E_GUEST && status != PH_E_HOST_FUNCTION &&
            !hostile_is_end(status))
            snprintf(attacker->failure, sizeof attacker->failure, "seed %llu: %s (%.150s)",
                     (unsigned long long)(attacker->seed | 1), ph_status_kind(status),
                     ph_sandbox_error(sandbox)->message);
        ph_sandbox_destroy(sandbox);
        attacker->sandboxes++;
    }
    return NULL;
}

/* An honest guest is called again and again while others on other threads do what they like. */
static void an_honest_guest_is_not_disturbed_by_others(void **state) {
    /* On the soft backend a call takes less time than making a sandbox, so there have to be enough of them.
     */
    const unsigned calls = test_is_soft() ? 5000 : test_scaled(5000);
    struct attacker attackers[ATTACKERS];
    pthread_t threads[ATTACKERS];
    atomic_bool stop = false;
    struct hostile honest;

    (void)state;
    test_needs_kvm();
    ph_image *image = test_image(GUEST);
    hostile_begin(&honest, GUEST, NULL);
    for (unsigned i = 0; i < ATTACKERS; i++) {
        attackers[i] = (struct attacker){.image = image, .stop = &stop, .seed = first_seed() * 1000 + i};
        assert_int_equal(pthread_create(&threads[i], NULL, attack, &attackers[i]), 0);
    }
    ph_status status = PH_OK;
    ph_value result = {.type = PH_BOOL, .boolean = true};
    for (unsigned i = 0; i < calls && status == PH_OK && result.boolean; i++) {
        result.boolean = false;
        status = hostile_call(&honest, "honest", NO_ARGS, &result);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < ATTACKERS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < ATTACKERS; i++) {
        if (attackers[i].failure[0])
            fail_msg("%s", attackers[i].failure);
        assert_true(attackers[i].sandboxes > 0);
    }
    hostile_expect(&honest, status, PH_OK, "honest");
    assert_true(result.boolean);
    hostile_end(&honest, "an honest guest beside others");
    ph_image_close(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_deeds_do_no_harm),
        cmocka_unit_test(random_code_does_no_harm),
        cmocka_unit_test(an_honest_guest_is_not_disturbed_by_others),
    };

    return cmocka_run_group_tests_name("hostile at random", tests, NULL, NULL);
}
