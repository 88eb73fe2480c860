/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * Sinks in the formats of other people's tools, for a tracer (trace.h): link with -lpinhole-export.
 *
 * Memory does not grow with the trace: each streams, or adds up in tables of a bounded size. What the file
 * holds when the process was killed is said with each format, and in docs/exporting.md. As the sinks of
 * trace.h, they tell nobody of a failed write: ferror(file) does.
 */
#ifndef PINHOLE_EXPORT_H
#define PINHOLE_EXPORT_H

#include <pinhole/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Fills (sink) with one that writes Chrome's trace events, which Perfetto's and Chrome's viewers open: an
 * array of JSON objects, one a line. Times are microseconds with three decimals since the sink was opened, so
 * that nanoseconds survive in a reader's doubles; the first object says when that was. A process killed
 * leaves an array without its end, which those viewers read. (options) may be NULL. PH_E_ARGUMENT or
 * PH_E_MEMORY.
 */
PH_API ph_status ph_chrome_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error);

/**
 * Fills (sink) with one that writes folded stacks, the input of flamegraph.pl: `sandbox 1;call f;guest f N`
 * is a line, N the time in nanoseconds in which that was the innermost span, over all times that it was so.
 * Names are as the text sink has them, at most 255 bytes of each; semicolons and control characters in them
 * are replaced. Asynchronous spans, events and counters are left out. At most 65,536 stacks are kept; the
 * time of the rest counts for the stack `[other]` of its sandbox. All is written when the sink is closed: a
 * process killed leaves an empty file. (options) may be NULL. PH_E_ARGUMENT or PH_E_MEMORY.
 */
PH_API ph_status ph_folded_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error);

/**
 * Fills (sink) with one that writes a file for speedscope.app with a profile for each sandbox: the stacks and
 * times of ph_folded_sink_open, names as they are. A process killed leaves an empty file here too. (options)
 * may be NULL. PH_E_ARGUMENT or PH_E_MEMORY.
 */
PH_API ph_status ph_speedscope_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error);

/**
 * Fills (sink) with one that writes the Common Trace Format, version 1.8, which babeltrace2 and Trace Compass
 * read: to (folder), which is made, with two files. `metadata` is there when this returns, and says all about
 * `stream`, to which whole packets of 4 KiB are added, when one is full and when the tracer flushes; one for
 * an event that is longer is a multiple of that. So what a killed process leaves can be read, and lacks at
 * most the packet under way.
 *
 * A span is an event at its end. Events are in the order in which they came; one that is earlier than the one
 * before it gets that one's time, and its fields have its own. Names are cut to 4 KiB and texts to 64 KiB; a
 * NUL in them becomes U+FFFD. What the tracer lost is counted in the packets (events_discarded), as at least
 * one where nobody knows how much it was, and so are the events of a packet that could not be written.
 *
 * PH_E_FILE when (folder) is not empty, or it or its files cannot be made, PH_E_ARGUMENT or PH_E_MEMORY. It
 * tells nobody of a failed write, but for the count in the packets that follow.
 */
PH_API ph_status ph_ctf_sink_open(const char *folder, ph_sink *sink, ph_error *error);

/**
 * Fills (sink) with one that writes Perfetto's own format, a stream of its TracePacket in protocol buffers.
 * Times are nanoseconds since 1970. A sandbox is a process, with a track of the host and one of the guest;
 * asynchronous spans and counters have tracks of their own. What the sink says of a span beside its fields is
 * in a dictionary "pinhole": `id`, `parent`, `status` and more.
 *
 * It takes about 3 MiB when it is opened, as far as they are used, and no more later. Begins of spans that
 * may have begun together with a parent that is still open wait for that, at most one for each such parent
 * but for those that begin in one nanosecond, and are written with the next flush at the latest. A process
 * killed leaves whole packets but for the last; what is missing is what was not yet written out, up to 128
 * KiB and those begins, whose ends a reader ignores. (options) may be NULL. PH_E_ARGUMENT or PH_E_MEMORY.
 */
PH_API ph_status ph_perfetto_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error);

/**
 * Fills (sink) with one that writes a page in HTML, complete in itself, that shows the trace in a browser: a
 * line of time and a flame graph to zoom into, search, the fields of a span, and totals for each name. It
 * loads nothing, from nowhere. The first 100,000 spans are in it, and as many events and values of counters,
 * while the file is below 64 MiB; and up to 1,000 calls, starts and the like that end after that, since all
 * else lies in them. It says how many more there were. A process killed leaves a page with all but the last
 * few KiB. It takes about 250 KiB of memory. (options) may be NULL. PH_E_ARGUMENT or PH_E_MEMORY.
 */
PH_API ph_status ph_html_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error);

#ifdef __cplusplus
}
#endif

#endif
