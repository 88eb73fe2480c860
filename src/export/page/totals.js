/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The table of totals: for each name how often, how long, and how often it failed. */

const ROWS_AT_ONCE = 300;
const MARGIN = 14; /* of the table, with nothing in it */

/* Inside of itself a name's time counts once: in `total`, of spans within one of the same name only the outermost. */
function totalsOf(trace) {
    const { spans } = trace;
    const totals = new Map();
    for (let span = 0; span < spans.count; span++) {
        const label = spans.label[span];
        let row = totals.get(label);
        if (!row)
            totals.set(
                label,
                (row = {
                    label,
                    name: trace.labels.texts[label],
                    count: 0,
                    total: 0,
                    self: 0,
                    max: 0,
                    errors: 0,
                    slowest: span,
                }),
            );
        const duration = durationOf(spans, span);
        row.count++;
        row.self += spans.self[span];
        if (!isWithinSame(spans, span)) row.total += duration;
        row.sum = (row.sum || 0) + duration;
        row.errors += spans.failed[span];
        if (duration > row.max) Object.assign(row, { max: duration, slowest: span });
    }
    for (const row of totals.values()) row.mean = row.sum / row.count;
    return [...totals.values()];
}

/* How far a span of the same name is looked for. */
const ANCESTORS_MOST = 256;

function isWithinSame(spans, span) {
    let parent = spans.around[span];
    for (let i = 0; parent >= 0 && i < ANCESTORS_MOST; i++) {
        if (spans.label[parent] === spans.label[span]) return true;
        parent = spans.around[parent];
    }
    return false;
}

class Totals {
    constructor(app) {
        this.app = app;
        this.body = byId('totals-body');
        this.key = 'total';
        this.up = false;
        this.shown = ROWS_AT_ONCE;
        for (const button of document.querySelectorAll('#totals thead button'))
            button.addEventListener('click', () => this.sortBy(button.dataset.key));
        byId('totals-more').addEventListener('click', () => this.more());
        this.scroller = byId('totals-scroll');
        this.scroller.addEventListener('scroll', () => this.hint());
    }

    sortBy(key) {
        this.up = this.key === key ? !this.up : key === 'name';
        this.key = key;
        this.shown = ROWS_AT_ONCE;
        this.draw();
    }

    more() {
        this.shown += ROWS_AT_ONCE;
        this.draw();
    }

    rows() {
        const { search } = this.app;
        const sign = this.up ? 1 : -1;
        this.all ||= totalsOf(this.app.trace);
        const rows = search.active ? this.all.filter((row) => search.labels.has(row.label)) : this.all;
        const order =
            this.key === 'name'
                ? (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)
                : (a, b) => a[this.key] - b[this.key];
        return [...rows].sort((a, b) => sign * order(a, b) || b.total - a.total);
    }

    draw() {
        const rows = this.rows();
        const most = this.all.reduce((a, row) => Math.max(a, row.total), 1);
        for (const button of document.querySelectorAll('#totals thead button')) {
            const sorted = button.dataset.key === this.key;
            button.parentElement.setAttribute('aria-sort', sorted ? (this.up ? 'ascending' : 'descending') : 'none');
        }
        this.body.replaceChildren(...rows.slice(0, this.shown).map((row) => this.rowOf(row, most)));
        byId('totals-none').hidden = rows.length > 0;
        byId('totals-more').hidden = rows.length <= this.shown;
        byId('totals-more').textContent = 'Show more of ' + plural(rows.length - this.shown, 'further name');
    }

    /* Says whether there is more at the right. */
    hint() {
        const { scrollLeft, clientWidth, scrollWidth } = this.scroller;
        byId('totals-hint').hidden = scrollLeft + clientWidth >= scrollWidth - MARGIN;
    }

    rowOf(row, most) {
        const button = element('button', {
            type: 'button',
            className: 'name',
            textContent: clip(row.name),
            title: 'Select the longest one',
        });
        button.addEventListener('click', () => this.app.select({ type: 'span', index: row.slowest }, { stay: true }));
        const dot = element('i', { className: 'dot' });
        dot.style.background = this.app.theme.fillOf(row.label);
        const bar = element('span', { className: 'bar', 'aria-hidden': 'true' });
        bar.style.width = Math.max((row.total / most) * 100, 0.5) + '%';
        const total = element(
            'td',
            { className: 'total' },
            element('span', { textContent: shownDuration(row.total) }),
            bar,
        );
        const number = (text) => element('td', { textContent: text });
        const errors = element('td', {
            textContent: row.errors ? '▲ ' + shownCount(row.errors) : '–',
            className: row.errors ? 'failed' : '',
        });
        return element(
            'tr',
            {},
            element('th', { scope: 'row' }, dot, button),
            number(shownCount(row.count)),
            total,
            number(shownDuration(row.self)),
            number(shownDuration(row.mean)),
            number(shownDuration(row.max)),
            errors,
        );
    }
}
