/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Programs and faults by way of the command on both backends, from a seed that a failure names
 * (differential.h): the same standard output and standard error, letter for letter, and the same exit status.
 */
#include "system/differential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system/command_runner.h"

#define ARGUMENTS_MAX 12
#define INPUT_MAX 5000u

/* Runs the command with (arguments) behind its subcommand and --backend. */
static struct outcome run_on(const char *subcommand, const char *backend, const char *const *arguments,
                             const void *input, size_t size) {
    const char *all[ARGUMENTS_MAX + 4] = {subcommand, "--backend", backend};
    size_t count = 3;

    for (; *arguments; arguments++)
        all[count++] = *arguments;
    return run_command_with_input(all, input, size);
}

static void compare_runs(const struct rounds *rounds, const char *subcommand, const char *const *arguments,
                         const void *input, size_t size) {
    struct outcome kvm = run_on(subcommand, "kvm", arguments, input, size);
    struct outcome soft = run_on(subcommand, "soft", arguments, input, size);

    if (kvm.status != soft.status || strcmp(kvm.err, soft.err) != 0)
        rounds_fail(rounds, "%s %s: status %d on kvm, %d on soft\n  kvm:  %s\n  soft: %s", arguments[0],
                    arguments[1] ? arguments[1] : "", kvm.status, soft.status, kvm.err, soft.err);
    if (kvm.out_size != soft.out_size || memcmp(kvm.out, soft.out, kvm.out_size) != 0)
        rounds_fail(rounds, "%s %s: other output\n  kvm:  %.500s\n  soft: %.500s", arguments[0],
                    arguments[1] ? arguments[1] : "", kvm.out, soft.out);
    outcome_free(&kvm);
    outcome_free(&soft);
}

/* Lines of words and numbers, or any bytes. */
static size_t random_input(uint64_t *random, uint8_t *input) {
    const size_t size = random_below(random, INPUT_MAX);
    const bool is_text = !random_once_in(random, 4);

    for (size_t i = 0; i < size; i++)
        input[i] = is_text ? (uint8_t) "etaoin shrdlu\n0123456789.-+x,:"[random_below(random, 30)]
                           : (uint8_t)random_next(random);
    return size;
}

static void programs_do_the_same(void **state) {
    static const char *const programs[][4] = {
        {"sort"},
        {"sort", "-n"},
        {"sort", "-r", "-u"},
        {"wc"},
        {"md5sum"},
        {"sha1sum"},
        {"sha256sum"},
        {"sha512sum"},
        {"cksum"},
        {"base64"},
        {"od", "-x"},
        {"od", "-t", "f8"},
        {"rev"},
        {"tac"},
        {"tr", "a-m", "n-z"},
        {"uniq", "-c"},
        {"head", "-n", "5"},
        {"tail", "-c", "77"},
        {"sed", "s/[0-9]+/<&>/g"},
        {"grep", "-c", "e.*t"},
        {"awk",
         "{ s += $1; n += length($0) } END { print s, n, sqrt(n), sin(n), exp(n / 1000), log(n + 1) }"},
        {"awk", "{ printf \"%.3f %s\\n\", $1 / 7, toupper($2) }"},
        {"cut", "-d", " "},
        {"gzip", "-c"},
        {"cat", "-n"},
        {"cat", "/none"},
        {"false"},
        {"nothing-of-that-name"},
        {"xxd"},
        {"fold", "-w", "20"},
        {"nl"},
        {"bzip2", "-c"},
        {"sh", "-c", "read a; read b; echo \"$a$b\"; echo ${#a} >&2; exit $((${#b} % 7))"},
        {"dc", "-e", "20 k 2 v p"},
        {"expr", "length", "etaoin"},
        {"seq", "3", "7.5"},
    };
    static uint8_t input[INPUT_MAX];
    struct rounds rounds = rounds_begin("random programs", 60);

    (void)state;
    differential_needs_both();
    const char *busybox = busybox_path();
    while (rounds_next(&rounds)) {
        const char *const *program =
            programs[random_below(&rounds.random, sizeof programs / sizeof programs[0])];
        const char *arguments[ARGUMENTS_MAX] = {busybox};
        for (size_t i = 0; i < 4 && program[i]; i++)
            arguments[1 + i] = program[i];
        const size_t size = random_input(&rounds.random, input);
        compare_runs(&rounds, "run", arguments, input, size);
    }
}

/* What a person sees of a fault. */
static void faults_are_told_in_the_same_words(void **state) {
    static const char *const faults[] = {
        "page_fault_read", "page_fault_write",   "page_fault_exec", "null",       "undefined",
        "divide",          "general_protection", "breakpoint",      "privileged", "foreign_port",
        "double_fault",    "stack_overflow",     "heap_exhaustion", "abort",      "exit",
    };
    struct rounds rounds = {.test = "faults"};
    char path[4096];

    (void)state;
    differential_needs_both();
    snprintf(path, sizeof path, "%s", test_guest_path("faults"));
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        compare_runs(&rounds, "call", ARGUMENTS(path, faults[i]), NULL, 0);
}

/* Programs that check themselves: what they find is the same. */
static void checking_programs_find_the_same(void **state) {
    static const char *const names[] = {"sys_faults",       "sys_signals",   "sys_process",
                                        "sys_files",        "sys_pointers",  "sys_faults-musl",
                                        "sys_signals-musl", "sys_files-musl"};
    struct rounds rounds = {.test = "checking programs"};
    char path[4096];

    (void)state;
    differential_needs_both();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s", test_guest_path(names[i]));
        compare_runs(&rounds, "run", ARGUMENTS(path), NULL, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_do_the_same),
        cmocka_unit_test(faults_are_told_in_the_same_words),
        cmocka_unit_test(checking_programs_find_the_same),
    };

    return cmocka_run_group_tests_name("differential: programs", tests, NULL, NULL);
}
