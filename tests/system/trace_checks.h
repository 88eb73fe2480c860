/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the tests of the guest's macros share: running a guest with a filter, and comparing what came with
 * what was said. Each check fails the running test with a message.
 */
#ifndef PH_TESTS_TRACE_CHECKS_H
#define PH_TESTS_TRACE_CHECKS_H

#include "support/traced.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define F64(x) ((ph_value){.type = PH_F64, .f64 = (x)})
#define I64(x) ((ph_value){.type = PH_I64, .i64 = (x)})
#define POINTER(x) ((ph_value){.type = PH_POINTER, .u64 = (x)})

/* Whether (guest) is there: those of clang are only built where there is one. */
bool guest_is_built(const char *guest);

/* A started sandbox of (guest) with the filter (filter). (config) may be NULL. */
void filtered_begin(struct traced *traced, const char *guest, const char *filter, const ph_config *config);

/* Forgets what came, calls the export (name), which succeeds, and waits for what it brings. */
void traced_run(struct traced *traced, const char *name, const ph_value *args, size_t count);

/* The end, if nothing was lost or misunderstood. */
void sound_end(struct traced *traced);

/* A field as it shall be. */
struct want {
    const char *name;
    ph_value value;
};
#define WANT(...) (const struct want[]){__VA_ARGS__}, COUNT(((const struct want[]){__VA_ARGS__}))

/* The (count) fields of what is called (what) are these, in this order, and no more. */
void fields_check(const char *what, const ph_field *fields, size_t count, const struct want *wanted,
                  size_t wanted_count);
#define FIELDS_CHECK(item, ...)                                                                              \
    fields_check((item)->name, (item)->fields, (item)->field_count, WANT(__VA_ARGS__))

/* The source is (file) and (function), and (name) is in that line of it, in quotes. */
void source_check(const ph_source *source, const char *name, const char *file, const char *function);

/* The (index)th span called (name). */
const ph_trace_span *span_number(const struct traced *traced, const char *name, size_t index);

/* The same, which is right under (parent), and was ended. */
const ph_trace_span *span_in(const struct traced *traced, const char *name, size_t index,
                             const ph_trace_span *parent);

/* The first event or line called (name), which was in (span). */
const ph_trace_event *event_in(const struct traced *traced, const char *name, const ph_trace_span *span);

/* The event with number (*at), which moves on. */
const ph_trace_event *event_next(const struct traced *traced, size_t *at);

#endif
