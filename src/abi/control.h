/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The control page: what the host tells monitor and guest library. The host writes it through a mapping of
 * its own; the guest's page tables and KVM's mapping are both read-only, so a guest cannot change a byte.
 * The guest trusts it; the host never reads it back.
 */
#ifndef PH_ABI_CONTROL_H
#define PH_ABI_CONTROL_H

#include <stdint.h>

#include "layout.h"
#include "trace.h"

/* Counts up with each change of anything in src/abi. The image's note carries the number that its guest
 * library was built with (table.h), and the host refuses another. */
#define PH__ABI_VERSION 4

/* Nanoseconds now = anchor + ((rdtsc - tsc) * mult >> 32). The host renews the anchors at an entry
 * when they are older than about 100 ms, so the product needs 128 bits only in a guest that runs for long. */
struct ph__clock {
    uint64_t tsc;
    uint64_t realtime_ns;
    uint64_t monotonic_ns;
    uint64_t mult;
};

#define PH__TRACEPARENT_SIZE 56u

struct ph__control {
    uint32_t abi_version;
    uint32_t flags;          /* PH__CONTROL_* */
    uint64_t inbox_gva;      /* CALL frames from the host */
    uint64_t host_inbox_gva; /* RESULT and ERROR frames that answer a host call */
    uint64_t outbox_gva;     /* frames from the guest */
    uint64_t box_size;       /* bytes in each of the three */
    uint64_t max_message;    /* the most payload bytes of one frame */
    uint64_t image_gva;      /* the image's span, page-aligned */
    uint64_t image_size;
    uint64_t arena_gva; /* heap from below, mmap space from above; 2 MiB-aligned */
    uint64_t arena_size;
    uint64_t stack_gva; /* lowest mapped address of the main stack */
    uint64_t stack_size;
    uint64_t bookkeeping_gva; /* the monitor's own, zero at start: 2 bits for each page of the arena */
    uint64_t bookkeeping_size;
    uint64_t start_monotonic_ns; /* when the program started, for processor-time clocks */
    uint8_t seed[32];            /* fresh for each start; the key of getrandom */
    uint64_t seed_generation;    /* changes whenever (seed) does */
    struct ph__clock clock;
    struct ph__control_trace trace;
    uint64_t files_size; /* bytes of the file window (files.h) */
    uint64_t file_count; /* 0: there is none */
    /* W3C Trace Context of the call under way, with its NUL; "" for none, and in a program that has no
     * PH__NOTE_TRACEPARENT (table.h). Written while no vCPU runs. */
    char traceparent[PH__TRACEPARENT_SIZE];
};

#define PH__CONTROL_ALLOW_WX 1u /* mappings may be writable and executable at once */

/* One page-table entry for ring 0 to store: (entry_gva) is where the entry is, (value) what goes in, (gva)
 * any address that the entry translates: its translation is flushed. */
struct ph__poke {
    uint64_t entry_gva;
    uint64_t value;
    uint64_t gva;
};
#define PH__POKES_MAX (PH__POKES_SIZE / sizeof(struct ph__poke))

/* The auxiliary-vector entry by which a program knows that it runs in pinhole; its value is the control
 * page's address. Linux's own numbers stay below 100. */
#define PH__AT_PINHOLE 0x70696e68

_Static_assert(sizeof(struct ph__control) <= PH__CONTROL_SIZE, "the control page is one page");

#endif
