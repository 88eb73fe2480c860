/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The page that the sink for HTML writes, up to where the trace begins: made of the files beside this one
 * (make-page.py), embedded by embed.S.
 */
#ifndef PH_EXPORT_PAGE_PAGE_H
#define PH_EXPORT_PAGE_PAGE_H

#include <stddef.h>

extern const char ph__page[] __attribute__((visibility("hidden")));
extern const size_t ph__page_size __attribute__((visibility("hidden")));

#endif
