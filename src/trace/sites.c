/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Which sites are wanted, and what the guest finds in their words (sites.h).
 */
#include "trace/sites.h"

#include <stddef.h>

static enum ph__record_type record_type(const struct ph__site *site) {
    switch ((enum ph__site_kind)site->kind) {
    case PH__SITE_SPAN:
        return PH__RECORD_SPAN_BEGIN;
    case PH__SITE_EVENT:
    case PH__SITE_LOG:
        return PH__RECORD_EVENT;
    case PH__SITE_FIELDS:
        return PH__RECORD_FIELDS;
    case PH__SITE_COUNTER:
        return PH__RECORD_COUNTER;
    case PH__SITE_ASYNC_BEGIN:
        return PH__RECORD_ASYNC_BEGIN;
    case PH__SITE_ASYNC_END:
        return PH__RECORD_ASYNC_END;
    case PH__SITE_FUNCTION:
        return PH__RECORD_FUNCTION_BEGIN;
    }
    __builtin_unreachable(); /* kinds are checked when the image is opened */
}

uint32_t ph__site_words(const struct ph__site *site) {
    switch ((enum ph__site_kind)site->kind) {
    case PH__SITE_FIELDS:      /* the span's position */
    case PH__SITE_ASYNC_BEGIN: /* the id */
    case PH__SITE_ASYNC_END:
        return PH__RECORD_WORDS_MIN + 1 + site->count;
    case PH__SITE_LOG: /* the types of its values */
        return PH__RECORD_WORDS_MIN + 1;
    case PH__SITE_FUNCTION: /* its address and its caller's */
        return PH__RECORD_WORDS_MIN + 2;
    case PH__SITE_SPAN:
    case PH__SITE_EVENT:
    case PH__SITE_COUNTER:
        break;
    }
    return PH__RECORD_WORDS_MIN + site->count;
}

bool ph__site_wanted(const struct ph__site *site, const struct ph__filter *filter) {
    if (site->kind == PH__SITE_FIELDS)
        return true;
    /* One word for all functions: on as soon as any of them may be wanted. Which is for the tree to say. */
    if (site->kind == PH__SITE_FUNCTION)
        return site->level <= ph__filter_highest(filter);
    /* A format is no name. */
    const char *name = site->kind == PH__SITE_LOG ? NULL : site->name;
    return site->level <= ph__filter_level(filter, site->file, site->function, name);
}

uint64_t ph__site_word(const struct ph__site *site, uint32_t number, const struct ph__filter *filter) {
    if (!ph__site_wanted(site, filter))
        return 0;
    return PH__RECORD_WORD(record_type(site), number, ph__site_words(site));
}
