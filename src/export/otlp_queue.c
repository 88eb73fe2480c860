/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * From items to requests, in bounded memory, and the count of what was lost (otlp_exporter.h). Called by
 * sinks, which may not wait, and by the exporter's thread. What finds no room is dropped here and never
 * there before: the newest batch, so that what is sent has no holes but at its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "export/otlp_exporter.h"

#define TELL_EVERY_NS (10 * PH__SECOND_NS)

static const struct {
    const char *signal;
    const char *one;
    const char *many;
} words[PH__OTLP_SIGNALS] = {
    [PH_EXPORT_TRACES] = {"traces", "span", "spans"},
    [PH_EXPORT_LOGS] = {"logs", "log record", "log records"},
    [PH_EXPORT_METRICS] = {"metrics", "data point", "data points"},
};

void ph__otlp_request_free(struct ph__otlp_request *request) {
    if (!request)
        return;
    free(request->body);
    free(request);
}

static uint64_t add_ns(uint64_t time_ns, uint64_t more_ns) {
    return more_ns < UINT64_MAX - time_ns ? time_ns + more_ns : UINT64_MAX;
}

/* ---- counts -------------------------------------------------------------------------------------------- */

void ph__otlp_lane_sent(ph_otlp *otlp, struct ph__otlp_lane *lane, uint64_t items) {
    lane->sent += items;
    if (otlp->metrics && items)
        ph_metrics_count_export(otlp->metrics, lane->signal, items, 0);
}

void ph__otlp_lane_lost(ph_otlp *otlp, struct ph__otlp_lane *lane, uint64_t items, const char *reason) {
    lane->lost += items;
    lane->untold += items;
    snprintf(lane->reason, sizeof lane->reason, "%s", reason);
    if (otlp->metrics && items)
        ph_metrics_count_export(otlp->metrics, lane->signal, 0, items);
}

/* ---- batches ------------------------------------------------------------------------------------------- */

static bool has_room(const struct ph__otlp_lane *lane, const struct ph__otlp_request *request) {
    return request->items <= lane->queue_max - lane->waiting_items &&
           request->size <= lane->queue_bytes - lane->waiting_bytes;
}

static void request_queue(struct ph__otlp_lane *lane, struct ph__otlp_request *request) {
    request->number = ++lane->last_number;
    *lane->end = request;
    lane->end = &request->next;
    lane->waiting_items += request->items;
    lane->waiting_bytes += request->size;
}

void ph__otlp_lane_batch_close(ph_otlp *otlp, struct ph__otlp_lane *lane) {
    const size_t items = ph__otlp_batch_items(lane->batch);

    if (items == 0)
        return;
    struct ph__otlp_request *request = calloc(1, sizeof *request);
    size_t size = 0;
    uint8_t *body = ph__otlp_batch_take(lane->batch, &size);
    if (!request || !body) {
        free(body);
        free(request);
        ph__otlp_lane_lost(otlp, lane, items, "no memory");
        return;
    }
    *request = (struct ph__otlp_request){.body = body, .size = size, .items = items};
    if (has_room(lane, request)) {
        request_queue(lane, request);
    } else {
        ph__otlp_request_free(request);
        ph__otlp_lane_lost(otlp, lane, items, "the queue is full");
    }
}

/* Adds an item to the batch, or to the next one. False when there is no memory for it. */
static bool batch_add(ph_otlp *otlp, struct ph__otlp_lane *lane,
                      bool (*put)(struct ph__otlp_batch *batch, const void *item), const void *item) {
    size_t before = ph__otlp_batch_items(lane->batch);

    if (!put(lane->batch, item)) {
        ph__otlp_lane_batch_close(otlp, lane);
        before = 0;
        if (!put(lane->batch, item))
            return false;
    }
    /* One that finds no memory in an empty batch counts as added, and is not in it. */
    return ph__otlp_batch_items(lane->batch) > before;
}

void ph__otlp_lane_add(ph_otlp *otlp, struct ph__otlp_lane *lane,
                       bool (*put)(struct ph__otlp_batch *batch, const void *item), const void *item) {
    const uint64_t queued = lane->last_number;
    const uint64_t lost = lane->lost;

    if (!batch_add(otlp, lane, put, item))
        ph__otlp_lane_lost(otlp, lane, 1, "no memory");
    const bool first = ph__otlp_batch_items(lane->batch) == 1;
    if (first)
        lane->due_ns = add_ns(ph__time_ns(CLOCK_MONOTONIC), lane->delay_ns);
    if (ph__otlp_batch_items(lane->batch) >= lane->batch_max)
        ph__otlp_lane_batch_close(otlp, lane);
    /* Once for a batch's first item too, so that the thread learns when it is due. */
    if (first || lane->last_number != queued || lane->lost != lost)
        curl_multi_wakeup(otlp->multi);
}

struct point {
    const ph_metric *metric;
    uint64_t time_ns;
};

static bool put_metric(struct ph__otlp_batch *batch, const void *item) {
    const struct point *point = item;
    return ph__otlp_batch_metric(batch, point->metric, point->time_ns);
}

static void visit_metric(void *context, const ph_metric *metric) {
    ph_otlp *otlp = context;
    const struct point point = {metric, ph__time_ns(CLOCK_REALTIME)};

    pthread_mutex_lock(&otlp->lock);
    ph__otlp_lane_add(otlp, &otlp->lanes[PH_EXPORT_METRICS], put_metric, &point);
    pthread_mutex_unlock(&otlp->lock);
}

static bool sends_metrics(const ph_otlp *otlp) {
    return otlp->metrics && !otlp->settings.routes[PH_EXPORT_METRICS].off;
}

