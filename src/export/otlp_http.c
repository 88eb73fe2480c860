/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * One request of OTLP over HTTP, by libcurl, and what its outcome means (https://opentelemetry.io/docs/specs/
 * otlp/#otlphttp). Only the exporter's thread comes here, but for the making and the freeing. It follows no
 * redirect, speaks nothing but http and https, and believes nothing of what comes back but a status.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/system.h"
#include "base/time.h"
#include "export/otlp_exporter.h"

#define ANSWER_READ_MAX 65536u /* an answer that is longer is not read to its end */
#define PAUSE_LONGEST_S 86400
#define LONGEST_MS 2147483647ull /* what curl takes */

/* ---- what comes back ----------------------------------------------------------------------------------- */

static size_t keep_answer(char *bytes, size_t one, size_t count, void *context) {
    struct ph__otlp_transfer *transfer = context;
    const size_t size = one * count;
    const size_t room = sizeof transfer->answer - transfer->answer_size;
    const size_t kept = size < room ? size : room;

    memcpy(transfer->answer + transfer->answer_size, bytes, kept);
    transfer->answer_size += kept;
    transfer->answer_read += size;
    return transfer->answer_read <= ANSWER_READ_MAX ? size : 0;
}

static bool is_protobuf(const struct ph__otlp_transfer *transfer) {
    static const char type[] = "application/x-protobuf";
    const char *said = NULL;

    return curl_easy_getinfo(transfer->easy, CURLINFO_CONTENT_TYPE, &said) == CURLE_OK && said &&
           strncasecmp(said, type, sizeof type - 1) == 0;
}

/* How long the collector asks to wait: a number of seconds or a date, which curl has turned into one. */
static uint64_t retry_after(const struct ph__otlp_transfer *transfer) {
    curl_off_t untrusted = 0;

    if (curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &untrusted) != CURLE_OK || untrusted <= 0)
        return 0;
    return (uint64_t)(untrusted < PAUSE_LONGEST_S ? untrusted : PAUSE_LONGEST_S) * PH__SECOND_NS;
}

static void reason_set(struct ph__otlp_outcome *outcome, const char *what,
                       const struct ph__otlp_answer *answer) {
    snprintf(outcome->reason, sizeof outcome->reason, "%s%s%.*s", what, answer->message ? ": " : "",
             (int)answer->message_size, answer->message ? answer->message : "");
}

static void judge_success(const struct ph__otlp_transfer *transfer, struct ph__otlp_outcome *outcome) {
    struct ph__otlp_answer answer = {0};

    outcome->verdict = PH__OTLP_TAKEN;
    if (is_protobuf(transfer))
        ph__otlp_answer_read(transfer->answer, transfer->answer_size, &answer);
    outcome->rejected =
        answer.rejected < transfer->request->items ? answer.rejected : transfer->request->items;
    if (outcome->rejected || answer.message)
        reason_set(outcome, outcome->rejected ? "rejected by the collector" : "the collector says", &answer);
}

static void judge_status(const struct ph__otlp_transfer *transfer, long status,
                         struct ph__otlp_outcome *outcome) {
    struct ph__otlp_answer answer = {0};
    char what[96];

    if (status < 300) {
        judge_success(transfer, outcome);
        return;
    }
    const bool later = status == 429 || (status >= 502 && status <= 504);
    outcome->verdict = later ? PH__OTLP_REPEAT : PH__OTLP_REFUSED;
    outcome->pause_ns = retry_after(transfer);
    if (is_protobuf(transfer))
        ph__otlp_failure_read(transfer->answer, transfer->answer_size, &answer);
    snprintf(what, sizeof what, "HTTP status %ld%s", status,
             status < 400 ? ", a redirect, which is not followed" : "");
    reason_set(outcome, what, &answer);
}

/* Whether another attempt may do better than one that ended with (code) and without a status. */
static bool is_passing(CURLcode code) {
    switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return true;
    default:
        return false;
    }
}

static void judge_failure(const struct ph__otlp_transfer *transfer, CURLcode code,
                          struct ph__otlp_outcome *outcome) {
    long system_error = 0;
    const char *reason = *transfer->error ? transfer->error : curl_easy_strerror(code);

    outcome->verdict = is_passing(code) ? PH__OTLP_REPEAT : PH__OTLP_REFUSED;
    curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &system_error);
    if (code == CURLE_COULDNT_CONNECT && system_error)
        reason = strerror((int)system_error);
    else if (code == CURLE_OPERATION_TIMEDOUT) /* in which an attempt before it has said more */
        reason = *transfer->trouble ? transfer->trouble : "no answer in time";
    snprintf(outcome->reason, sizeof outcome->reason, "%s", reason);
}

void ph__otlp_transfer_end(struct ph__otlp_transfer *transfer, CURLM *multi, CURLcode code,
                           struct ph__otlp_outcome *outcome) {
    long status = 0;

    *outcome = (struct ph__otlp_outcome){0};
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    /* Whatever happened behind the status, such as a connection cut in the middle of the answer: who said 200
     * has the items, and to send them again would double them. */
    if (status >= 200)
        judge_status(transfer, status, outcome);
    else
        judge_failure(transfer, code, outcome);
    curl_multi_remove_handle(multi, transfer->easy);
    transfer->active = false;
}

/* ---- what goes out ------------------------------------------------------------------------------------- */

