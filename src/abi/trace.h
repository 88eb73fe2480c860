/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Tracing, as it lies in memory: the ring, its records, and the table of sites. Written by guest library and
 * monitor, read by the host, which trusts none of it but the site table, and that only once it has been
 * checked. docs/trace-format.md says the same for writers of other guest libraries.
 *
 * The ring has one writer, the guest's one vCPU, which exceptions may interrupt anywhere. Positions are
 * monotonic byte counts; a position's place is ring + (position & (size - 1)). The ring is mapped twice in a
 * row, so no record wraps.
 *
 * Publishing: write the whole record at head, then store head + length to head. That store is what publishes;
 * the host's load of head pairs with it (x86 keeps the order of stores, and of loads). A handler of an
 * exception that comes in between may publish records of its own; when it returns, the monitor sends the
 * writer back to where it loads head (recorder.h). A handler that never returns leaves an unpublished record
 * behind, which nobody sees.
 */
#ifndef PH_ABI_TRACE_H
#define PH_ABI_TRACE_H

#include <stdint.h>

#include <pinhole/types.h>

/* Where the ring is in every guest that has one: one page with struct ph__ring, then the bytes twice. Above
 * the window, in an entry of the PML4 of its own. */
#define PH__TRACE_GVA 0x7f8000000000ull
#define PH__TRACE_RING_GVA (PH__TRACE_GVA + 0x1000ull)

#define PH__RING_SIZE_MIN (16ull << 10)
#define PH__RING_SIZE_MAX (64ull << 20)
#define PH__RING_SIZE_DEFAULT (256ull << 10)

/* The first page. All of it is the guest's: the host reads (head), (oldest), (dropped) and (dropped_bytes),
 * as hostile numbers, and writes the page only while no vCPU runs. */
struct ph__ring {
    uint64_t head;          /* where the next record goes */
    uint64_t limit;         /* head + length may reach it without asking; the guest's cache of tail + size */
    uint64_t end_limit;     /* the same for ends of spans, for which policy `drop` keeps some room */
    uint64_t mask;          /* size - 1 */
    uint64_t oldest;        /* policy `flight`: records before it may be overwritten */
    uint64_t dropped;       /* policy `drop`: records that found no room, ever */
    uint64_t dropped_bytes; /* and their bytes */
    uint64_t gap_dropped;   /* (dropped) as the last GAP record has told it */
    uint64_t critical; /* address of a struct ph__critical: what writes, or wrote last; for the monitor */
};

/* A sequence of instructions that writes and publishes a record: distances, each from its own field, to its
 * first instruction and to the one behind the store of head. */
struct ph__critical {
    int32_t start;
    int32_t end;
};

enum ph__trace_policy {
    PH__POLICY_COMPLETE = 0, /* no room: the doorbell TRACE_BATCH, and the host makes some */
    PH__POLICY_DROP = 1,     /* no room: the record is dropped and counted */
    PH__POLICY_FLIGHT = 2,   /* no room: the oldest records are overwritten */
};

/* Part of the control page: the host alone writes it. */
struct ph__control_trace {
    uint64_t ring_size; /* 0: this sandbox has no ring, and no other field means anything */
    uint64_t tail;      /* records before it have been taken; changes while the guest runs */
    uint64_t policy;
    uint64_t first; /* position of the first record of this generation */
    /* Words as a site's (below), for what has no site: */
    uint64_t system_calls; /* SYSTEM_CALL_BEGIN */
    uint64_t calls;        /* CALL_BEGIN, also of the start */
};

/* Room that policy `drop` keeps free for ends of spans. */
#define PH__RING_RESERVE(size) ((size) / 8)

/*
 * A record is (length) words of 8 bytes.
 *
 * Word 0   bits 0..7    length, 2..255
 *          bits 8..11   type
 *          bits 12..31  site, or what the type says
 *          bits 32..63  bits 4..35 of the stack pointer, or 0
 * Word 1   the time-stamp counter
 *
 * Spans have no depth: a counter in guest memory is stale after a longjmp. A span is known by the position of
 * its begin record, and an end names it. The stack pointer shows which spans a longjmp has left: stacks grow
 * down, so an open span whose stack pointer is below that of a newer record lies in a frame that is gone.
 * Spans that are begun and ended by hand have 0 there and are never judged so.
 *
 * Word 0 of SPAN_END is other: bits 12..63 are the position of the begin record divided by 8.
 */
