/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A ph_otlp, as its files share it. Items go one way:
 *
 *     sink (tracer's worker) ── batch ── queue of requests ── transfer (exporter's thread) ── collector
 *
 * Each signal has a lane of its own, so that a collector that stalls for one holds up no other. One lock
 * covers batches, queues and counts. The exporter's thread never holds it while it compresses, sends, waits
 * or calls its user, so a sink never waits for any of that. Transfers and what curl keeps belong to the
 * exporter's thread alone.
 */
#ifndef PH_EXPORT_OTLP_EXPORTER_H
#define PH_EXPORT_OTLP_EXPORTER_H

#include <curl/curl.h>
#include <pthread.h>

#include "export/otlp_answer.h"
#include "export/otlp_batch.h"

#define PH__OTLP_SIGNALS 3
#define PH__OTLP_REASON_MAX 256
#define PH__OTLP_URL_MAX 256

/* A request that waits or is under way. */
struct ph__otlp_request {
    struct ph__otlp_request *next;
    uint64_t number; /* within its lane, from 1 */
    uint8_t *body;
    size_t size;
    size_t items;
};

/* One request at a time on its way to the collector. */
struct ph__otlp_transfer {
    CURL *easy;
    struct curl_slist *headers;
    struct ph__otlp_request *request; /* NULL: idle */
    bool active;                      /* curl has it; else it waits until (retry_ns) */
    uint64_t deadline_ns;             /* of the request and its repetitions */
    uint64_t retry_ns;
    uint64_t backoff_ns;
    uint8_t answer[PH__OTLP_ANSWER_MAX];
    size_t answer_size;
    size_t answer_read; /* with what was not kept */
    char error[CURL_ERROR_SIZE];
    char trouble[PH__OTLP_REASON_MAX]; /* why the last attempt failed; "" at first */
};

/* All of one signal. */
struct ph__otlp_lane {
    ph_export_signal signal;
    struct ph__otlp_transfer transfer;
    char url[PH__OTLP_URL_MAX]; /* to show: without a password */
    uint32_t batch_max;         /* items */
    uint32_t queue_max;
    size_t queue_bytes;
    uint64_t delay_ns;

    /* Under the lock. */
    struct ph__otlp_batch *batch;
    uint64_t due_ns; /* when the batch is to go, if there is something in it */
    struct ph__otlp_request *first;
    struct ph__otlp_request **end;
    size_t waiting_items;
    size_t waiting_bytes;
    uint64_t last_number; /* of the requests ever queued, and of those that are over */
    uint64_t done_number;
    uint64_t flush_number; /* with which the flush under way is over */
    uint64_t sent;
    uint64_t lost;
    uint64_t untold; /* lost, and nobody was told yet */
    bool remark;     /* nothing lost, but something to tell */
    char reason[PH__OTLP_REASON_MAX];
    uint64_t told_ns; /* when somebody was told last; 0: never */
};

struct ph_otlp {
    uint64_t owner;
    struct ph__otlp_settings settings;
    ph_metrics *metrics;
    ph_diagnostics_fn diagnostics;
    void *diagnostics_context;
    struct ph__otlp_lane lanes[PH__OTLP_SIGNALS];
    CURLM *multi;
    pthread_t thread;
    bool has_thread; /* it was started; for good */

    pthread_mutex_t lock;
    pthread_cond_t flushed;
    /* Under the lock. */
    bool send_asked; /* a sink's flush: what is there goes now */
    uint64_t flushes_asked;
    uint64_t flushes_taken; /* the flush under way, or the last one */
    uint64_t flushes_done;
    bool stop;
    bool stop_taken;          /* what was there at the stop is queued */
    _Atomic uint64_t stop_ns; /* when the thread has to be gone; only gets earlier behind (stop) */
    bool gone;                /* the thread does nothing more: who waits for it need not */
    uint64_t metrics_ns;      /* when (metrics) are visited next */
    uint64_t requests;
    uint64_t retries;
};

/* ---- otlp_queue.c: from items to requests; with the lock held, where nothing else is said ---------------
 */

