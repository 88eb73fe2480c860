/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Puts the parts together when all of the page is there, and holds what they share: the trace, the range that is seen,
 * the selection, the view. A change asks for one frame, in which what is visible is drawn. */

const VIEWS = ['timeline', 'flame', 'totals'];

/* What the trace is of: calls of roots, each name once; without one, what the guest or else the host did. */
const NAMES_MOST = 3;
const NAME_LENGTH_MOST = 60;

function rootNames(trace) {
    const { spans, labels } = trace;
    for (const kind of [CALL, GUEST, HOST]) {
        const found = new Set();
        for (const span of spans.order) {
            if (spans.kind[span] === kind && spans.around[span] < 0) found.add(labels.texts[spans.label[span]]);
            if (found.size > NAMES_MOST) break;
        }
        const names = [...found].map((name) =>
            name.length > NAME_LENGTH_MOST ? name.slice(0, NAME_LENGTH_MOST) + '…' : name,
        );
        if (names.length) return names.slice(0, NAMES_MOST).join(', ') + (names.length > NAMES_MOST ? ', …' : '');
    }
    return '';
}

class App {
    constructor(chunks) {
        this.trace = readTrace(chunks);
        this.groups = groupTracks(this.trace);
        this.selection = null;
        this.view = 'timeline';
        this.frames = 0;
        this.range = new Range(this.trace.bounds, () => this.redraw());
        this.theme = new Theme(this.trace.labels, () => this.redraw());
        this.search = new Search(this);
        this.timeline = new Timeline(this, this.groups);
        this.overview = new Overview(this);
        this.flame = new Flame(this);
        this.totals = new Totals(this);
        this.details = new Details(this);
        this.help = new Help(this);
        this.keys = new Keys(this);
        this.listen();
        this.describe();
        this.show('timeline');
    }

    listen() {
        VIEWS.forEach((view, i) => {
            const tab = byId('tab-' + view);
            tab.addEventListener('click', () => this.show(view));
            tab.addEventListener('keydown', (event) => {
                const by = { ArrowRight: 1, ArrowLeft: VIEWS.length - 1 }[event.key];
                if (!by) return;
                event.preventDefault();
                this.show(VIEWS[(i + by) % VIEWS.length]);
                byId('tab-' + this.view).focus();
            });
        });
        byId('theme').addEventListener('click', () => this.theme.toggle());
        byId('help-open').addEventListener('click', () => this.help.open());
        byId('zoom-in').addEventListener('click', () =>
            this.range.zoom(1 / ZOOM_FACTOR, this.range.from + this.range.width / 2),
        );
        byId('zoom-out').addEventListener('click', () =>
            this.range.zoom(ZOOM_FACTOR, this.range.from + this.range.width / 2),
        );
        byId('zoom-all').addEventListener('click', () => this.range.showAll());
        new ResizeObserver(() => this.redraw()).observe(byId('main'));
    }

    /* What the trace is, and what is missing in it. */
    describe() {
        const { trace } = this;
        const failed = trace.spans.failed.reduce((a, b) => a + b, 0);
        const began = trace.spans.count ? shownMoment(trace.zero, trace.bounds.from) : '';
        const names = rootNames(trace);
        const parts = [plural(trace.spans.count, 'span'), plural(trace.events.length, 'event')];
        if (trace.sandboxes.length !== 1) parts.unshift(plural(trace.sandboxes.length, 'sandbox', 'sandboxes'));
        if (failed) parts.push(this.failures(failed));
        parts.push(shownDuration(trace.bounds.to - trace.bounds.from));
        byId('summary').replaceChildren(...parts.flatMap((part, i) => (i ? [' · ', part] : [part])));
        byId('roots').textContent = names;
        byId('began').textContent = began.replace(/\.\d+ /, ' ');
        byId('version').textContent = trace.version;
        document.title = [names, byId('began').textContent, 'pinhole trace'].filter((part) => part).join(' – ');
        const left = [
            ['span', trace.left.spans],
            ['event', trace.left.events],
            ['counter value', trace.left.counters],
        ].filter(([, count]) => count > 0);
        if (left.length)
            this.notice(
                left.map(([what, count]) => plural(count, 'more ' + what)).join(', ') +
                    (left.length === 1 && left[0][1] === 1 ? ' was' : ' were') +
                    ' left out of this page. Another format has them all.',
            );
        const gaps = trace.events.filter((event) => event.name === 'trace.gap').length;
        if (gaps)
            this.notice('Records were lost in ' + plural(gaps, 'place') + ': the events trace.gap say where and why.');
        if (!trace.complete)
            this.notice(
                'This trace has no end: the process was killed, or still runs. What it had not yet written is missing.',
            );
        if (!trace.spans.count) this.notice('There are no spans in this trace.');
    }

    /* Leads from one that failed to the next. */
    failures(count) {
        const button = element('button', {
            type: 'button',
            id: 'failures',
            title: 'Go to the next one',
            textContent: shownCount(count) + ' failed',
        });
        button.addEventListener('click', () => this.search.stepThrough('failed'));
        return button;
    }

    notice(text) {
        byId('notices').append(element('p', { textContent: text }));
    }

    redraw() {
        if (this.pending) return;
        this.pending = requestAnimationFrame(() => {
            this.pending = 0;
            this.draw();
        });
    }

    draw() {
        this.frames++;
        this.overview.draw();
        if (this.view === 'timeline') this.timeline.draw();
        else if (this.view === 'flame') this.flame.draw();
        else if (this.totalsTheme !== this.theme.fills) {
            this.totalsTheme = this.theme.fills;
            this.totals.draw();
        }
        if (this.view === 'totals') this.totals.hint();
    }

