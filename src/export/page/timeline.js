/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The line of time: for each sandbox its tracks, one row below the other. Of all rows only those that are visible are
 * drawn, and of spans that share a pixel one box. */

const RULER_HEIGHT = 26;
const ROW_HEIGHT = 22;
const GROUP_HEIGHT = 28;
const LANE_HEIGHT = 22;
const COUNTER_HEIGHT = 44;
const COUNTERS_MOST = 24;
const NARROW = 640;

/* Many spans that share pixels have one colour for so many of them: less is a flicker. */
const CELL_PIXELS = 16;

/* All lines of the drawing, from above: {kind, y, height, ...}. */
function layOut(groups) {
    const lines = [];
    let y = 4;
    const add = (line, height) => {
        lines.push({ ...line, y, height });
        y += height;
    };
    for (const group of groups) {
        add({ kind: 'group', group }, GROUP_HEIGHT);
        if (group.events.length) add({ kind: 'events', group, name: 'events' }, LANE_HEIGHT);
        for (const track of [group.host, group.guest, group.async]) {
            track.rows.forEach((row, depth) =>
                add({ kind: 'row', group, row, name: depth ? '' : track.name }, ROW_HEIGHT),
            );
            if (track.rows.length) y += 6;
        }
        for (const [name, values] of [...group.counters].slice(0, COUNTERS_MOST))
            add({ kind: 'counter', group, values, name: shownText(name) || '(unnamed)' }, COUNTER_HEIGHT);
        if (group.counters.size > COUNTERS_MOST)
            add(
                { kind: 'note', text: plural(group.counters.size - COUNTERS_MOST, 'more counter') + ' not drawn' },
                LANE_HEIGHT,
            );
        y += 8;
    }
    return { lines, height: y + 8 };
}

class Timeline {
    constructor(app, groups) {
        this.app = app;
        this.scroller = byId('timeline');
        this.canvas = byId('timeline-canvas');
        this.paint = new Paint(this.canvas);
        Object.assign(this, layOut(groups));
        this.lineOfRow = new Map(this.lines.filter((line) => line.row).map((line) => [line.row, line]));
        byId('timeline-height').style.height = this.height + RULER_HEIGHT + 'px';
        this.scroller.addEventListener('scroll', () => app.redraw());
        new TimelineHand(this);
    }

    get gutter() {
        return byId('main').clientWidth < NARROW ? 58 : 104;
    }

    get room() {
        return Math.max(this.scroller.clientWidth - this.gutter, 1);
    }

    xOf(time) {
        const { range } = this.app;
        return this.gutter + ((time - range.from) / range.width) * this.room;
    }

    timeOf(x) {
        const { range } = this.app;
        return range.from + ((x - this.gutter) / this.room) * range.width;
    }

    draw() {
        const { paint, app } = this;
        const height = this.scroller.clientHeight;
        paint.begin(app.theme, this.scroller.clientWidth, height);
        const top = this.scroller.scrollTop - RULER_HEIGHT;
        const first = firstIndex(
            0,
            this.lines.length,
            (i) => this.lines[i].y + this.lines[i].height >= top + RULER_HEIGHT,
        );
        this.drawGrid(height);
        for (let i = first; i < this.lines.length && this.lines[i].y < top + height; i++)
            this.drawLine(this.lines[i], this.lines[i].y - top);
        this.drawRuler();
        if (this.hoverX >= this.gutter)
            paint.line(app.theme.css.quiet, this.hoverX + 0.5, RULER_HEIGHT, this.hoverX + 0.5, height);
    }

    drawLine(line, y) {
        if (line.kind === 'row') this.drawRow(line.row, y + 1);
        else if (line.kind === 'events') drawEvents(this, line, y);
        else if (line.kind === 'counter') drawCounter(this, line, y);
        this.drawGutter(line, y);
    }

