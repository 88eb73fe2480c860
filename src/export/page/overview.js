/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The whole trace in a strip: how deep the spans lie at each moment, and what part of it is seen below. Drag the part
 * to move it, beside it to choose another one. */

const OVERVIEW_HEIGHT = 44;
const HANDLE_PIXELS = 7;

class Overview {
    constructor(app) {
        this.app = app;
        this.canvas = byId('overview-canvas');
        this.paint = new Paint(this.canvas);
        this.canvas.addEventListener('pointerdown', (event) => this.down(event));
        this.canvas.addEventListener('pointermove', (event) => this.move(event));
        this.canvas.addEventListener('pointerup', () => (this.held = null));
        this.canvas.addEventListener('pointercancel', () => (this.held = null));
        this.canvas.addEventListener('dblclick', () => app.range.showAll());
    }

    /* All of the strip, and the part that has times: the one of the line of time below. */
    get width() {
        return this.canvas.parentElement.clientWidth;
    }

    get left() {
        return this.app.timeline.gutter;
    }

    get room() {
        return Math.max(this.width - this.left, 1);
    }

    /* For each pixel the depth of the deepest span, and whether one failed. Kept until the width changes. */
    profile() {
        const { spans } = this.app.trace;
        const { least, most } = this.app.range;
        const width = Math.max(Math.floor(this.room), 1);
        if (this.depths && this.depths.length === width) return;
        this.depths = new Uint16Array(width);
        this.failures = new Uint8Array(width);
        for (let span = 0; span < spans.count; span++) {
            const depth = Math.min(spans.hostDepth[span] + spans.guestDepth[span] + 1, 60000);
            const to = Math.min(Math.floor(((spans.end[span] - least) / (most - least)) * width), width - 1);
            const from = Math.max(Math.floor(((spans.start[span] - least) / (most - least)) * width), 0);
            for (let x = from; x <= to; x++) if (this.depths[x] < depth) this.depths[x] = depth;
            if (spans.failed[span]) this.failures[to] = 1;
        }
        this.deepest = this.depths.reduce((a, b) => Math.max(a, b), 1);
    }

    xOf(time) {
        const { least, most } = this.app.range;
        return this.left + ((time - least) / (most - least)) * this.room;
    }

    timeOf(x) {
        const { least, most } = this.app.range;
        return least + ((x - this.left) / this.room) * (most - least);
    }

    draw() {
        const { paint, app, width, left } = this;
        const { css } = app.theme;
        this.profile();
        paint.begin(app.theme, width, OVERVIEW_HEIGHT);
        paint.fill(css.panel, 0, 0, width, OVERVIEW_HEIGHT);
        paint.context.globalAlpha = 0.55;
        this.drawProfile(css.accent);
        paint.context.globalAlpha = 1;
        for (let x = 0; x < this.failures.length; x++)
            if (this.failures[x]) paint.shape(css.failed, left + x - 3, 0, left + x + 4, 0, left + x + 0.5, 7);
        paint.text(css.quiet, 'whole', 10, OVERVIEW_HEIGHT / 2, left - 16);
        const [from, to] = [this.xOf(app.range.from), this.xOf(app.range.to)];
        if (app.range.isWhole) return;
        paint.context.globalAlpha = 0.72;
        paint.fill(css.shade, left, 0, from - left, OVERVIEW_HEIGHT);
        paint.fill(css.shade, to, 0, width - to, OVERVIEW_HEIGHT);
        paint.context.globalAlpha = 1;
        for (const x of [from, to]) {
            paint.fill(css.accent, Math.min(x, width - 2), 0, 2, OVERVIEW_HEIGHT);
            paint.fill(css.accent, x - 2, OVERVIEW_HEIGHT / 2 - 8, 6, 16);
        }
    }

    drawProfile(colour) {
        const { left } = this;
        const { context } = this.paint;
        const scale = (OVERVIEW_HEIGHT - 10) / this.deepest;
        context.beginPath();
        context.moveTo(left, OVERVIEW_HEIGHT);
        for (let x = 0; x < this.depths.length; x++) {
            const y = OVERVIEW_HEIGHT - this.depths[x] * scale;
            context.lineTo(left + x, y);
            context.lineTo(left + x + 1, y);
        }
        context.lineTo(left + this.depths.length, OVERVIEW_HEIGHT);
        context.closePath();
        this.paint.drawn++;
        context.fillStyle = colour;
        context.fill();
    }

    /* Which end of the part is held, or the whole part, or a new one. */
    down(event) {
        const { range } = this.app;
        const x = event.offsetX;
        const [from, to] = [this.xOf(range.from), this.xOf(range.to)];
        this.canvas.setPointerCapture(event.pointerId);
        if (!range.isWhole && Math.abs(x - from) <= HANDLE_PIXELS) this.held = { what: 'new', other: range.to };
        else if (!range.isWhole && Math.abs(x - to) <= HANDLE_PIXELS) this.held = { what: 'new', other: range.from };
        else if (!range.isWhole && x > from && x < to) this.held = { what: 'part', off: this.timeOf(x) - range.from };
        else this.held = { what: 'new', other: this.timeOf(x), x };
    }

    move(event) {
        const { range } = this.app;
        const time = this.timeOf(event.offsetX);
        if (!this.held) return;
        if (this.held.what === 'part') range.set(time - this.held.off, time - this.held.off + range.width);
        else if (this.held.x === undefined || Math.abs(event.offsetX - this.held.x) > CLICK_PIXELS) {
            this.held.x = undefined;
            range.set(Math.min(time, this.held.other), Math.max(time, this.held.other));
        }
    }
}