enum ph__record_type {
    PH__RECORD_SPAN_BEGIN = 1,  /* fields */
    PH__RECORD_SPAN_END = 2,    /* nothing; or one word, the result of a system call */
    PH__RECORD_EVENT = 3,       /* of an event's site: fields; of a log's: a word of types, then values */
    PH__RECORD_FIELDS = 4,      /* position of an open span's begin record, then fields */
    PH__RECORD_COUNTER = 5,     /* the one field, its new value */
    PH__RECORD_ASYNC_BEGIN = 6, /* id, then fields */
    PH__RECORD_ASYNC_END = 7,   /* id, then fields */
    PH__RECORD_CALL_BEGIN = 8,  /* site = index of the export, or PH__SITE_START */
    PH__RECORD_SYSTEM_CALL_BEGIN =
        9, /* site = number, at most PH__SITE_MAX; up to six words: its arguments */
    /* -finstrument-functions: the function's address and, unless that is not known, the one that it returns
     * to, with PH__RECORD_CALLED_AGAIN when it is entered at the same place in the same frame as before. */
    PH__RECORD_FUNCTION_BEGIN = 10,
    PH__RECORD_GAP = 11,  /* (dropped) and (dropped_bytes) of struct ph__ring at this moment */
    PH__RECORD_EXIT = 12, /* the program's exit status; site = the signal that ended it, or 0 */
};

#define PH__RECORD_CALLED_AGAIN (1ull << 63)

#define PH__RECORD_WORDS_MIN 2u
#define PH__RECORD_WORDS_MAX 255u
#define PH__RECORD_LENGTH_MASK 0xffull
#define PH__RECORD_TYPE_SHIFT 8
#define PH__RECORD_TYPE_MASK 0xfull
#define PH__RECORD_SITE_SHIFT 12
#define PH__RECORD_STACK_SHIFT 32
#define PH__SITE_MAX 0xfffffu       /* the largest number of a site */
#define PH__SITE_START PH__SITE_MAX /* CALL_BEGIN: the program's own start */

/* Word 0 of a record, without the stack pointer. */
#define PH__RECORD_WORD(type, site, words)                                                                   \
    ((uint64_t)(words) | (uint64_t)(type) << PH__RECORD_TYPE_SHIFT |                                         \
     (uint64_t)(site) << PH__RECORD_SITE_SHIFT)

/*
 * Values of fields. i64, u64, f64 (its bits), bool (0 or 1) and pointer take one word. A string or bytes take
 * one word, bits 0..15 of which say how many bytes follow and bits 32..63 how many there were, at most
 * UINT32_MAX; then those bytes, padded to whole words.
 *
 * Types are numbers of ph_type. Those of a log's values are not in its site, since the format alone does not
 * tell them: they are one word, 4 bits a value from bit 0 on, and 0 (PH_VOID) behind the last.
 */
#define PH__TRACE_STRING_MAX 1024u /* bytes of one string that are kept */
#define PH__TRACE_FIELDS_MAX PH_MAX_ARGS

/*
 * A site: one place in a guest's source that traces. The macros of guest.h write the table into the ELF file;
 * the note (table.h) says where it is. Every distance is from its own field. A site's number is its position
 * in the table.
 *
 * (word) leads to the site's word: 8 bytes, 0 in the file, in read-only pages that the host puts its own in
 * place of. 0 is off. Else it is word 0 of the site's records without the stack pointer, and with the length
 * that they have without the bytes of strings. So a site that is off costs one load and one branch, and one
 * that is on knows its number without counting.
 */
struct ph__site_entry {
    int32_t name;     /* NUL-terminated; a log's is its format */
    int32_t file;     /* NUL-terminated */
    int32_t function; /* NUL-terminated */
    int32_t fields;   /* for each field its type, one byte, and its NUL-terminated name */
    int32_t word;
    uint32_t line;
    uint8_t kind;  /* enum ph__site_kind */
    uint8_t level; /* ph_level */
    uint8_t count; /* fields */
    uint8_t reserved[5];
};
_Static_assert(sizeof(struct ph__site_entry) == 32, "entries lie side by side without padding");

enum ph__site_kind {
    PH__SITE_SPAN = 1,
    PH__SITE_EVENT = 2,
    PH__SITE_LOG = 3,
    PH__SITE_FIELDS = 4, /* fields that are added to an open span: follows the span, whatever its level */
    PH__SITE_COUNTER = 5,
    PH__SITE_ASYNC_BEGIN = 6,
    PH__SITE_ASYNC_END = 7,
    PH__SITE_FUNCTION = 8, /* one for all functions: its records are FUNCTION_BEGIN */
};

#endif