struct ph__otlp_round ph__otlp_round_begin(ph_otlp *otlp, uint64_t now_ns) {
    struct ph__otlp_round round = {.now_ns = now_ns, .stop = otlp->stop, .flushes = otlp->flushes_asked};

    round.flush = otlp->flushes_done == otlp->flushes_taken && round.flushes > otlp->flushes_taken;
    round.last = round.stop && !otlp->stop_taken;
    /* Behind the stop they come once more: an interval may be shorter than what sending takes. */
    const bool due = !round.stop && now_ns >= otlp->metrics_ns;
    round.metrics = sends_metrics(otlp) && (round.flush || round.last || due);
    if (round.metrics)
        otlp->metrics_ns = add_ns(now_ns, otlp->settings.metric_interval_ns);
    return round;
}

void ph__otlp_metrics_take(ph_otlp *otlp) {
    ph_metrics_visit(otlp->metrics, visit_metric, otlp);
}

void ph__otlp_collect(ph_otlp *otlp, const struct ph__otlp_round *round) {
    for (size_t i = 0; i < PH__OTLP_SIGNALS; i++) {
        struct ph__otlp_lane *lane = &otlp->lanes[i];
        /* The host's metrics go together with what the guests have counted up to here. */
        const bool metrics = round->metrics && lane->signal == PH_EXPORT_METRICS;
        if (metrics || round->flush || round->last || otlp->send_asked || round->now_ns >= lane->due_ns)
            ph__otlp_lane_batch_close(otlp, lane);
        if (round->flush)
            lane->flush_number = lane->last_number;
    }
    otlp->send_asked = false;
    otlp->stop_taken = round->stop;
    if (round->flush)
        otlp->flushes_taken = round->flushes;
}

/* ---- requests ------------------------------------------------------------------------------------------ */

struct ph__otlp_request *ph__otlp_lane_take(struct ph__otlp_lane *lane) {
    struct ph__otlp_request *request = lane->first;

    if (!request)
        return NULL;
    lane->first = request->next;
    if (!lane->first)
        lane->end = &lane->first;
    request->next = NULL;
    lane->waiting_items -= request->items;
    lane->waiting_bytes -= request->size;
    return request;
}

void ph__otlp_lane_abandon(ph_otlp *otlp, struct ph__otlp_lane *lane, const char *reason) {
    struct ph__otlp_request *request;

    ph__otlp_lane_batch_close(otlp, lane);
    while ((request = ph__otlp_lane_take(lane)) != NULL) {
        ph__otlp_lane_lost(otlp, lane, request->items, reason);
        ph__otlp_request_free(request);
    }
    lane->done_number = lane->last_number;
}

void ph__otlp_flush_settle(ph_otlp *otlp) {
    if (otlp->flushes_done == otlp->flushes_taken)
        return;
    for (size_t i = 0; i < PH__OTLP_SIGNALS; i++)
        if (otlp->lanes[i].done_number < otlp->lanes[i].flush_number)
            return;
    otlp->flushes_done = otlp->flushes_taken;
    pthread_cond_broadcast(&otlp->flushed);
}

uint64_t ph__otlp_next_ns(const ph_otlp *otlp) {
    uint64_t next = sends_metrics(otlp) && !otlp->stop ? otlp->metrics_ns : UINT64_MAX;

    if (otlp->send_asked || otlp->stop != otlp->stop_taken ||
        (otlp->flushes_done == otlp->flushes_taken && otlp->flushes_asked > otlp->flushes_taken))
        return 0;
    for (size_t i = 0; i < PH__OTLP_SIGNALS; i++) {
        const struct ph__otlp_lane *lane = &otlp->lanes[i];
        if (ph__otlp_batch_items(lane->batch) > 0 && lane->due_ns < next)
            next = lane->due_ns;
        if ((lane->untold || lane->remark) && lane->told_ns + TELL_EVERY_NS < next)
            next = lane->told_ns + TELL_EVERY_NS;
    }
    return next;
}

/* ---- words --------------------------------------------------------------------------------------------- */

/* "traces: http://localhost:4318/v1/traces: Connection refused; 512 spans lost" */
static void line_format(const struct ph__otlp_lane *lane, const char *reason, uint64_t lost, char *line,
                        size_t size) {
    int length = snprintf(line, size, "%s: %s: %s", words[lane->signal].signal, lane->url, reason);

    if (lost && length >= 0 && (size_t)length < size)
        snprintf(line + length, size - (size_t)length, "; %llu %s lost", (unsigned long long)lost,
                 lost == 1 ? words[lane->signal].one : words[lane->signal].many);
    /* A part of it may be the collector's words. */
    ph__text_copy_printable(line, size, line, strlen(line));
}

void ph__otlp_tell(ph_otlp *otlp, uint64_t now_ns, bool last) {
    for (size_t i = 0; i < PH__OTLP_SIGNALS; i++) {
        struct ph__otlp_lane *lane = &otlp->lanes[i];
        char line[PH__OTLP_REASON_MAX + PH__OTLP_URL_MAX + 64];
        char reason[PH__OTLP_REASON_MAX];

        pthread_mutex_lock(&otlp->lock);
        const uint64_t lost = lane->untold;
        const bool due = last || lane->told_ns == 0 || now_ns >= lane->told_ns + TELL_EVERY_NS;
        const bool tell = (lost || lane->remark) && due;
        if (tell) {
            memcpy(reason, lane->reason, sizeof reason);
            lane->untold = 0;
            lane->remark = false;
            lane->told_ns = now_ns;
        }
        pthread_mutex_unlock(&otlp->lock);
        if (!tell || !otlp->diagnostics)
            continue;
        line_format(lane, reason, lost, line, sizeof line);
        otlp->diagnostics(otlp->diagnostics_context, line);
    }
}
