/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reading OpenTelemetry's environment variables, by the rules that hold for all of them: an empty one is as
 * good as none, and a value that makes no sense is told and then counts as none
 * (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
 */
#ifndef PH_EXPORT_OTLP_ENVIRONMENT_H
#define PH_EXPORT_OTLP_ENVIRONMENT_H

#include "export/otlp_settings.h"

/* Who is told of values that make no sense; (tell) may be NULL. */
struct ph__otlp_notes {
    ph_diagnostics_fn tell;
    void *context;
};

/* One line, made printable. */
void ph__otlp_note(const struct ph__otlp_notes *notes, const char *format, ...) PH_PRINTF(2, 3);

/* The value of (name), or NULL. */
const char *ph__environment_text(const char *name);

/* Whether (name) is a number from (least) to 2^31 - 1, which (*number) then gets; else it stays. */
bool ph__environment_number(const char *name, uint32_t least, uint32_t *number,
                            const struct ph__otlp_notes *notes);

/* Whether (name) is "true", in any case. */
bool ph__environment_flag(const char *name, const struct ph__otlp_notes *notes);

/* Takes "NAME=VALUE,NAME=VALUE" apart, both percent-decoded, into (pairs), which is empty before; of equal
 * names the last counts. PH_E_ARGUMENT, with what is wrong in (*problem), or PH_E_MEMORY: (pairs) is then
 * empty again. */
ph_status ph__otlp_pairs_parse(const char *text, struct ph__otlp_pairs *pairs, const char **problem);

/* Adds a pair or replaces the value of (name); both are copied. False without memory. */
bool ph__otlp_pairs_set(struct ph__otlp_pairs *pairs, const char *name, const char *value);

/* The value of (name), or NULL. */
const char *ph__otlp_pairs_get(const struct ph__otlp_pairs *pairs, const char *name);

void ph__otlp_pairs_free(struct ph__otlp_pairs *pairs);

#endif
