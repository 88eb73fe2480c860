/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The exporter's thread: takes requests from the lanes, sends one of each lane at a time, repeats what may
 * arrive later, and gives up in time. It sleeps in curl_multi_poll, from which sinks, flushes and the end
 * wake it. It touches the lock for moments only (otlp_exporter.h).
 */
#include <stdio.h>
#include <sys/random.h>

#include "base/system.h"
#include "base/time.h"
#include "export/otlp_exporter.h"

#define BACKOFF_LONGEST_NS (5 * PH__SECOND_NS)
#define SLEEP_LONGEST_NS (60 * PH__SECOND_NS)
#define POLL_FAILED_NS 10000000 /* rather than a loop that does nothing else */

/* From 0.8 to 1.2 times (ns), so that exporters that failed together do not come back together. */
static uint64_t jitter(uint64_t ns) {
    uint32_t random = UINT32_MAX / 2;

    ph__system.getrandom(&random, sizeof random, GRND_NONBLOCK);
    return ns - ns / 5 + ns / 5 * 2 / 1024 * (random >> 22);
}

/* How long there is any use in what a transfer does. */
static uint64_t limit_ns(const ph_otlp *otlp, const struct ph__otlp_transfer *transfer, bool stop) {
    return stop && otlp->stop_ns < transfer->deadline_ns ? otlp->stop_ns : transfer->deadline_ns;
}

/* The transfer's request is over: all but (lost) of it has arrived. */
static void request_finish(ph_otlp *otlp, struct ph__otlp_lane *lane, uint64_t lost, const char *reason) {
    struct ph__otlp_request *request = lane->transfer.request;

    if (!lost)
        lane->transfer.trouble[0] = 0;
    pthread_mutex_lock(&otlp->lock);
    ph__otlp_lane_sent(otlp, lane, request->items - lost);
    if (lost) {
        ph__otlp_lane_lost(otlp, lane, lost, reason);
    } else if (*reason && !lane->untold) {
        ph__otlp_lane_lost(otlp, lane, 0, reason);
        lane->remark = true;
    }
    lane->done_number = request->number;
    pthread_mutex_unlock(&otlp->lock);
    ph__otlp_request_free(request);
    lane->transfer.request = NULL;
}

static void attempt(ph_otlp *otlp, struct ph__otlp_lane *lane, uint64_t now_ns, bool again) {
    struct ph__otlp_transfer *transfer = &lane->transfer;

    pthread_mutex_lock(&otlp->lock);
    otlp->requests++;
    otlp->retries += again;
    pthread_mutex_unlock(&otlp->lock);
    if (!ph__otlp_transfer_start(transfer, otlp->multi, transfer->deadline_ns - now_ns))
        request_finish(otlp, lane, transfer->request->items, "no memory");
}

/* Has a lane that is idle, or whose pause is over, send something. */
static void lane_step(ph_otlp *otlp, struct ph__otlp_lane *lane, uint64_t now_ns, bool stop) {
    const struct ph__otlp_route *route = &otlp->settings.routes[lane->signal];
    struct ph__otlp_transfer *transfer = &lane->transfer;

    if (transfer->active)
        return;
    if (transfer->request) {
        /* It may be later than the pause's end, by any time that the process was stopped. */
        const uint64_t next_ns = now_ns > transfer->retry_ns ? now_ns : transfer->retry_ns;
        if (next_ns >= limit_ns(otlp, transfer, stop))
            request_finish(otlp, lane, transfer->request->items, transfer->trouble);
        else if (now_ns >= transfer->retry_ns)
            attempt(otlp, lane, now_ns, true);
        return;
    }
    pthread_mutex_lock(&otlp->lock);
    transfer->request = ph__otlp_lane_take(lane);
    pthread_mutex_unlock(&otlp->lock);
    if (!transfer->request)
        return;
    transfer->trouble[0] = 0;
    transfer->backoff_ns = otlp->settings.backoff_ns;
    transfer->deadline_ns = route->timeout_ns < UINT64_MAX - now_ns ? now_ns + route->timeout_ns : UINT64_MAX;
    if (route->gzip && !ph__otlp_request_compress(transfer->request))
        request_finish(otlp, lane, transfer->request->items, "no memory");
    else
        attempt(otlp, lane, now_ns, false);
}

/* An attempt of (lane) has failed, and may do better after a pause. */
static void repeat_later(ph_otlp *otlp, struct ph__otlp_lane *lane, const struct ph__otlp_outcome *outcome,
                         bool stop) {
    struct ph__otlp_transfer *transfer = &lane->transfer;
    const uint64_t now_ns = ph__time_ns(CLOCK_MONOTONIC);
    const uint64_t pause_ns = outcome->pause_ns ? outcome->pause_ns : jitter(transfer->backoff_ns);

    snprintf(transfer->trouble, sizeof transfer->trouble, "%s", outcome->reason);
    transfer->retry_ns = now_ns + pause_ns;
    transfer->backoff_ns += transfer->backoff_ns / 2;
    if (transfer->backoff_ns > BACKOFF_LONGEST_NS)
        transfer->backoff_ns = BACKOFF_LONGEST_NS;
    /* There is no sense in a pause at whose end it is too late. */
    if (transfer->retry_ns >= limit_ns(otlp, transfer, stop))
        request_finish(otlp, lane, transfer->request->items, outcome->reason);
}

