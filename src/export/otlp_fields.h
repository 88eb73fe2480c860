/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The messages of OTLP, as far as they are written: numbers and names of fields, as
 * https://github.com/open-telemetry/opentelemetry-proto has them below opentelemetry/proto/ since version
 * 1.5.0, in the file that stands with each message. Names in JSON are those of the files in lowerCamelCase.
 */
#ifndef PH_EXPORT_OTLP_FIELDS_H
#define PH_EXPORT_OTLP_FIELDS_H

#include "export/otlp_writer.h"

/* common/v1/common.proto: AnyValue, KeyValue, InstrumentationScope. */
#define ANY_STRING PH__OTLP_FIELD(1, "stringValue")
#define ANY_BOOL PH__OTLP_FIELD(2, "boolValue")
#define ANY_INT PH__OTLP_FIELD(3, "intValue")
#define ANY_DOUBLE PH__OTLP_FIELD(4, "doubleValue")
#define ANY_BYTES PH__OTLP_FIELD(7, "bytesValue")
#define PAIR_KEY PH__OTLP_FIELD(1, "key")
#define PAIR_VALUE PH__OTLP_FIELD(2, "value")
#define SCOPE_NAME PH__OTLP_FIELD(1, "name")
#define SCOPE_VERSION PH__OTLP_FIELD(2, "version")

/* resource/v1/resource.proto: Resource. */
#define RESOURCE_ATTRIBUTES PH__OTLP_FIELD(1, "attributes")

/* TracesData, LogsData and MetricsData, and the requests of collector/, which have the same one field; then
 * ResourceSpans and ScopeSpans, and their siblings, whose fields have the same numbers: trace/v1/trace.proto,
 * logs/v1/logs.proto, metrics/v1/metrics.proto. */
#define DATA_RESOURCE_SPANS PH__OTLP_FIELD(1, "resourceSpans")
#define DATA_RESOURCE_LOGS PH__OTLP_FIELD(1, "resourceLogs")
#define DATA_RESOURCE_METRICS PH__OTLP_FIELD(1, "resourceMetrics")
#define OF_RESOURCE_RESOURCE PH__OTLP_FIELD(1, "resource")
#define OF_RESOURCE_SCOPE_SPANS PH__OTLP_FIELD(2, "scopeSpans")
#define OF_RESOURCE_SCOPE_LOGS PH__OTLP_FIELD(2, "scopeLogs")
#define OF_RESOURCE_SCOPE_METRICS PH__OTLP_FIELD(2, "scopeMetrics")
#define OF_RESOURCE_SCHEMA_URL PH__OTLP_FIELD(3, "schemaUrl")
#define OF_SCOPE_SCOPE PH__OTLP_FIELD(1, "scope")
#define OF_SCOPE_SPANS PH__OTLP_FIELD(2, "spans")
#define OF_SCOPE_LOG_RECORDS PH__OTLP_FIELD(2, "logRecords")
#define OF_SCOPE_METRICS PH__OTLP_FIELD(2, "metrics")
#define OF_SCOPE_SCHEMA_URL PH__OTLP_FIELD(3, "schemaUrl")

/* trace/v1/trace.proto: Span, Span.Event, Status. */
#define SPAN_TRACE_ID PH__OTLP_FIELD(1, "traceId")
#define SPAN_SPAN_ID PH__OTLP_FIELD(2, "spanId")
#define SPAN_TRACE_STATE PH__OTLP_FIELD(3, "traceState")
#define SPAN_PARENT_SPAN_ID PH__OTLP_FIELD(4, "parentSpanId")
#define SPAN_NAME PH__OTLP_FIELD(5, "name")
#define SPAN_KIND PH__OTLP_FIELD(6, "kind")
#define SPAN_START_TIME PH__OTLP_FIELD(7, "startTimeUnixNano")
#define SPAN_END_TIME PH__OTLP_FIELD(8, "endTimeUnixNano")
#define SPAN_ATTRIBUTES PH__OTLP_FIELD(9, "attributes")
#define SPAN_DROPPED_ATTRIBUTES PH__OTLP_FIELD(10, "droppedAttributesCount")
#define SPAN_EVENTS PH__OTLP_FIELD(11, "events")
#define SPAN_DROPPED_EVENTS PH__OTLP_FIELD(12, "droppedEventsCount")
#define SPAN_STATUS PH__OTLP_FIELD(15, "status")
#define SPAN_FLAGS PH__OTLP_FIELD(16, "flags")
#define EVENT_TIME PH__OTLP_FIELD(1, "timeUnixNano")
#define EVENT_NAME PH__OTLP_FIELD(2, "name")
#define EVENT_ATTRIBUTES PH__OTLP_FIELD(3, "attributes")
#define EVENT_DROPPED_ATTRIBUTES PH__OTLP_FIELD(4, "droppedAttributesCount")
#define STATUS_MESSAGE PH__OTLP_FIELD(2, "message")
#define STATUS_CODE PH__OTLP_FIELD(3, "code")
#define SPAN_KIND_INTERNAL 1u
#define STATUS_CODE_ERROR 2u

