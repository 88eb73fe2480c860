/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the monitor tells the host's trace: that a program started, its system calls, its end. For programs
 * that know nothing of pinhole this is all there is. And it is the monitor that makes recording safe against
 * exceptions: it sends a writer back that a handler has overtaken (abi/recorder.h).
 *
 * Callers ask first whether anything is traced; without a ring there is no memory behind its address.
 */
#include "abi/recorder.h"
#include "monitor/monitor.h"

void ph__trace_start(void) {
    const uint64_t words[] = {
        PH__RECORD_WORD(PH__RECORD_CALL_BEGIN, PH__SITE_START, PH__RECORD_WORDS_MIN),
        0,
    };
    ph__ring_write(words, PH__RECORD_WORDS_MIN, false);
}

uint64_t ph__trace_system_call(uint64_t number, uint64_t stack_pointer) {
    uint64_t site = number < PH__SITE_MAX ? number : PH__SITE_MAX;
    const uint64_t words[] = {
        PH__RECORD_WORD(PH__RECORD_SYSTEM_CALL_BEGIN, site, PH__RECORD_WORDS_MIN) |
            stack_pointer >> 4 << PH__RECORD_STACK_SHIFT,
        0,
    };
    return ph__ring_write(words, PH__RECORD_WORDS_MIN, false);
}

void ph__trace_system_call_end(uint64_t position, int64_t answer) {
    const uint64_t words[] = {ph__ring_end_word(position, 3), 0, (uint64_t)answer};
    ph__ring_write(words, 3, true);
}

void ph__trace_exit(uint64_t status, uint64_t signal) {
    const uint64_t words[] = {PH__RECORD_WORD(PH__RECORD_EXIT, signal & PH__SITE_MAX, 3), 0, status};
    ph__ring_write(words, 3, true);
}

struct ph__interrupted ph__trace_interrupt(uint64_t rip) {
    struct ph__interrupted interrupted = {0};
    struct ph__critical distances;
    uint64_t critical = ph__ring()->critical;

    if (critical == 0 || ph__copy_from_user(&distances, critical, sizeof distances) != 0)
        return interrupted;
    interrupted.start = ph__critical_start(critical, &distances, rip);
    interrupted.rip = rip;
    interrupted.head = ph__ring()->head;
    return interrupted;
}

uint64_t ph__trace_resume(const struct ph__interrupted *interrupted, uint64_t rip) {
    if (interrupted->start == 0 || interrupted->rip != rip || interrupted->head == ph__ring()->head)
        return rip;
    return interrupted->start;
}
