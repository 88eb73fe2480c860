/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Reads the trace out of the page: the chunks that html.c has written, into columns. A page whose process was killed
 * lacks the end of its last chunk, and the item `end`. */

/* ph_span_kind, in its order. */
const KINDS = ['host', 'call', 'host function', 'guest', 'user', 'function', 'system call', 'async'];
const HOST = 0;
const CALL = 1;
const HOST_FUNCTION = 2;
const GUEST = 3;
const FUNCTION = 5;
const SYSTEM_CALL = 6;
const ASYNC = 7;

/* ph_level, in its order. */
const LEVELS = ['off', 'error', 'warn', 'info', 'debug', 'trace'];

/* The items of one chunk. Of one that was cut off, all whole lines. */
function itemsOf(text) {
    try {
        return JSON.parse(text);
    } catch {
        const lines = text.slice(0, Math.max(text.lastIndexOf('\n'), 0)).replace(/,\s*$/, '');
        try {
            return JSON.parse(lines + ']');
        } catch {
            return [];
        }
    }
}

/* A name as pinhole's text shows it. */
function labelOf(kind, name) {
    const text = shownText(name) || '(unnamed)';
    if (kind === SYSTEM_CALL) return 'syscall ' + text;
    if (kind === FUNCTION) return text + '()';
    return kind === ASYNC ? text + ' (async)' : text;
}

/* Labels, each once, with the kind of the first span that has it. */
class Labels {
    constructor() {
        this.texts = [];
        this.kinds = [];
        this.numbers = new Map();
    }

    numberOf(kind, name) {
        const label = labelOf(kind, name);
        let number = this.numbers.get(label);
        if (number === undefined) {
            number = this.texts.length;
            this.texts.push(label);
            this.kinds.push(kind);
            this.numbers.set(label, number);
        }
        return number;
    }
}

function readItems(chunks) {
    const read = { zero: 0n, version: '', spans: [], events: [], counters: [], end: null, texts: [''] };
    const lists = { s: read.spans, v: read.events, c: read.counters };
    for (const chunk of chunks) {
        for (const item of itemsOf(chunk.textContent)) {
            if (typeof item === 'string') read.texts.push(item);
            else if (lists[item[0]]) lists[item[0]].push(item);
            else if (item[0] === 'zero') Object.assign(read, { zero: BigInt(item[1]), version: item[2] || '' });
            else if (item[0] === 'end') read.end = item;
        }
    }
    return read;
}

/* Numbers of sandboxes, in order, and the index of each. */
function sandboxesOf(read) {
    const numbers = new Set();
    for (const list of [read.spans, read.events, read.counters]) for (const item of list) numbers.add(item[1]);
    const sorted = [...numbers].sort((a, b) => a - b);
    return { sorted, indexes: new Map(sorted.map((number, index) => [number, index])) };
}

function spansOf(read, sandboxes, labels) {
    const items = read.spans;
    const count = items.length;
    const spans = {
        count,
        sandbox: new Int32Array(count),
        id: new Float64Array(count),
        parentId: new Float64Array(count),
        parent: new Int32Array(count).fill(-1),
        kind: new Uint8Array(count),
        level: new Uint8Array(count),
        label: new Int32Array(count),
        start: new Float64Array(count),
        end: new Float64Array(count),
        failed: new Uint8Array(count),
        unfinished: new Uint8Array(count),
        extras: new Array(count),
    };
    spans.indexes = new Map();
    items.forEach((item, i) => {
        const [, sandbox, id, parent, kind, level, name, start, duration, extras] = item;
        spans.sandbox[i] = sandboxes.indexes.get(sandbox);
        spans.id[i] = id;
        spans.parentId[i] = parent;
        spans.kind[i] = kind;
        spans.level[i] = level;
        spans.label[i] = labels.numberOf(kind, textOf(read, name));
        spans.start[i] = start;
        spans.end[i] = start + duration;
        spans.failed[i] = extras && extras.s ? 1 : 0;
        spans.unfinished[i] = extras && extras.u ? 1 : 0;
        spans.extras[i] = extras || null;
        spans.indexes.set(id, i);
    });
    for (let i = 0; i < count; i++) {
        const parent = spans.indexes.get(spans.parentId[i]);
        if (parent !== undefined && parent !== i) spans.parent[i] = parent;
    }
    return spans;
}

function textOf(read, reference) {
    return typeof reference === 'number' ? read.texts[reference] || '' : reference;
}

function eventsOf(read, sandboxes) {
    const events = read.events.map((item) => ({
        sandbox: sandboxes.indexes.get(item[1]),
        span: item[2],
        level: item[3],
        name: textOf(read, item[4]),
        time: item[5],
        extras: item[6] || null,
    }));
    return events.sort((a, b) => a.time - b.time);
}

function countersOf(read, sandboxes) {
    const counters = read.counters.map((item) => ({
        sandbox: sandboxes.indexes.get(item[1]),
        name: textOf(read, item[3]),
        time: item[4],
        value: item[5],
    }));
    return counters.sort((a, b) => a.time - b.time);
}

function boundsOf(trace) {
    let from = Infinity;
    let to = -Infinity;
    for (let i = 0; i < trace.spans.count; i++) {
        from = Math.min(from, trace.spans.start[i]);
        to = Math.max(to, trace.spans.end[i]);
    }
    for (const list of [trace.events, trace.counters]) {
        for (const item of list) {
            from = Math.min(from, item.time);
            to = Math.max(to, item.time);
        }
    }
    return from <= to ? { from, to: Math.max(to, from + 1) } : { from: 0, to: 1 };
}

function readTrace(chunks) {
    const read = readItems(chunks);
    const sandboxes = sandboxesOf(read);
    const labels = new Labels();
    const trace = {
        zero: read.zero,
        version: read.version,
        sandboxes: sandboxes.sorted,
        labels,
        spans: spansOf(read, sandboxes, labels),
        events: eventsOf(read, sandboxes),
        counters: countersOf(read, sandboxes),
        complete: read.end !== null,
        left: read.end
            ? { spans: read.end[1], events: read.end[2], counters: read.end[3] }
            : { spans: 0, events: 0, counters: 0 },
        text: (reference) => textOf(read, reference),
    };
    trace.bounds = boundsOf(trace);
    return trace;
}

/* What an event is called where there is little room. */
function eventLabel(event) {
    return shownText((event.extras && event.extras.m) || event.name) || '(unnamed)';
}
