/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Which levels are wanted, by file, function and name: `[TARGET=]LEVEL,...` as ph_tracer_set_filter
 * (pinhole/trace.h) describes it. Parsed once, then constant.
 */
#ifndef PH_TRACE_FILTER_H
#define PH_TRACE_FILTER_H

#include <pinhole/trace.h>

struct ph__filter_rule {
    char *target;      /* a glob */
    uint32_t literals; /* its characters that are no wildcards */
    ph_level level;
};

struct ph__filter {
    ph_level level; /* where no rule matches */
    uint32_t count;
    struct ph__filter_rule *rules;
};

#define PH__FILTER_RULES_MAX 1024u

/* Parses (text) into (filter), to be freed. PH_E_ARGUMENT with a message that names the part that is wrong,
 * or PH_E_MEMORY; (filter) is then empty. */
ph_status ph__filter_parse(const char *text, struct ph__filter *filter, ph_error *error);
void ph__filter_free(struct ph__filter *filter);

/* The level that is wanted of what is in (file) and (function) and is called (name). Each may be NULL. What
 * has two names and no function may have one of them there. */
ph_level ph__filter_level(const struct ph__filter *filter, const char *file, const char *function,
                          const char *name);

/* The highest level that any rule gives: what no name can raise any more. */
ph_level ph__filter_highest(const struct ph__filter *filter);

#endif
