/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Spans and log records of OTLP (otlp_parts.h).
 */
#include <string.h>

#include "base/level.h"
#include "export/otlp_fields.h"
#include "export/otlp_parts.h"
#include "export/span_kind.h"
#include "trace/ids.h"

static void put_span_id(struct ph__otlp_writer *writer, struct ph__otlp_field field, uint64_t id) {
    uint8_t bytes[8];

    ph_trace_span_id(id, bytes);
    ph__otlp_id(writer, field, bytes, sizeof bytes);
}

static void put_count(struct ph__otlp_writer *writer, struct ph__otlp_field field, uint32_t count) {
    if (count)
        ph__otlp_u32(writer, field, count);
}

/* ---- spans --------------------------------------------------------------------------------------------- */

static void put_ids(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                    const ph_trace_span *span) {
    const bool is_remote = !span->parent && ph__id_is_set(span->remote_parent, sizeof span->remote_parent);

    ph__otlp_id(writer, SPAN_TRACE_ID, span->trace_id, sizeof span->trace_id);
    put_span_id(writer, SPAN_SPAN_ID, span->id);
    /* A part of it would be none. */
    if (span->trace_state && *span->trace_state && strlen(span->trace_state) <= limits->text_bytes)
        ph__otlp_text(writer, SPAN_TRACE_STATE, span->trace_state, strlen(span->trace_state));
    if (span->parent)
        put_span_id(writer, SPAN_PARENT_SPAN_ID, span->parent);
    else if (is_remote)
        ph__otlp_id(writer, SPAN_PARENT_SPAN_ID, span->remote_parent, sizeof span->remote_parent);
    /* What is not sampled does not come here. */
    ph__otlp_fixed32(writer, SPAN_FLAGS,
                     FLAG_SAMPLED | FLAG_HAS_IS_REMOTE | (is_remote ? FLAG_IS_REMOTE : 0));
}

/* The tree's last field says how many it dropped, which has a place of its own here. */
static size_t field_count(const ph_trace_span *span) {
    return span->dropped_fields && span->field_count ? span->field_count - 1 : span->field_count;
}

static void put_attributes(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                           const ph_trace_span *span) {
    struct ph__otlp_attributes attributes =
        ph__otlp_attributes_begin(writer, SPAN_ATTRIBUTES, limits->attributes, limits->value_bytes);

    ph__otlp_attribute_i64(&attributes, "pinhole.sandbox", (int64_t)span->sandbox);
    ph__otlp_attribute_text(&attributes, "pinhole.span.kind", ph__span_kind_name(span->kind));
    if (span->status != PH_OK)
        ph__otlp_attribute_text(&attributes, "pinhole.status", ph_status_kind(span->status));
    if (span->unfinished)
        ph__otlp_attribute_bool(&attributes, "pinhole.unfinished", true);
    ph__otlp_attributes_source(&attributes, &span->source);
    ph__otlp_attributes_fields(&attributes, span->fields, field_count(span));
    ph__otlp_attributes_end(&attributes);
    put_count(writer, SPAN_DROPPED_ATTRIBUTES, attributes.dropped + span->dropped_fields);
}

static const char *message_of(const ph_trace_span *span) {
    return span->message ? span->message : ph_status_message(span->status);
}

/* The guest has failed, and not what the host asked of it. Said once: of the host's span, and not of those
 * that were open in it too. */
static bool is_exception(const ph_trace_span *span) {
    return span->status <= PH_E_GUEST &&
           (span->kind == PH_SPAN_HOST || span->kind == PH_SPAN_CALL || span->kind == PH_SPAN_HOST_FUNCTION);
}

static void put_exception(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                          const ph_trace_span *span) {
    if (!limits->events) {
        put_count(writer, SPAN_DROPPED_EVENTS, 1);
        return;
    }
    ph__otlp_begin_list(writer, SPAN_EVENTS);
    size_t event = ph__otlp_begin_item(writer, SPAN_EVENTS);
    ph__otlp_fixed64(writer, EVENT_TIME, span->end_ns);
    ph__otlp_text(writer, EVENT_NAME, "exception", sizeof "exception" - 1);
    struct ph__otlp_attributes attributes =
        ph__otlp_attributes_begin(writer, EVENT_ATTRIBUTES, limits->event_attributes, limits->value_bytes);
    ph__otlp_attribute_text(&attributes, "exception.type", ph_status_kind(span->status));
    ph__otlp_attribute_text(&attributes, "exception.message", message_of(span));
    ph__otlp_attributes_end(&attributes);
    put_count(writer, EVENT_DROPPED_ATTRIBUTES, attributes.dropped);
    ph__otlp_end(writer, event);
    ph__otlp_end_list(writer);
}

