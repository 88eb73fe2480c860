/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Sites as the host knows them: read from the ELF file and checked once (sandbox/image_sites.c), then
 * constant. And the word by which a site is switched on or off (abi/trace.h).
 */
#ifndef PH_TRACE_SITES_H
#define PH_TRACE_SITES_H

#include <stdint.h>

#include "abi/trace.h"
#include "trace/filter.h"

/* A site. Texts are NUL-terminated, valid UTF-8 without control characters, and belong to the image; a log's
 * (name) is its format, in which anything may stand but what is not UTF-8. (word) is the index of the site's
 * word among the image's. */
struct ph__site {
    const char *name;
    const char *file;
    const char *function;
    uint32_t line;
    uint32_t word;
    uint8_t kind; /* enum ph__site_kind */
    uint8_t level;
    uint8_t count;
    uint8_t types[PH__TRACE_FIELDS_MAX]; /* ph_type */
    const char *fields[PH__TRACE_FIELDS_MAX];
};

/* Words that a record of (site) has at least, its head included: strings count one. A log's has three: no
 * value. */
uint32_t ph__site_words(const struct ph__site *site);

/* Whether (filter) wants what (site) says. PH__SITE_FIELDS are always wanted: they go with their span. */
bool ph__site_wanted(const struct ph__site *site, const struct ph__filter *filter);

/* What the site with (number) has in its word. */
uint64_t ph__site_word(const struct ph__site *site, uint32_t number, const struct ph__filter *filter);

#endif
