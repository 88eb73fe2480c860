/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What goes from the thread that uses a sandbox to whoever decodes its trace: one stream of batches, in the
 * order in which things happened. Made and read by the host alone, but for the records in it.
 */
#ifndef PH_TRACE_BATCH_H
#define PH_TRACE_BATCH_H

#include <stdint.h>

#include <pinhole/trace.h>

#include "trace/ids.h"

enum ph__batch_kind {
    PH__BATCH_BEGIN = 1,   /* struct ph__batch_begin: a span of the host begins */
    PH__BATCH_END = 2,     /* struct ph__batch_end: the innermost open span of the host ends */
    PH__BATCH_RECORDS = 3, /* struct ph__batch_records: records of the guest */
    PH__BATCH_LOSS = 4,    /* struct ph__batch_loss: records of the guest that were not kept */
};

/* The head of each. (size) is a multiple of 8 and counts the head; (tsc) is the host's, of a loss when it was
 * told: it lies between what comes before and after. */
struct ph__batch {
    uint32_t size;
    uint32_t kind;
    uint64_t tsc;
};

enum ph__host_span {
    PH__HOST_CREATE = 0,
    PH__HOST_LOAD = 1,
    PH__HOST_START = 2,
    PH__HOST_CALL = 3, /* of (function), an export */
    PH__HOST_RUN = 4,
    PH__HOST_FUNCTION = 5, /* of (function), an import; under the guest's innermost open span */
    PH__HOST_DESTROY = 6,
    PH__HOST_SNAPSHOT = 7,
    PH__HOST_RESTORE = 8,
};
#define PH__HOST_LAST PH__HOST_RESTORE

struct ph__batch_begin {
    struct ph__batch batch;
    uint32_t span;               /* enum ph__host_span */
    uint16_t arguments;          /* 1: they are there */
    uint16_t root_words;         /* of (words): first a struct ph__batch_root. 0: this is no root */
    const ph_function *function; /* NULL, or one of the image's */
    uint64_t id;
    uint64_t words[]; /* arguments as a log's (abi/trace.h): a word of types, then the values */
};

/* What a root says of its trace. */
struct ph__batch_root {
    uint8_t trace_id[PH__TRACE_ID_SIZE];
    uint8_t remote_parent[PH__SPAN_ID_SIZE]; /* all 0: there is none */
    char trace_state[];                      /* with a NUL; not there when (root_words) ends before it */
};

struct ph__batch_end {
    struct ph__batch batch;
    int32_t status; /* ph_status */
    int32_t code;
    char message[]; /* with a NUL; "" for none */
};

struct ph__batch_records {
    struct ph__batch batch; /* (tsc): when they were copied; none was written later */
    uint64_t position;      /* of the first byte, in the ring's count */
    uint8_t bytes[];
};

enum ph__loss {
    PH__LOSS_QUEUE = 0,       /* no room in the queue */
    PH__LOSS_BUDGET = 1,      /* beyond the call's or the sandbox's bytes */
    PH__LOSS_NONSENSE = 2,    /* head moved backwards or too far */
    PH__LOSS_OVERWRITTEN = 3, /* policy `flight` */
    PH__LOSS_RING = 4,        /* policy `drop`: by a GAP record, or at the end of a call */
};

struct ph__batch_loss {
    struct ph__batch batch;
    uint32_t cause;     /* enum ph__loss */
    uint32_t restarted; /* PH__LOSS_RING: 1 if the guest's counts have begun at 0 again before this */
    uint64_t records;   /* 0 when it is not known */
    uint64_t bytes;
};

#endif