static void put_status(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                       const ph_trace_span *span) {
    size_t status = ph__otlp_begin(writer, SPAN_STATUS);

    ph__otlp_put_text(writer, STATUS_MESSAGE, message_of(span), limits->text_bytes);
    ph__otlp_u32(writer, STATUS_CODE, STATUS_CODE_ERROR);
    ph__otlp_end(writer, status);
}

void ph__otlp_put_span(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                       const ph_trace_span *span) {
    size_t message = ph__otlp_begin_item(writer, OF_SCOPE_SPANS);

    put_ids(writer, limits, span);
    ph__otlp_put_text(writer, SPAN_NAME, span->name ? span->name : "", limits->text_bytes);
    ph__otlp_u32(writer, SPAN_KIND, SPAN_KIND_INTERNAL);
    ph__otlp_fixed64(writer, SPAN_START_TIME, span->start_ns);
    ph__otlp_fixed64(writer, SPAN_END_TIME, span->end_ns > span->start_ns ? span->end_ns : span->start_ns);
    put_attributes(writer, limits, span);
    if (is_exception(span))
        put_exception(writer, limits, span);
    if (span->status != PH_OK)
        put_status(writer, limits, span);
    ph__otlp_end(writer, message);
}

/* ---- log records --------------------------------------------------------------------------------------- */

/* SeverityNumber of logs/v1/logs.proto. */
static uint32_t severity_of(ph_level level) {
    static const uint8_t numbers[] = {
        [PH_LEVEL_ERROR] = 17, [PH_LEVEL_WARN] = 13, [PH_LEVEL_INFO] = 9,
        [PH_LEVEL_DEBUG] = 5,  [PH_LEVEL_TRACE] = 1,
    };

    return (unsigned)level < sizeof numbers ? numbers[level] : 0;
}

/* A log's text. What an event is called is no text; nor has it one. */
static void put_what(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                     const ph_trace_event *event) {
    if (event->message) {
        size_t body = ph__otlp_begin(writer, LOG_BODY);
        ph__otlp_put_text(writer, ANY_STRING, event->message, limits->text_bytes);
        ph__otlp_end(writer, body);
    } else {
        ph__otlp_put_text(writer, LOG_EVENT_NAME, event->name, limits->text_bytes);
    }
}

static void put_log_attributes(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                               const ph_trace_event *event) {
    struct ph__otlp_attributes attributes =
        ph__otlp_attributes_begin(writer, LOG_ATTRIBUTES, limits->attributes, limits->value_bytes);

    ph__otlp_attribute_i64(&attributes, "pinhole.sandbox", (int64_t)event->sandbox);
    if (event->message)
        ph__otlp_attribute_text(&attributes, "pinhole.format", event->name);
    ph__otlp_attributes_source(&attributes, &event->source);
    ph__otlp_attributes_fields(&attributes, event->fields, event->field_count);
    ph__otlp_attributes_end(&attributes);
    put_count(writer, LOG_DROPPED_ATTRIBUTES, attributes.dropped);
}

void ph__otlp_put_event(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                        const ph_trace_event *event) {
    size_t message = ph__otlp_begin_item(writer, OF_SCOPE_LOG_RECORDS);

    ph__otlp_fixed64(writer, LOG_TIME, event->time_ns);
    /* An SDK has observed what it records itself when that happened. */
    ph__otlp_fixed64(writer, LOG_OBSERVED_TIME, event->time_ns);
    ph__otlp_u32(writer, LOG_SEVERITY_NUMBER, severity_of(event->level));
    ph__otlp_put_text(writer, LOG_SEVERITY_TEXT, ph__level_name(event->level), limits->text_bytes);
    put_what(writer, limits, event);
    put_log_attributes(writer, limits, event);
    if (ph__id_is_set(event->trace_id, sizeof event->trace_id)) {
        ph__otlp_fixed32(writer, LOG_FLAGS, FLAG_SAMPLED);
        ph__otlp_id(writer, LOG_TRACE_ID, event->trace_id, sizeof event->trace_id);
        if (event->span)
            put_span_id(writer, LOG_SPAN_ID, event->span);
    }
    ph__otlp_end(writer, message);
}
