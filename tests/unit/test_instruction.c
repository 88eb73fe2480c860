/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Which instructions count as I/O and which as privileged when a general-protection fault is named.
 */
#include "support/support.h"

#include "sandbox/instruction.h"

static void expect(enum ph__instruction_kind kind, const char *bytes, size_t size) {
    assert_int_equal(ph__instruction_classify((const uint8_t *)bytes, size), kind);
}

#define EXPECT(kind, bytes) expect(kind, bytes, sizeof(bytes) - 1)

static void io_instructions_are_told(void **state) {
    (void)state;
    EXPECT(PH__INSTRUCTION_IO, "\xe4\x50");         /* in al, imm8 */
    EXPECT(PH__INSTRUCTION_IO, "\xe7\x50");         /* out imm8, eax */
    EXPECT(PH__INSTRUCTION_IO, "\xec");             /* in al, dx */
    EXPECT(PH__INSTRUCTION_IO, "\xef");             /* out dx, eax */
    EXPECT(PH__INSTRUCTION_IO, "\x6c");             /* insb */
    EXPECT(PH__INSTRUCTION_IO, "\xf3\x6f");         /* rep outsd */
    EXPECT(PH__INSTRUCTION_IO, "\x66\x48\xe5\x10"); /* prefixes */
}

static void privileged_instructions_are_told(void **state) {
    (void)state;
    EXPECT(PH__INSTRUCTION_PRIVILEGED, "\xf4");                 /* hlt */
    EXPECT(PH__INSTRUCTION_PRIVILEGED, "\xfa");                 /* cli */
    EXPECT(PH__INSTRUCTION_PRIVILEGED, "\x0f\x20\xc0");         /* mov rax, cr0 */
    EXPECT(PH__INSTRUCTION_PRIVILEGED, "\x0f\x22\xd8");         /* mov cr3, rax */
    EXPECT(PH__INSTRUCTION_PRIVILEGED, "\x0f\x30\x90");         /* wrmsr */
    EXPECT(PH__INSTRUCTION_PRIVILEGED, "\x0f\x01\x17");         /* lgdt [rdi] */
    EXPECT(PH__INSTRUCTION_PRIVILEGED, "\x0f\x01\xd1");         /* xsetbv */
    EXPECT(PH__INSTRUCTION_PRIVILEGED, "\x48\x0f\x07\x90");     /* sysretq */
    EXPECT(PH__INSTRUCTION_PRIVILEGED, "\x0f\x00\xd8\x90\x90"); /* ltr ax */
}

static void others_are_neither(void **state) {
    (void)state;
    EXPECT(PH__INSTRUCTION_OTHER, "");
    EXPECT(PH__INSTRUCTION_OTHER, "\x48\x8b\x07");     /* mov rax, [rdi] */
    EXPECT(PH__INSTRUCTION_OTHER, "\x0f\x05\x90");     /* syscall */
    EXPECT(PH__INSTRUCTION_OTHER, "\x0f\x01\xd0");     /* xgetbv */
    EXPECT(PH__INSTRUCTION_OTHER, "\x0f\x00\xc0\x90"); /* sldt */
    EXPECT(PH__INSTRUCTION_OTHER, "\x0f");             /* cut off */
    EXPECT(PH__INSTRUCTION_OTHER, "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(io_instructions_are_told),
        cmocka_unit_test(privileged_instructions_are_told),
        cmocka_unit_test(others_are_neither),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
