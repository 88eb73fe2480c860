/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Pages for a browser to read, made of spans that are put together by hand.
 */
#ifndef HTML_PAGES_H
#define HTML_PAGES_H

#include <stddef.h>

/* A bit of everything: two sandboxes, calls, a failure, a span that nobody ended, asynchronous spans, logs of
 * each level, counters, fields of each type. */
void page_make_rich(const char *path);

/* Every text tries to become a script, a tag, or the end of its element. */
void page_make_hostile(const char *path);

/* One call with (count) spans in it, which end before the call and the guest's part of it do. */
void page_make_large(const char *path, size_t count);

/* As a killed process leaves it: the rich one, cut off in the middle of an item. */
void page_make_killed(const char *path);

/* A trace in which nothing happened. */
void page_make_empty(const char *path);

#endif