/* Sees to the transfers that curl is done with. */
static void transfers_end(ph_otlp *otlp, bool stop) {
    struct ph__otlp_outcome outcome;
    const CURLMsg *message;
    int left = 0;

    while ((message = curl_multi_info_read(otlp->multi, &left)) != NULL) {
        struct ph__otlp_lane *lane = NULL;
        if (message->msg != CURLMSG_DONE ||
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &lane) != CURLE_OK || !lane)
            continue;
        ph__otlp_transfer_end(&lane->transfer, otlp->multi, message->data.result, &outcome);
        if (outcome.verdict == PH__OTLP_REPEAT)
            repeat_later(otlp, lane, &outcome, stop);
        else if (outcome.verdict == PH__OTLP_REFUSED)
            request_finish(otlp, lane, lane->transfer.request->items, outcome.reason);
        else
            request_finish(otlp, lane, outcome.rejected, outcome.reason);
    }
}

static bool is_idle(const ph_otlp *otlp) {
    for (size_t i = 0; i < PH__OTLP_SIGNALS; i++)
        if (otlp->lanes[i].transfer.request)
            return false;
    return true;
}

/* How long there is nothing to do but to wait for curl's sockets: 0 when there is something. */
static uint64_t sleep_ns(ph_otlp *otlp, bool stop) {
    const uint64_t now_ns = ph__time_ns(CLOCK_MONOTONIC);

    if (stop && is_idle(otlp))
        return 0;
    pthread_mutex_lock(&otlp->lock);
    uint64_t next_ns = ph__otlp_next_ns(otlp);
    for (size_t i = 0; i < PH__OTLP_SIGNALS; i++) {
        const struct ph__otlp_lane *lane = &otlp->lanes[i];
        if (!lane->transfer.request && lane->first)
            next_ns = 0;
        else if (lane->transfer.request && !lane->transfer.active && lane->transfer.retry_ns < next_ns)
            next_ns = lane->transfer.retry_ns;
    }
    pthread_mutex_unlock(&otlp->lock);
    if (stop && otlp->stop_ns < next_ns)
        next_ns = otlp->stop_ns;
    if (next_ns <= now_ns)
        return 0;
    return next_ns - now_ns < SLEEP_LONGEST_NS ? next_ns - now_ns : SLEEP_LONGEST_NS;
}

/* The time is up: what is left is lost. */
static void abandon(ph_otlp *otlp) {
    for (size_t i = 0; i < PH__OTLP_SIGNALS; i++) {
        struct ph__otlp_lane *lane = &otlp->lanes[i];
        struct ph__otlp_transfer *transfer = &lane->transfer;
        const char *reason = transfer->request ? "no answer in time" : "no time was left to send";

        if (*transfer->trouble)
            reason = transfer->trouble;
        if (transfer->active)
            curl_multi_remove_handle(otlp->multi, transfer->easy);
        transfer->active = false;
        if (transfer->request)
            request_finish(otlp, lane, transfer->request->items, reason);
        pthread_mutex_lock(&otlp->lock);
        ph__otlp_lane_abandon(otlp, lane, reason);
        pthread_mutex_unlock(&otlp->lock);
    }
    /* Also for flushes that wait behind the one under way. */
    pthread_mutex_lock(&otlp->lock);
    otlp->gone = true;
    pthread_cond_broadcast(&otlp->flushed);
    pthread_mutex_unlock(&otlp->lock);
}

/* Does all that can be done now. False at the end. */
static bool step(ph_otlp *otlp, bool *stop) {
    const uint64_t now_ns = ph__time_ns(CLOCK_MONOTONIC);
    int running = 0;

    pthread_mutex_lock(&otlp->lock);
    const struct ph__otlp_round round = ph__otlp_round_begin(otlp, now_ns);
    pthread_mutex_unlock(&otlp->lock);
    if (round.metrics)
        ph__otlp_metrics_take(otlp);
    pthread_mutex_lock(&otlp->lock);
    ph__otlp_collect(otlp, &round);
    pthread_mutex_unlock(&otlp->lock);
    *stop = round.stop;
    if (*stop && now_ns >= otlp->stop_ns)
        return false;
    for (size_t i = 0; i < PH__OTLP_SIGNALS; i++)
        lane_step(otlp, &otlp->lanes[i], now_ns, *stop);
    if (*stop && is_idle(otlp))
        return false;
    curl_multi_perform(otlp->multi, &running);
    transfers_end(otlp, *stop);
    pthread_mutex_lock(&otlp->lock);
    ph__otlp_flush_settle(otlp);
    pthread_mutex_unlock(&otlp->lock);
    ph__otlp_tell(otlp, now_ns, false);
    return true;
}

void *ph__otlp_send(void *context) {
    const struct timespec pause = {.tv_nsec = POLL_FAILED_NS};
    ph_otlp *otlp = context;
    bool stop = false;

    while (step(otlp, &stop)) {
        /* Rounded up, or it would wake a moment too early, again and again. */
        const uint64_t ms = (sleep_ns(otlp, stop) + 999999) / 1000000;
        if (curl_multi_poll(otlp->multi, NULL, 0, (int)ms, NULL) != CURLM_OK)
            ph__system.nanosleep(&pause, NULL);
    }
    abandon(otlp);
    return NULL;
}