/* Adds one item: (put) is to add it to a batch, as those of otlp_batch.h. */
void ph__otlp_lane_add(ph_otlp *otlp, struct ph__otlp_lane *lane,
                       bool (*put)(struct ph__otlp_batch *batch, const void *item), const void *item);

/* Makes a request of what is in the batch, if anything is. */
void ph__otlp_lane_batch_close(ph_otlp *otlp, struct ph__otlp_lane *lane);

/* What the exporter's thread has to do: a round sees what was asked for up to its beginning. */
struct ph__otlp_round {
    uint64_t now_ns;
    uint64_t flushes; /* asked for */
    bool flush;       /* one of them begins */
    bool stop;
    bool last;    /* it is the first round after the stop: whatever is there goes */
    bool metrics; /* the host's own are due */
};
struct ph__otlp_round ph__otlp_round_begin(ph_otlp *otlp, uint64_t now_ns);

/* Adds the host's own metrics to their lane's batch. Without the lock: to count them up takes locks of
 * others. */
void ph__otlp_metrics_take(ph_otlp *otlp);

/* Makes requests of what is due in (round). */
void ph__otlp_collect(ph_otlp *otlp, const struct ph__otlp_round *round);

/* The next request, which is the caller's then, or NULL. */
struct ph__otlp_request *ph__otlp_lane_take(struct ph__otlp_lane *lane);

/* (items) have arrived, or are lost, for a reason that is copied. */
void ph__otlp_lane_sent(ph_otlp *otlp, struct ph__otlp_lane *lane, uint64_t items);
void ph__otlp_lane_lost(ph_otlp *otlp, struct ph__otlp_lane *lane, uint64_t items, const char *reason);

/* Loses all that waits. */
void ph__otlp_lane_abandon(ph_otlp *otlp, struct ph__otlp_lane *lane, const char *reason);

/* Ends the flush under way, if it is over. */
void ph__otlp_flush_settle(ph_otlp *otlp);

/* When the next of these has something to do. */
uint64_t ph__otlp_next_ns(const ph_otlp *otlp);

void ph__otlp_request_free(struct ph__otlp_request *request);

/* Tells what was lost. Without the lock: at most once in ten seconds for each signal, and at the end (last).
 */
void ph__otlp_tell(ph_otlp *otlp, uint64_t now_ns, bool last);

/* ---- otlp_http.c: one request over HTTP, for the exporter's thread --------------------------------------
 */

/* What has become of an attempt. */
enum ph__otlp_verdict {
    PH__OTLP_TAKEN,   /* all but (rejected) items have arrived */
    PH__OTLP_REPEAT,  /* it may arrive later */
    PH__OTLP_REFUSED, /* it never will */
};

struct ph__otlp_outcome {
    enum ph__otlp_verdict verdict;
    uint64_t rejected;
    uint64_t pause_ns;                /* what the collector asks to wait for; 0: it does not say */
    char reason[PH__OTLP_REASON_MAX]; /* "" when there is nothing to say */
};

/* Fills in a lane's handle and its URL to show. False without memory. */
bool ph__otlp_transfer_init(struct ph__otlp_lane *lane, const struct ph__otlp_route *route);
void ph__otlp_transfer_free(struct ph__otlp_transfer *transfer);

/* Compresses a request's body. False without memory. */
bool ph__otlp_request_compress(struct ph__otlp_request *request);

/* Hands the transfer's request to (multi), for at most (timeout_ns). False without memory. */
bool ph__otlp_transfer_start(struct ph__otlp_transfer *transfer, CURLM *multi, uint64_t timeout_ns);

/* Takes it back from (multi), which is done with it: (code). */
void ph__otlp_transfer_end(struct ph__otlp_transfer *transfer, CURLM *multi, CURLcode code,
                           struct ph__otlp_outcome *outcome);

/* ---- otlp_send.c: the exporter's thread -----------------------------------------------------------------
 */

void *ph__otlp_send(void *context);

/* ---- otlp.c ---------------------------------------------------------------------------------------------
 */

/* As ph_otlp_create, with (settings) in place of those of (config): taken over in any case, and zeroed. */
ph_status ph__otlp_create(const ph_otlp_config *config, struct ph__otlp_settings *settings, ph_otlp **result,
                          ph_error *error);

#endif
