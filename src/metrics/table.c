/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The table of metrics (table.h). Names and units are by OpenTelemetry's conventions
 * (https://opentelemetry.io/docs/specs/semconv/general/metrics/): no unit in a name, no name that is the
 * beginning of another one with a dot behind it, words in the singular where they are a namespace.
 */
#include "metrics/table.h"

/* X(nanoseconds, seconds). Steps of 1, 2 and 5, from one microsecond to ten seconds. */
#define BOUNDS(X)                                                                                            \
    X(1000, 1e-06)                                                                                           \
    X(5000, 5e-06)                                                                                           \
    X(10000, 1e-05)                                                                                          \
    X(20000, 2e-05)                                                                                          \
    X(50000, 5e-05)                                                                                          \
    X(100000, 0.0001)                                                                                        \
    X(200000, 0.0002)                                                                                        \
    X(500000, 0.0005)                                                                                        \
    X(1000000, 0.001)                                                                                        \
    X(2000000, 0.002)                                                                                        \
    X(5000000, 0.005)                                                                                        \
    X(10000000, 0.01)                                                                                        \
    X(20000000, 0.02)                                                                                        \
    X(50000000, 0.05)                                                                                        \
    X(100000000, 0.1)                                                                                        \
    X(200000000, 0.2)                                                                                        \
    X(500000000, 0.5)                                                                                        \
    X(1000000000, 1.0)                                                                                       \
    X(2000000000, 2.0)                                                                                       \
    X(5000000000, 5.0)                                                                                       \
    X(10000000000, 10.0)

#define BOUND_NS(ns, seconds) ns,
#define BOUND(ns, seconds) seconds,
#define BOUND_TEXT(ns, seconds) #seconds,
const uint64_t ph__metric_bounds_ns[PH_METRIC_BUCKETS - 1] = {BOUNDS(BOUND_NS)};
const double ph__metric_bounds[PH_METRIC_BUCKETS - 1] = {BOUNDS(BOUND)};
const char *const ph__metric_bound_texts[PH_METRIC_BUCKETS - 1] = {BOUNDS(BOUND_TEXT)};

#define STATUS_KIND(name, number, kind, message) kind,
static const char *const statuses[] = {PH_STATUS_MAP(STATUS_KIND)};

#define EXIT_WORD(name, word) word,
static const char *const exits[] = {PH__COUNTED_EXIT_MAP(EXIT_WORD)};

static const char *const drops[PH__DROP_CAUSES] = {"ring", "queue", "budget", "nonsense"};
static const char *const signals[PH__SIGNALS] = {"traces", "logs", "metrics"};

/* Processor exceptions that ended a guest. */
#define FAULT_FIRST PH__STATUS_E_PAGE_FAULT
#define FAULTS (PH__STATUSES - FAULT_FIRST)

#define ONE NULL, NULL, 1

const struct ph__metric_family ph__metric_families[PH__METRIC_FAMILIES] = {
    {"pinhole.sandbox.creations", "{sandbox}", PH_METRIC_COUNTER, PH__CELL_CREATIONS, 0, ONE,
     "Sandboxes that were made."},
    {"pinhole.sandbox.active", "{sandbox}", PH_METRIC_GAUGE, PH__CELL_ACTIVE, 0, ONE,
     "Sandboxes that there are."},
    {"pinhole.calls", "{call}", PH_METRIC_COUNTER, PH__CELL_CALLS, 0, ONE,
     "Calls of a guest's functions that have ended."},
    {"pinhole.call.duration", "s", PH_METRIC_HISTOGRAM, PH__CELL_CALL, 0, ONE,
     "Duration of calls of a guest's functions."},
    {"pinhole.start.duration", "s", PH_METRIC_HISTOGRAM, PH__CELL_START, 0, ONE,
     "Duration of starts of guests, up to where they wait for calls."},
    {"pinhole.run.duration", "s", PH_METRIC_HISTOGRAM, PH__CELL_RUN, 0, ONE,
     "Duration of runs of whole programs."},
    {"pinhole.call.errors", "{error}", PH_METRIC_COUNTER, PH__CELL_ERRORS, 1, "error.type", &statuses[1],
     PH__STATUSES - 1, "Calls, starts and runs that failed, or were refused."},
    {"pinhole.call.interrupts", "{call}", PH_METRIC_COUNTER, PH__CELL_ERRORS, PH__STATUS_E_INTERRUPTED, ONE,
     "Calls, starts and runs that an interrupt has ended."},
    {"pinhole.call.timeouts", "{call}", PH_METRIC_COUNTER, PH__CELL_ERRORS, PH__STATUS_E_TIMED_OUT, ONE,
     "Calls, starts and runs that their time-out has ended."},
    {"pinhole.guest.faults", "{fault}", PH_METRIC_COUNTER, PH__CELL_ERRORS, FAULT_FIRST, "error.type",
     &statuses[FAULT_FIRST], FAULTS, "Processor exceptions that ended a guest."},
    {"pinhole.guest.duration", "s", PH_METRIC_HISTOGRAM, PH__CELL_GUEST, 0, ONE,
     "Processor time of the guest in each call, start and run."},
    {"pinhole.guest.exits", "{exit}", PH_METRIC_COUNTER, PH__CELL_EXITS, 0, "pinhole.exit.kind", exits,
     PH__COUNTED_EXITS, "Exits from the guest to the host."},
    {"pinhole.guest.output", "By", PH_METRIC_COUNTER, PH__CELL_OUTPUT, 0, ONE,
     "Standard output and standard error of guests, as far as it was taken."},
    {"pinhole.host_calls", "{call}", PH_METRIC_COUNTER, PH__CELL_HOST_CALLS, 0, ONE,
     "Host calls that reached their function."},
    {"pinhole.host_function.duration", "s", PH_METRIC_HISTOGRAM, PH__CELL_HOST_FUNCTION, 0, ONE,
     "Duration of host functions."},
    {"pinhole.host_function.errors", "{error}", PH_METRIC_COUNTER, PH__CELL_HOST_FUNCTION_ERRORS, 0, ONE,
     "Host calls that were answered with an error."},
    {"pinhole.restores", "{restore}", PH_METRIC_COUNTER, PH__CELL_RESTORES, 0, ONE,
     "Sandboxes that were put back to a snapshot."},
    {"pinhole.restore.duration", "s", PH_METRIC_HISTOGRAM, PH__CELL_RESTORE, 0, ONE, "Duration of restores."},
    {"pinhole.restore.pages", "{page}", PH_METRIC_COUNTER, PH__CELL_RESTORE_PAGES, 0, ONE,
     "Pages that restores have copied back."},
    {"pinhole.restore.errors", "{error}", PH_METRIC_COUNTER, PH__CELL_RESTORE_ERRORS, 0, ONE,
     "Restores that failed, or were refused."},
    {"pinhole.trace.records", "{record}", PH_METRIC_COUNTER, PH__CELL_TRACE_RECORDS, 0, ONE,
     "Trace records that were decoded."},
    {"pinhole.trace.drops", "{record}", PH_METRIC_COUNTER, PH__CELL_TRACE_DROPPED, 0, "pinhole.drop.cause",
     drops, PH__DROP_CAUSES, "Trace records that were dropped."},
    {"pinhole.trace.lost", "By", PH_METRIC_COUNTER, PH__CELL_TRACE_LOST, 0, ONE,
     "Bytes of trace records that were overwritten, dropped or nonsense."},
    {"pinhole.trace.queue.usage", "By", PH_METRIC_GAUGE, PH__CELL_TRACE_QUEUE, 0, ONE,
     "Trace that waits in queues to be decoded."},
    {"pinhole.export.sent", "{item}", PH_METRIC_COUNTER, PH__CELL_SENT, 0, "signal", signals, PH__SIGNALS,
     "Spans, log records and data points that exporters have sent."},
    {"pinhole.export.failures", "{item}", PH_METRIC_COUNTER, PH__CELL_EXPORT_FAILURES, 0, "signal", signals,
     PH__SIGNALS, "Spans, log records and data points that exporters have lost."},
};
