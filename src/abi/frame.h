/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Frames: how a call, a result or an error lies in a box. Written and read by host and guest alike, so this
 * is freestanding and touches nothing but the bytes it is given.
 *
 * A frame is a head, (count) slots and the bytes of strings and byte values, each on a 16-byte boundary.
 * Positions are bytes from the frame's start. A string's bytes are followed by a NUL that its length leaves
 * out.
 *
 * The host copies a frame out of the box first and decodes its own copy, so that nothing can change
 * between check and use.
 */
#ifndef PH_ABI_FRAME_H
#define PH_ABI_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include <pinhole/types.h>

enum ph__frame_kind {
    PH__FRAME_CALL = 1,   /* (index) export or import; the values are its arguments */
    PH__FRAME_RESULT = 2, /* one value, or none for void */
    PH__FRAME_ERROR = 3,  /* (code), and one string: the message */
};

struct ph__frame {
    uint32_t size; /* bytes of the whole frame */
    uint16_t kind;
    uint8_t level; /* nesting of calls; 0 until calls can nest */
    uint8_t count; /* slots */
    uint32_t index;
    int32_t code;
    uint64_t reserved[2];
};

/* Codes of ERROR frames that pinhole gives itself; a program's own are positive by convention. guest.h shows
 * them. */
#define PH__CODE_TOO_LARGE (-1) /* a value does not fit the message limit */
#define PH__CODE_NO_MEMORY (-2) /* the guest's heap is exhausted */
#define PH__CODE_HOST (-7)      /* a host function failed without a code of its own */

struct ph__slot {
    uint32_t type;
    uint32_t length; /* bytes of a string or byte value, else 0 */
    uint64_t word;   /* the bits of a scalar, zero-extended; or the position of the bytes */
};

_Static_assert(sizeof(struct ph__frame) == 32, "the frame's head is part of the ABI");
_Static_assert(sizeof(struct ph__slot) == 16, "the slot is part of the ABI");

/* The most bytes that a frame takes beside the payload of its values: head, slots, and for each value
 * a NUL and padding to the next boundary. A box is this plus the message limit. */
#define PH__FRAME_OVERHEAD (sizeof(struct ph__frame) + PH_MAX_ARGS * (sizeof(struct ph__slot) + 32) + 32)

enum ph__frame_status {
    PH__FRAME_OK = 0,
    PH__FRAME_TOO_LARGE = -1, /* the values need more than (capacity) bytes or 2^32 - 1 */
    PH__FRAME_MALFORMED = -2, /* the bytes are not a frame of the expected shape */
};

/* Writes a frame with (head)'s kind, level, index and code and the (count) values to (box), which holds
 * (capacity) bytes. The payload of all values together may have (max_payload) bytes. Size and count are
 * filled in. Returns PH__FRAME_OK or PH__FRAME_TOO_LARGE, and then the box is as it was. */
enum ph__frame_status ph__frame_encode(void *box, size_t capacity, size_t max_payload,
                                       const struct ph__frame *head, const ph_value *values, size_t count);

/* Checks the frame at (bytes), of which (size) may be read, against its own size and the expected (types),
 * and points (values) at its contents. (count) values are expected, of (types); values of strings and bytes
 * point into (bytes). Returns PH__FRAME_OK or PH__FRAME_MALFORMED. Never reads outside (bytes). */
enum ph__frame_status ph__frame_decode(const void *bytes, size_t size, const ph_type *types, size_t count,
                                       ph_value *values);

#endif
