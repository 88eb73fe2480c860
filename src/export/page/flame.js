/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The flame graph: spans with the same stack of names are one frame, as wide as their time together; of the whole
 * trace, or of the part that the line of time shows. Asynchronous spans are not in it. */

class Frame {
    constructor(parent, label) {
        this.parent = parent;
        this.label = label;
        this.depth = parent ? parent.depth + 1 : 0;
        this.total = 0;
        this.count = 0;
        this.failed = 0;
        this.children = new Map();
        this.longest = -1;
    }

    childOf(label) {
        let child = this.children.get(label);
        if (!child) this.children.set(label, (child = new Frame(this, label)));
        return child;
    }
}

/* Stacks of what lies between (from) and (to). */
function foldStacks(spans, from, to) {
    const root = new Frame(null, -1);
    const frames = new Array(spans.count);
    for (const span of spans.order) {
        if (spans.kind[span] === ASYNC) continue;
        const parent = spans.around[span];
        const frame = ((parent >= 0 && frames[parent]) || root).childOf(spans.label[span]);
        frames[span] = frame;
        const time = Math.min(spans.end[span], to) - Math.max(spans.start[span], from);
        if (time < 0) continue;
        frame.total += time;
        frame.count++;
        frame.failed += spans.failed[span];
        if (frame.longest < 0 || durationOf(spans, span) > durationOf(spans, frame.longest)) frame.longest = span;
        if (frame.depth === 1) root.total += time;
    }
    return root;
}

function durationOf(spans, span) {
    return spans.end[span] - spans.start[span];
}

class Flame {
    constructor(app) {
        this.app = app;
        this.scroller = byId('flame-scroll');
        this.canvas = byId('flame-canvas');
        this.paint = new Paint(this.canvas);
        this.boxes = [];
        this.visibleOnly = false;
        this.scroller.addEventListener('scroll', () => app.redraw());
        this.canvas.addEventListener('click', (event) => this.click(event));
        this.canvas.addEventListener('pointermove', (event) => this.hover(event));
        this.canvas.addEventListener('pointerleave', () => showTip(null));
        byId('flame-whole').addEventListener('change', () => this.choose(false));
        byId('flame-visible').addEventListener('change', () => this.choose(true));
        byId('flame-up').addEventListener('click', () => this.focusOn(null));
    }

    choose(visibleOnly) {
        this.visibleOnly = visibleOnly;
        this.app.redraw();
    }

    /* Folds again when the part that is asked for is another one. */
    refresh() {
        const { range, trace } = this.app;
        const [from, to] = this.visibleOnly ? [range.from, range.to] : [range.least, range.most];
        const key = from + ' ' + to;
        if (this.key === key) return;
        const path = this.pathOf(this.focus);
        this.key = key;
        this.root = foldStacks(trace.spans, from, to);
        this.focus = path.reduce((frame, label) => frame && frame.children.get(label), this.root) || this.root;
    }

    pathOf(frame) {
        const path = [];
        for (; frame && frame.parent; frame = frame.parent) path.unshift(frame.label);
        return path;
    }

    draw() {
        const { paint, app, scroller } = this;
        this.refresh();
        paint.begin(app.theme, scroller.clientWidth, scroller.clientHeight);
        this.boxes = [];
        this.lowest = 0;
        const total = this.focus.total || 1;
        this.scale = (paint.width - 16) / total;
        const above = [];
        for (let frame = this.focus; frame && frame.parent; frame = frame.parent) above.unshift(frame);
        above.forEach((frame, row) => this.place(frame, 8, paint.width - 16, row));
        this.placeChildren(this.focus, 8, above.length);
        const height = (this.lowest + 2) * ROW_HEIGHT + 8;
        byId('flame-height').style.height = height + 'px';
        for (const box of this.boxes) this.drawBox(box);
        byId('flame-up').disabled = this.focus === this.root;
        byId('flame-note').textContent =
            shownDuration(this.focus.total) +
            ' in ' +
            (this.focus === this.root ? 'all calls and the host’s work' : app.trace.labels.texts[this.focus.label]);
    }

    /* Those that are too narrow to see are left out, with all in them: so a frame costs what is visible. */
    placeChildren(parent, x, row) {
        const pending = [[parent, x, row]];
        while (pending.length) {
            const [frame, left, at] = pending.pop();
            let childX = left;
            const children = (frame.sorted ||= [...frame.children.values()].sort((a, b) => b.total - a.total));
            for (const child of children) {
                const width = child.total * this.scale;
                if (width < 0.7) break;
                this.place(child, childX, width, at);
                pending.push([child, childX, at + 1]);
                childX += width;
            }
        }
    }

    place(frame, x, width, row) {
        this.lowest = Math.max(this.lowest, row);
        frame.lit = this.app.search.labels.has(frame.label) || Boolean(frame.parent && frame.parent.lit);
        this.boxes.push({ frame, x, width, y: row * ROW_HEIGHT + 8 });
    }

    drawBox(box) {
        const { app, paint, scroller } = this;
        const { frame } = box;
        const y = box.y - scroller.scrollTop;
        if (y < -ROW_HEIGHT || y > paint.height) return;
        const part = (100 * frame.total) / (this.root.total || 1);
        paint.box({
            x: box.x,
            y,
            width: box.width,
            left: 0,
            label: app.trace.labels.texts[frame.label],
            note: part.toFixed(1) + '%',
            fill: app.theme.fillOf(frame.label),
            failed: frame.failed > 0 && frame.failed === frame.count,
            dim: app.search.active && !frame.lit,
            selected: app.selection && app.selection.type === 'span' && this.isOn(frame, app.selection.index),
        });
    }

    isOn(frame, span) {
        return frame.label === this.app.trace.spans.label[span] && frame.longest === span;
    }

    at(event) {
        const y = event.offsetY + this.scroller.scrollTop;
        return this.boxes.find(
            (box) =>
                y >= box.y &&
                y < box.y + ROW_HEIGHT &&
                event.offsetX >= box.x &&
                event.offsetX <= box.x + Math.max(box.width, 2),
        );
    }

    click(event) {
        const box = this.at(event);
        this.focusOn(box ? box.frame : null);
        if (box) this.app.select({ type: 'span', index: box.frame.longest }, { stay: true });
    }

    focusOn(frame) {
        this.refresh();
        this.focus = frame || this.root;
        this.scroller.scrollTop = 0;
        this.app.redraw();
    }

    hover(event) {
        const box = this.at(event);
        this.canvas.classList.toggle('over', Boolean(box));
        if (!box) {
            showTip(null);
            return;
        }
        const { frame } = box;
        const part = ((100 * frame.total) / (this.root.total || 1)).toFixed(1) + '%';
        showTip(
            [
                this.app.trace.labels.texts[frame.label],
                shownDuration(frame.total) + ' · ' + part + ' · ' + plural(frame.count, 'time'),
            ],
            event,
        );
    }

    /* Walks to the frame above, the widest below or the next ones beside; gives the span to select. */
    walk(direction) {
        this.refresh();
        const { focus, root } = this;
        const list = (frame) => frame.sorted || [...frame.children.values()].sort((a, b) => b.total - a.total);
        let next = focus;
        if (direction === 'in') next = list(focus)[0] || focus;
        else if (direction === 'out') next = focus.parent || root;
        else if (focus.parent) {
            const siblings = list(focus.parent);
            next = siblings[siblings.indexOf(focus) + (direction === 'next' ? 1 : -1)] || focus;
        }
        this.focusOn(next);
        return next.longest;
    }
}
