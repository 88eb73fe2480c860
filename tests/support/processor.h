/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Which of three kinds of KVM the tests run on, or that it is the soft backend, for the few that must see a
 * difference: VMX and SVM, where the processor itself runs the guest's ring 0, and PVM, where there is no
 * such processor and all of a guest runs in ring 3 of the real one. Asked of /proc/cpuinfo, so that what a
 * test measures is compared to something else.
 */
#ifndef PH_TESTS_PROCESSOR_H
#define PH_TESTS_PROCESSOR_H

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/support.h"

enum processor { PROCESSOR_VMX, PROCESSOR_SVM, PROCESSOR_PVM, PROCESSOR_SOFT };

/* True if the first processor's line of flags has the word (flag). */
static inline bool processor_has_flag(const char *flag) {
    FILE *file = fopen("/proc/cpuinfo", "re");
    char *line = NULL;
    size_t capacity = 0;
    bool has = false;

    if (!file)
        abort();
    while (getline(&line, &capacity, file) > 0) {
        if (strncmp(line, "flags", 5) != 0)
            continue;
        char *rest = line;
        for (const char *word; (word = strsep(&rest, " \t\n"));)
            has = has || strcmp(word, flag) == 0;
        break;
    }
    free(line);
    fclose(file);
    return has;
}

/* PVM has a module of its own; a machine that has neither flag nor module is none that these tests know. */
static inline enum processor processor(void) {
    if (test_is_soft())
        return PROCESSOR_SOFT;
    if (access("/sys/module/kvm_pvm", F_OK) == 0)
        return PROCESSOR_PVM;
    if (processor_has_flag("vmx"))
        return PROCESSOR_VMX;
    if (processor_has_flag("svm"))
        return PROCESSOR_SVM;
    fprintf(stderr, "neither VMX nor SVM nor PVM: what KVM is this?\n");
    abort();
}

static inline bool is_pvm(void) {
    return processor() == PROCESSOR_PVM;
}

static inline const char *processor_name(void) {
    static const char *const names[] = {"VMX", "SVM", "PVM", "soft"};
    return names[processor()];
}

/* QEMU without KVM below: an emulated processor, which forgets all translations whenever a guest is entered.
 * The soft backend is made of the same emulator. */
static inline bool processor_is_emulated(void) {
    uint32_t eax, ebx, ecx, edx;
    char name[13] = "";

    if (test_is_soft())
        return true;
    __cpuid(0x40000000, eax, ebx, ecx, edx);
    memcpy(name, &ebx, 4);
    memcpy(name + 4, &ecx, 4);
    memcpy(name + 8, &edx, 4);
    return strcmp(name, "TCGTCGTCGTCG") == 0;
}

#endif
