/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * For test_ctf*.c: a sink of the Common Trace Format in a folder of the test's own, what it is fed, and what
 * babeltrace2 makes of it.
 */
#ifndef PH_TESTS_CTF_FIXTURE_H
#define PH_TESTS_CTF_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include <pinhole/export.h>

#include "export/ctf.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define EPOCH 1700000000000000000u /* 2023-11-14 22:13:20 UTC; all times that are fed count from here */

/* A sink and its folder. */
struct writer {
    char folder[64];
    ph_sink sink;
    int system_error;
};

void writer_init(struct writer *writer);
void writer_close(struct writer *writer);
void writer_remove(struct writer *writer);
off_t stream_size(const struct writer *writer);

/* What babeltrace2 prints of the trace, and says about it: to be freed. It has to find nothing wrong. */
char *read_back(const struct writer *writer);

/* The same, once the sink is closed. Removes the folder. */
char *take(struct writer *writer);

/* Where (needle) is, which has to be there, behind (*after), which is moved to it. */
void assert_follows(const char **after, const char *needle);

void assert_has(const char *text, const char *needle);
size_t lines_of(const char *text);

ph_trace_span span_of(uint64_t id, uint64_t parent, const char *name, uint64_t start_ns, uint64_t end_ns);
void give(struct writer *writer, ph_trace_span span);
void give_span(struct writer *writer, uint64_t id, uint64_t parent, const char *name, uint64_t start_ns,
               uint64_t end_ns);

/* A log, with a (message), or an event. */
void give_event(struct writer *writer, const char *name, const char *message, uint64_t time_ns,
                const ph_field *fields, size_t count);

ph_field text_field(const char *name, const char *text);
ph_field number_field(const char *name, ph_type type, uint64_t bits);

#endif
