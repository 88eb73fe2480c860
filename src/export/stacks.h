/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Self time by stack, for the sinks that write profiles: folded.c and speedscope.c. Of all spans with the
 * same names above them only the sum is kept, so that memory depends on how many stacks there are and not on
 * how long the trace is.
 *
 * Bounds, of all sandboxes together: 65,536 stacks that are kept, and as many spans more whose children have
 * come and that have not ended yet; 65,536 names of at most 255 bytes; and 256 frames a stack on average,
 * 8,192 at the most, when they are listed. The time of what is beyond that counts for its sandbox's
 * `[other]`; that of a span whose parent finds no room stays with what is above it. What has no sandbox,
 * since even that found no room, is the time of sandbox 0.
 *
 * Asynchronous spans are left out: they lie beside the stack, not on it.
 */
#ifndef PH_EXPORT_STACKS_H
#define PH_EXPORT_STACKS_H

#include <pinhole/trace.h>

#define PH__STACKS_MAX 65536u
#define PH__STACKS_NAME_MAX 255u
#define PH__STACKS_DEPTH_MAX 8192u

struct ph__stacks;

/* NULL when there is no memory. */
struct ph__stacks *ph__stacks_create(void);
void ph__stacks_free(struct ph__stacks *stacks);

/* Counts (span), whose children have been counted before. Without memory it does as at a bound. */
void ph__stacks_take(struct ph__stacks *stacks, const ph_trace_span *span);

/* Closes the books: what is missing its parent goes under a frame `[unknown]`. Due before what follows, which
 * is only for reading. */
void ph__stacks_finish(struct ph__stacks *stacks);

/* The names of all frames, by their number; each is UTF-8 as far as what came was. */
uint32_t ph__stacks_frame_count(const struct ph__stacks *stacks);
const char *ph__stacks_frame(const struct ph__stacks *stacks, uint32_t frame);

/* Called for each stack with self time, a parent before its children: (frames) are the (depth) numbers of its
 * frames, the outermost first. */
typedef void ph__stacks_visit(void *context, const uint32_t *frames, size_t depth, uint64_t self_ns);

/* One after another, every sandbox that has self time: (*at) is 0 to begin with. False behind the last;
 * otherwise (*sandbox) is its number and (*total_ns) the sum of its self times. */
bool ph__stacks_next(const struct ph__stacks *stacks, uint32_t *at, uint64_t *sandbox, uint64_t *total_ns);

/* Lists the stacks of the sandbox that ph__stacks_next has given, `[other]` last. */
void ph__stacks_list(struct ph__stacks *stacks, uint32_t at, ph__stacks_visit *visit, void *context);

#endif