    drawGutter(line, y) {
        const { paint, app } = this;
        const { css } = app.theme;
        if (line.kind === 'group') {
            paint.fill(css.shade, 0, y + 2, paint.width, line.height - 6);
            paint.context.font = '600 ' + FONT;
            paint.text(css.text, 'sandbox ' + line.group.number, 10, y + line.height / 2 - 1, paint.width);
            paint.context.font = FONT;
            return;
        }
        paint.fill(css.background, 0, y, this.gutter - 1, line.height);
        if (line.name || line.text)
            paint.text(css.quiet, line.name || line.text, 10, y + 11, line.text ? paint.width : this.gutter - 16);
        if (line.kind === 'counter')
            paint.text(
                css.quiet,
                shownNumber(line.least) + ' to ' + shownNumber(line.most),
                10,
                y + 28,
                this.gutter - 16,
            );
    }

    drawRow(row, y) {
        const { spans } = this.app.trace;
        const { list } = row;
        const run = { from: -1, to: -1, failed: false, lit: true };
        const scale = this.room / this.app.range.width;
        let i = row.firstEndingAt(this.app.range.from);
        while (i < list.length && spans.start[list[i]] <= this.app.range.to) {
            const span = list[i];
            const x = this.xOf(spans.start[span]);
            const width = (spans.end[span] - spans.start[span]) * scale;
            if (width >= 2) {
                this.endRun(run, y);
                this.drawSpan(span, x, y, width);
                i++;
            } else {
                i = this.drawSmall(row, i, x, y, run);
            }
        }
        this.endRun(run, y);
    }

    /* Spans from the (i)th on that share its pixel: one alone keeps its colour, many join the run of pixels before
     * them. Gives the index behind them. */
    drawSmall(row, i, x, y, run) {
        const { spans } = this.app.trace;
        const pixel = Math.max(Math.floor(x), this.gutter - 2);
        let next = Math.max(row.firstStartingAt(this.timeOf(pixel + 1), i), i + 1);
        if (next > i + 1 && this.xOf(spans.end[row.list[next - 1]]) > pixel + 3)
            next--; /* the last one is a wide one */
        const failed = row.failures[next] > row.failures[i];
        const lit = !row.lit || row.lit[next] > row.lit[i];
        const selected = this.app.isSelectedIn(row, i, next);
        if (next - i === 1 && pixel > run.to + 1) {
            this.endRun(run, y);
            const fill = this.app.theme.fillOf(spans.label[row.list[i]]);
            this.endRun({ from: pixel, to: pixel, failed, lit, fill }, y);
        } else {
            const cell = Math.floor(pixel / CELL_PIXELS);
            const joins = run.from >= 0 && pixel <= run.to + 2 && cell === run.cell;
            if (!joins || failed !== run.failed || lit !== run.lit || selected) {
                this.endRun(run, y);
                Object.assign(run, { from: pixel, failed, lit, cell, fill: null, fills: new Map() });
            }
            run.to = pixel;
            this.countFills(run.fills, row, i, next);
        }
        if (selected) {
            this.endRun(run, y);
            this.paint.frame(pixel, y, 1);
        }
        return next;
    }

    /* Of the first ones of a pixel, how many have which colour. */
    countFills(fills, row, from, to) {
        const { theme, trace } = this.app;
        for (let i = from; i < Math.min(to, from + LOOKS_MOST); i++) {
            const fill = theme.fillOf(trace.spans.label[row.list[i]]);
            fills.set(fill, (fills.get(fill) || 0) + 1);
        }
    }

    /* Many are hatched in the colour that most of them have, so that they are not taken for one. */
    endRun(run, y) {
        const { paint } = this;
        if (run.from < 0) return;
        const width = run.to - run.from + (run.fill ? 1.5 : 1); /* cells lie side by side, and do not overlap */
        const fill = run.fill || paint.hatch([...run.fills].reduce((a, b) => (b[1] > a[1] ? b : a))[0]);
        paint.context.globalAlpha = run.lit ? 1 : DIM_FILL;
        paint.fill(fill, run.from, y, width, BOX_HEIGHT);
        if (run.failed) paint.fill(this.app.theme.css.failed, run.from, y + BOX_HEIGHT - 4, width, 4);
        paint.context.globalAlpha = 1;
        run.from = run.to = -1;
    }

