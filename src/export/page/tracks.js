/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* From spans to rows: how they nest, what time is their own, and which row of which track each is drawn in. In a row no
 * two overlap, so that what is visible is found by binary search. */

/* The first index in [from, to) for which (test) holds; it holds for all behind that too. */
function firstIndex(from, to, test) {
    while (from < to) {
        const middle = (from + to) >>> 1;
        if (test(middle)) to = middle;
        else from = middle + 1;
    }
    return from;
}

/* How many spans of one pixel are looked at for the one that is meant. */
const LOOKS_MOST = 64;

/* A row of a track: indexes of spans by time. */
class Row {
    constructor(spans) {
        this.spans = spans;
        this.list = [];
        this.lit = null;
    }

    /* How many before each index have failed. */
    finish() {
        this.list = Int32Array.from(this.list);
        this.failures = this.countsOf((span) => this.spans.failed[span] || this.spans.unfinished[span]);
    }

    countsOf(test) {
        const counts = new Int32Array(this.list.length + 1);
        for (let i = 0; i < this.list.length; i++) counts[i + 1] = counts[i] + (test(this.list[i]) ? 1 : 0);
        return counts;
    }

    firstEndingAt(time) {
        return firstIndex(0, this.list.length, (i) => this.spans.end[this.list[i]] >= time);
    }

    firstStartingAt(time, from) {
        return firstIndex(from, this.list.length, (i) => this.spans.start[this.list[i]] >= time);
    }

    positionOf(span) {
        let i = this.firstStartingAt(this.spans.start[span], 0);
        while (i < this.list.length && this.list[i] !== span) i++;
        return i;
    }

    /* The span at (time), or the nearest within (slack); -1 when there is none. */
    spanAt(time, slack) {
        let best = -1;
        let distance = Infinity;
        const first = this.firstEndingAt(time - slack);
        for (let i = first; i < Math.min(first + LOOKS_MOST, this.list.length); i++) {
            const span = this.list[i];
            if (this.spans.start[span] > time + slack) break;
            const off = Math.max(this.spans.start[span] - time, time - this.spans.end[span], 0);
            if (off < distance) {
                best = span;
                distance = off;
            }
            if (off === 0) break;
        }
        return best;
    }
}

/* Parents come before their children. */
function orderOf(spans) {
    const order = new Int32Array(spans.count).map((_, i) => i);
    return order.sort(
        (a, b) => spans.start[a] - spans.start[b] || spans.end[b] - spans.end[a] || spans.id[a] - spans.id[b],
    );
}

/* Whether (span) cannot lie within (top), the span that was open before it. */
function isBeyond(spans, top, span) {
    if (spans.parent[span] === top) return false;
    return spans.end[top] < spans.end[span] || spans.end[top] <= spans.start[span];
}

/* Parents, as far as they are in the page; of those that are not, the span that is around in time. */
function nest(spans, order) {
    const stacks = [];
    const around = Int32Array.from(spans.parent);
    for (const span of order) {
        if (spans.kind[span] === ASYNC) continue;
        const stack = (stacks[spans.sandbox[span]] ||= []);
        while (stack.length && isBeyond(spans, stack[stack.length - 1], span)) stack.pop();
        if (around[span] < 0 && spans.parentId[span] && stack.length) around[span] = stack[stack.length - 1];
        stack.push(span);
    }
    return around;
}

function isHostKind(kind) {
    return kind <= HOST_FUNCTION;
}

/* Depths on the tracks of host and guest, and self times. */
function measure(spans, order) {
    spans.hostDepth = new Int32Array(spans.count);
    spans.guestDepth = new Int32Array(spans.count);
    spans.self = new Float64Array(spans.count);
    spans.children = new Int32Array(spans.count);
    for (const span of order) {
        spans.self[span] += spans.end[span] - spans.start[span];
        const parent = spans.around[span];
        if (parent < 0) continue;
        spans.children[parent]++;
        if (spans.kind[span] === ASYNC) continue;
        const host = isHostKind(spans.kind[parent]);
        spans.hostDepth[span] = spans.hostDepth[parent] + (host ? 1 : 0);
        spans.guestDepth[span] = spans.guestDepth[parent] + (host ? 0 : 1);
        spans.self[parent] -= spans.end[span] - spans.start[span];
    }
    for (let span = 0; span < spans.count; span++) spans.self[span] = Math.max(spans.self[span], 0);
}

function putIntoRow(spans, track, depth, span) {
    while (track.rows.length <= depth) track.rows.push(new Row(spans));
    track.rows[depth].list.push(span);
    spans.row[span] = track.rows[depth];
}

/* Asynchronous spans overlap: each goes to the first row that is free. */
const ASYNC_ROWS_MOST = 1024;

function putAsync(spans, track, span) {
    const { start, end } = spans;
    let depth = 0;
    while (depth < track.ends.length && track.ends[depth] > start[span] && depth < ASYNC_ROWS_MOST) depth++;
    track.ends[depth] = end[span];
    putIntoRow(spans, track, depth, span);
}

function emptyGroup(number) {
    return {
        number,
        host: { name: 'host', rows: [] },
        guest: { name: 'guest', rows: [] },
        async: { name: 'async', rows: [], ends: [] },
        events: [],
        counters: new Map(),
    };
}

/* For each sandbox its tracks, events and counters. */
function groupTracks(trace) {
    const { spans } = trace;
    spans.order = orderOf(spans);
    spans.row = new Array(spans.count);
    spans.around = nest(spans, spans.order);
    measure(spans, spans.order);
    const groups = trace.sandboxes.map(emptyGroup);
    for (const span of spans.order) {
        const group = groups[spans.sandbox[span]];
        if (spans.kind[span] === ASYNC) putAsync(spans, group.async, span);
        else if (isHostKind(spans.kind[span])) putIntoRow(spans, group.host, spans.hostDepth[span], span);
        else putIntoRow(spans, group.guest, spans.guestDepth[span], span);
    }
    trace.events.forEach((event, index) => groups[event.sandbox].events.push(index));
    for (const counter of trace.counters) {
        const { counters } = groups[counter.sandbox];
        if (!counters.has(counter.name)) counters.set(counter.name, []);
        counters.get(counter.name).push(counter);
    }
    for (const group of groups)
        for (const track of [group.host, group.guest, group.async]) for (const row of track.rows) row.finish();
    return groups;
}