    show(view, focus) {
        this.view = view;
        for (const each of VIEWS) {
            const tab = byId('tab-' + each);
            tab.setAttribute('aria-selected', String(each === view));
            tab.tabIndex = each === view ? 0 : -1;
            byId('view-' + each).hidden = each !== view;
        }
        for (const each of ['zoom-in', 'zoom-out', 'zoom-all']) byId(each).disabled = view === 'totals';
        showTip(null);
        this.totalsTheme = null;
        if (focus) this.focusView();
        this.redraw();
    }

    focusView() {
        ({ timeline: byId('timeline'), flame: byId('flame-scroll'), totals: byId('totals-scroll') })[this.view].focus({
            preventScroll: true,
        });
    }

    searched() {
        this.totalsTheme = null;
        this.redraw();
    }

    escape() {
        if (this.selection) this.select(null);
        else if (this.search.active) this.search.clear();
        else if (this.view === 'flame') this.flame.focusOn(null);
    }

    /* ---- the selection ---------------------------------------------------------------------------------- */

    /* Selects {type, index}, or nothing, and brings it into view; but for (stay), where the reader is already. */
    select(selection, { stay = false } = {}) {
        this.selection = selection && { type: selection.type, index: selection.index };
        this.selectedRow = null;
        if (selection && selection.type === 'span') {
            this.selectedRow = this.trace.spans.row[selection.index];
            this.selectedPosition = this.selectedRow.positionOf(selection.index);
        }
        this.details.show(this.selection);
        this.announce();
        if (selection && !stay && this.view === 'timeline') this.reveal();
        this.redraw();
    }

    isSelected(type, index) {
        return this.selection !== null && this.selection.type === type && this.selection.index === index;
    }

    /* Whether the selected span is one of (row), from the position (from) on and before (to). */
    isSelectedIn(row, from, to) {
        return this.selectedRow === row && this.selectedPosition >= from && this.selectedPosition < to;
    }

    bounds() {
        const { type, index } = this.selection;
        const { spans, events } = this.trace;
        return type === 'span' ? [spans.start[index], spans.end[index]] : [events[index].time, events[index].time];
    }

    reveal() {
        const [from, to] = this.bounds();
        if (to < this.range.from || from > this.range.to) this.range.reveal(from, to);
        const { timeline } = this;
        const line = this.selectedRow
            ? timeline.lineOfRow.get(this.selectedRow)
            : timeline.lines.find(
                  (each) =>
                      each.kind === 'events' &&
                      each.group === this.groups[this.trace.events[this.selection.index].sandbox],
              );
        timeline.scrollTo(line);
    }

    zoomToSelection() {
        if (!this.selection) return;
        const [from, to] = this.bounds();
        if (this.selection.type === 'span') this.range.show(from, to);
        else this.range.show(from - this.range.width / 20, to + this.range.width / 20);
        this.reveal();
    }

    selectFirst() {
        const { order, end } = this.trace.spans;
        const first = order.find((span) => end[span] >= this.range.from);
        if (first !== undefined) this.select({ type: 'span', index: first });
    }

    /* Selects the span that lies in a direction of the selected one. False when there is none. */
    walk(direction) {
        const { spans } = this.trace;
        const span = this.selection.index;
        const row = this.selectedRow;
        const beside = (by) => row.list[this.selectedPosition + by];
        let next;
        if (direction === 'next') next = beside(1);
        else if (direction === 'previous') next = beside(-1);
        else if (direction === 'out') next = spans.around[span];
        else if (direction === 'in') next = this.firstChild(span);
        else next = this.besideInTime(span, direction === 'next in time' ? 1 : -1);
        if (next === undefined || next < 0) return false;
        this.select({ type: 'span', index: next });
        return true;
    }

    get ranks() {
        if (!this.rankList) {
            this.rankList = new Int32Array(this.trace.spans.count);
            this.trace.spans.order.forEach((span, rank) => (this.rankList[span] = rank));
        }
        return this.rankList;
    }

    besideInTime(span, by) {
        return this.trace.spans.order[this.ranks[span] + by];
    }

    firstChild(span) {
        const { order, around, end, start } = this.trace.spans;
        for (let rank = this.ranks[span] + 1; rank < order.length && start[order[rank]] <= end[span]; rank++)
            if (around[order[rank]] === span) return order[rank];
        return -1;
    }

    /* For those who do not see the drawing. */
    announce() {
        const { trace, selection } = this;
        if (!selection) {
            byId('announcement').textContent = '';
            return;
        }
        if (selection.type === 'event') {
            byId('announcement').textContent = 'event ' + eventLabel(trace.events[selection.index]);
            return;
        }
        const { spans } = trace;
        const span = selection.index;
        const parts = [
            trace.labels.texts[spans.label[span]],
            KINDS[spans.kind[span]],
            shownDuration(durationOf(spans, span)),
            'begins at ' + shownDuration(spans.start[span] - trace.bounds.from),
            'depth ' + (spans.hostDepth[span] + spans.guestDepth[span] + 1),
        ];
        if (spans.failed[span]) parts.push('failed: ' + spans.extras[span].s);
        if (spans.unfinished[span]) parts.push('unfinished');
        byId('announcement').textContent = parts.join(', ');
    }
}

document.addEventListener('DOMContentLoaded', () => {
    const app = new App(document.querySelectorAll('script.chunk'));
    document.documentElement.dataset.ready = 'true';
    globalThis.pinhole = app; /* for tests, and for who is curious */
});
