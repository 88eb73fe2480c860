/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What is known of each page of the arena: in use or free, and if it is free, whether it is dirty. For
 * pages.c alone, which decides what to do with it. Pages are counted from the arena's bottom; ranges are
 * [start, end).
 */
#ifndef PH_MONITOR_PAGE_MAP_H
#define PH_MONITOR_PAGE_MAP_H

#include "monitor/monitor.h"

/* The lowest page from which on, up to (end), all are in use, or all are free. (end) if there is none; never
 * below (low). */
size_t ph__page_map_run_start(size_t low, size_t end, bool used);
/* The first page of the range that is dirty, or that is not. (end) if there is none. */
size_t ph__page_map_find_dirty(size_t start, size_t end, bool dirty);
/* How many are in use. */
size_t ph__page_map_used(void);

/* The range is in use from now on. */
void ph__page_map_take(size_t start, size_t end);
/* Those that were in use are free and dirty. */
void ph__page_map_give(size_t start, size_t end);
/* The range is free and zero. */
void ph__page_map_release(size_t start, size_t end);

#endif