/* SpanFlags of the same file: the low byte is that of W3C Trace Context, which LogRecord.flags has too. */
#define FLAG_SAMPLED 0x01u
#define FLAG_HAS_IS_REMOTE 0x100u
#define FLAG_IS_REMOTE 0x200u

/* logs/v1/logs.proto: LogRecord. */
#define LOG_TIME PH__OTLP_FIELD(1, "timeUnixNano")
#define LOG_SEVERITY_NUMBER PH__OTLP_FIELD(2, "severityNumber")
#define LOG_SEVERITY_TEXT PH__OTLP_FIELD(3, "severityText")
#define LOG_BODY PH__OTLP_FIELD(5, "body")
#define LOG_ATTRIBUTES PH__OTLP_FIELD(6, "attributes")
#define LOG_DROPPED_ATTRIBUTES PH__OTLP_FIELD(7, "droppedAttributesCount")
#define LOG_FLAGS PH__OTLP_FIELD(8, "flags")
#define LOG_TRACE_ID PH__OTLP_FIELD(9, "traceId")
#define LOG_SPAN_ID PH__OTLP_FIELD(10, "spanId")
#define LOG_OBSERVED_TIME PH__OTLP_FIELD(11, "observedTimeUnixNano")
#define LOG_EVENT_NAME PH__OTLP_FIELD(12, "eventName")

/* metrics/v1/metrics.proto: Metric; Gauge, Sum and Histogram; NumberDataPoint and HistogramDataPoint. */
#define METRIC_NAME PH__OTLP_FIELD(1, "name")
#define METRIC_DESCRIPTION PH__OTLP_FIELD(2, "description")
#define METRIC_UNIT PH__OTLP_FIELD(3, "unit")
#define METRIC_GAUGE PH__OTLP_FIELD(5, "gauge")
#define METRIC_SUM PH__OTLP_FIELD(7, "sum")
#define METRIC_HISTOGRAM PH__OTLP_FIELD(9, "histogram")
#define DATA_POINTS PH__OTLP_FIELD(1, "dataPoints")
#define DATA_TEMPORALITY PH__OTLP_FIELD(2, "aggregationTemporality")
#define DATA_IS_MONOTONIC PH__OTLP_FIELD(3, "isMonotonic")
#define TEMPORALITY_CUMULATIVE 2u
#define POINT_START_TIME PH__OTLP_FIELD(2, "startTimeUnixNano")
#define POINT_TIME PH__OTLP_FIELD(3, "timeUnixNano")
#define POINT_AS_DOUBLE PH__OTLP_FIELD(4, "asDouble")
#define POINT_AS_INT PH__OTLP_FIELD(6, "asInt")
#define POINT_ATTRIBUTES PH__OTLP_FIELD(7, "attributes")
#define HISTOGRAM_COUNT PH__OTLP_FIELD(4, "count")
#define HISTOGRAM_SUM PH__OTLP_FIELD(5, "sum")
#define HISTOGRAM_BUCKET_COUNTS PH__OTLP_FIELD(6, "bucketCounts")
#define HISTOGRAM_EXPLICIT_BOUNDS PH__OTLP_FIELD(7, "explicitBounds")
#define HISTOGRAM_ATTRIBUTES PH__OTLP_FIELD(9, "attributes")

#endif