    drawSpan(span, x, y, width) {
        const { trace, theme, search } = this.app;
        const { spans } = trace;
        this.paint.box({
            x,
            y,
            width,
            left: this.gutter,
            label: trace.labels.texts[spans.label[span]],
            note: shownDuration(spans.end[span] - spans.start[span]),
            fill: theme.fillOf(spans.label[span]),
            failed: spans.failed[span],
            unfinished: spans.unfinished[span],
            dim: search.active && !search.lit[span],
            selected: this.app.isSelected('span', span),
        });
    }

    get step() {
        return stepOf(this.app.range.width, Math.max(this.room / 110, 2));
    }

    /* Moments since the first thing in the trace. */
    ticks(step) {
        const { range, trace } = this.app;
        const first = Math.ceil((range.from - trace.bounds.from) / step);
        const count = Math.floor((range.to - trace.bounds.from) / step) - first + 1;
        return Array.from({ length: Math.max(count, 0) }, (_, i) => (first + i) * step);
    }

    drawGrid(height) {
        const { paint, app, step } = this;
        for (const time of this.ticks(step)) {
            const x = Math.round(this.xOf(time + app.trace.bounds.from)) + 0.5;
            paint.line(app.theme.css.faint, x, RULER_HEIGHT, x, height);
        }
    }

    drawRuler() {
        const { paint, app, step } = this;
        const { css } = app.theme;
        const zero = app.trace.bounds.from;
        paint.fill(css.panel, 0, 0, paint.width, RULER_HEIGHT);
        for (const time of this.ticks(step)) {
            const x = this.xOf(time + zero);
            paint.line(css.line, Math.round(x) + 0.5, RULER_HEIGHT - 6, Math.round(x) + 0.5, RULER_HEIGHT);
            const text = time === 0 ? '0' : shownTick(time, step);
            if (x + 5 + paint.widthOf(text) < paint.width) paint.text(css.quiet, text, x + 5, RULER_HEIGHT / 2, 200);
        }
        paint.line(css.line, 0, RULER_HEIGHT - 0.5, paint.width, RULER_HEIGHT - 0.5);
    }

    /* What is at a point of the canvas: {type, index, line}, or null. */
    hit(x, y) {
        if (y < RULER_HEIGHT || x < this.gutter) return null;
        const at = y + this.scroller.scrollTop - RULER_HEIGHT;
        const index = firstIndex(0, this.lines.length, (i) => this.lines[i].y + this.lines[i].height > at);
        const line = this.lines[index];
        if (!line || line.y > at) return null;
        const slack = (3 / this.room) * this.app.range.width;
        if (line.kind === 'row') {
            const span = line.row.spanAt(this.timeOf(x), slack);
            return span < 0 ? null : { type: 'span', index: span, line };
        }
        if (line.kind === 'events') {
            const event = eventAt(this, line, this.timeOf(x), slack * 2);
            return event < 0 ? null : { type: 'event', index: event, line };
        }
        return line.kind === 'counter' ? { type: 'counter', line } : null;
    }

    /* Scrolls to the row of the selected span. */
    scrollTo(line) {
        if (!line) return;
        const { scroller } = this;
        const room = scroller.clientHeight - RULER_HEIGHT;
        if (line.y < scroller.scrollTop) scroller.scrollTop = line.y - 20;
        else if (line.y + line.height > scroller.scrollTop + room)
            scroller.scrollTop = line.y + line.height - room + 20;
    }
}

/* As many digits as tell two ticks apart. */
function shownTick(ns, step) {
    const [unit, name] = UNITS.find(([each]) => Math.abs(ns) >= each) || UNITS[3];
    const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9)));
    return (ns / unit).toFixed(digits) + ' ' + name;
}
