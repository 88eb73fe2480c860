/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The names of a profile's frames, each once and with a number: 65,536 at the most, of 255 bytes at the most.
 * A guest chooses them.
 */
#ifndef PH_EXPORT_FRAMES_H
#define PH_EXPORT_FRAMES_H

#include <pinhole/trace.h>

/* The frame of what finds no room: `[other]`. */
#define PH__FRAME_OTHER 0u

struct ph__frames;

/* NULL when there is no memory. */
struct ph__frames *ph__frames_create(void);
void ph__frames_free(struct ph__frames *frames);

/* The number of (span)'s name as the text sink shows it, cut at a character where it is too long. A new name
 * is only added when (add) says so. PH__FRAME_OTHER when it is not there and there is no room. */
uint32_t ph__frames_find(struct ph__frames *frames, const ph_trace_span *span, bool add);

uint32_t ph__frames_count(const struct ph__frames *frames);
const char *ph__frames_text(const struct ph__frames *frames, uint32_t frame);

#endif