bool ph__otlp_request_compress(struct ph__otlp_request *request) {
    z_stream stream = {0};

    /* 16 more than the window's 15 bits: in gzip's format. */
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    const uLong room = deflateBound(&stream, (uLong)request->size);
    uint8_t *out = malloc(room);
    stream.next_in = request->body;
    stream.avail_in = (uInt)request->size;
    stream.next_out = out;
    stream.avail_out = (uInt)room;
    const bool done = out && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    const size_t size = stream.total_out;
    deflateEnd(&stream);
    if (!done) {
        free(out);
        return false;
    }
    free(request->body);
    request->body = out;
    request->size = size;
    return true;
}

bool ph__otlp_transfer_start(struct ph__otlp_transfer *transfer, CURLM *multi, uint64_t timeout_ns) {
    CURL *easy = transfer->easy;
    /* Rounded up: 0 would be no limit. */
    uint64_t ms = timeout_ns / 1000000 + 1;

    transfer->answer_size = 0;
    transfer->answer_read = 0;
    transfer->error[0] = 0;
    ms = ms < LONGEST_MS ? ms : LONGEST_MS;
    transfer->active = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                        (curl_off_t)transfer->request->size) == CURLE_OK &&
                       curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer->request->body) == CURLE_OK &&
                       curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)ms) == CURLE_OK &&
                       curl_multi_add_handle(multi, easy) == CURLM_OK;
    return transfer->active;
}

/* ---- the handle ---------------------------------------------------------------------------------------- */

static bool header_add(struct curl_slist **list, const char *name, const char *value) {
    char *line = NULL;

    /* To curl, "NAME:" is a header not to send, and "NAME;" one without a value. */
    if (asprintf(&line, *value ? "%s: %s" : "%s;", name, value) < 0)
        return false;
    struct curl_slist *more = curl_slist_append(*list, line);
    free(line);
    if (!more)
        return false;
    *list = more;
    return true;
}

static bool headers_init(struct curl_slist **list, const struct ph__otlp_route *route) {
    bool ok = header_add(list, "Content-Type", "application/x-protobuf");

    if (route->gzip)
        ok = ok && header_add(list, "Content-Encoding", "gzip");
    for (size_t i = 0; i < route->headers.count; i++)
        ok = ok && header_add(list, route->headers.list[i].name, route->headers.list[i].value);
    /* curl would ask before it sends more than a MiB, and wait a second for an answer. */
    struct curl_slist *more = ok ? curl_slist_append(*list, "Expect:") : NULL;
    if (!more)
        return false;
    *list = more;
    return true;
}

/* A program that the host starts has no business with the collector's connection. */
static int close_on_exec(void *context, curl_socket_t socket, curlsocktype purpose) {
    (void)context;
    (void)purpose;
    ph__system.fcntl(socket, F_SETFD, FD_CLOEXEC);
    return CURL_SOCKOPT_OK;
}

static bool protocols_set(CURL *easy) {
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
#else
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS)) == CURLE_OK;
#endif
}

/* The thread has to end in time, also while a name is being looked up. */
static bool quick_exit_set(CURL *easy) {
#if LIBCURL_VERSION_NUM >= 0x075700
    return curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK;
#else
    (void)easy;
    return true;
#endif
}

static bool files_set(CURL *easy, const struct ph__otlp_route *route) {
    return (!route->certificate || curl_easy_setopt(easy, CURLOPT_CAINFO, route->certificate) == CURLE_OK) &&
           (!route->client_certificate ||
            curl_easy_setopt(easy, CURLOPT_SSLCERT, route->client_certificate) == CURLE_OK) &&
           (!route->client_key || curl_easy_setopt(easy, CURLOPT_SSLKEY, route->client_key) == CURLE_OK);
}

static bool options_set(struct ph__otlp_lane *lane, const struct ph__otlp_route *route) {
    struct ph__otlp_transfer *transfer = &lane->transfer;
    CURL *easy = transfer->easy;
    char agent[64];

    snprintf(agent, sizeof agent, "OTel-OTLP-Exporter-pinhole/%s", ph_version());
    return curl_easy_setopt(easy, CURLOPT_URL, route->url) == CURLE_OK && protocols_set(easy) &&
           curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK && quick_exit_set(easy) &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, agent) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_answer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, close_on_exec) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PRIVATE, lane) == CURLE_OK && files_set(easy, route);
}

/* The URL without what may be secret in it: a name, a password, a query. */
static void url_show(const char *whole, char *shown, size_t size) {
    static const CURLUPart secrets[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS,
                                        CURLUPART_QUERY, CURLUPART_FRAGMENT};
    CURLU *url = curl_url();
    char *text = NULL;
    bool ok = url && curl_url_set(url, CURLUPART_URL, whole, 0) == CURLUE_OK;

    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++)
        ok = ok && curl_url_set(url, secrets[i], NULL, 0) == CURLUE_OK;
    ok = ok && curl_url_get(url, CURLUPART_URL, &text, 0) == CURLUE_OK;
    snprintf(shown, size, "%s", ok ? text : "the collector");
    curl_free(text);
    curl_url_cleanup(url);
}

bool ph__otlp_transfer_init(struct ph__otlp_lane *lane, const struct ph__otlp_route *route) {
    url_show(route->url, lane->url, sizeof lane->url);
    lane->transfer.easy = curl_easy_init();
    return lane->transfer.easy && headers_init(&lane->transfer.headers, route) && options_set(lane, route);
}

void ph__otlp_transfer_free(struct ph__otlp_transfer *transfer) {
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    ph__otlp_request_free(transfer->request);
    *transfer = (struct ph__otlp_transfer){0};
}
