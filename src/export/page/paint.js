/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A canvas as large as its box, and the shapes that both drawings have. It counts what it draws, so that a test can say
 * how much a frame costs without a clock. */

const FONT = '12px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif';
const BOX_HEIGHT = 20;
const LABEL_LEAST = 30; /* a box that is narrower has no label */

/* What a search has not found: its colour fades, its text can still be read. */
const DIM_FILL = 0.5;
const DIM_TEXT = 0.75;

const HATCH_PIXELS = 6;

class Paint {
    constructor(canvas) {
        this.canvas = canvas;
        this.context = canvas.getContext('2d');
        this.widths = new Map();
        this.hatches = new Map();
        this.drawn = 0;
    }

    /* Begins a frame. */
    begin(theme, width, height) {
        const scale = window.devicePixelRatio || 1;
        this.theme = theme;
        this.width = width;
        this.height = height;
        this.drawn = 0;
        if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
            this.canvas.width = Math.round(width * scale);
            this.canvas.height = Math.round(height * scale);
            this.canvas.style.width = width + 'px';
            this.canvas.style.height = height + 'px';
        }
        this.context.setTransform(scale, 0, 0, scale, 0, 0);
        this.context.font = FONT;
        this.context.textBaseline = 'middle';
        this.context.direction = 'ltr';
        this.context.globalAlpha = 1;
        this.fill(theme.css.background, 0, 0, width, height);
    }

    fill(colour, x, y, width, height) {
        this.drawn++;
        this.context.fillStyle = colour;
        this.context.fillRect(x, y, width, height);
    }

    /* Stripes of (colour), for what stands for many. */
    hatch(colour) {
        const scale = window.devicePixelRatio || 1;
        const key = colour + this.theme.name + scale;
        let pattern = this.hatches.get(key);
        if (pattern) return pattern;
        const size = Math.round(HATCH_PIXELS * scale);
        const tile = Object.assign(document.createElement('canvas'), { width: size, height: size });
        const context = tile.getContext('2d');
        context.fillStyle = this.theme.css.background;
        context.fillRect(0, 0, size, size);
        context.globalAlpha = 0.5;
        context.fillStyle = colour;
        context.fillRect(0, 0, size, size);
        context.globalAlpha = 1;
        context.strokeStyle = colour;
        context.lineWidth = size / 3;
        for (const x of [-size, 0, size]) {
            context.beginPath();
            context.moveTo(x - size, 2 * size);
            context.lineTo(x + 2 * size, -size);
            context.stroke();
        }
        pattern = this.context.createPattern(tile, 'repeat');
        pattern.setTransform(new DOMMatrix().scale(1 / scale));
        this.hatches.set(key, pattern);
        return pattern;
    }

    line(colour, x1, y1, x2, y2) {
        this.drawn++;
        this.context.strokeStyle = colour;
        this.context.lineWidth = 1;
        this.context.beginPath();
        this.context.moveTo(x1, y1);
        this.context.lineTo(x2, y2);
        this.context.stroke();
    }

    shape(colour, ...points) {
        this.drawn++;
        this.context.fillStyle = colour;
        this.context.beginPath();
        for (let i = 0; i < points.length; i += 2) this.context.lineTo(points[i], points[i + 1]);
        this.context.closePath();
        this.context.fill();
    }

    widthOf(text) {
        let width = this.widths.get(text);
        if (width === undefined) {
            if (this.widths.size > 20000) this.widths.clear();
            width = this.context.measureText(text).width;
            this.widths.set(text, width);
        }
        return width;
    }

    /* As much of (text) as fits. */
    fitText(text, room) {
        const start = text.length > 400 ? text.slice(0, 400) : text;
        const width = this.widthOf(start);
        if (width <= room) return start.length < text.length ? start + '…' : start;
        let length = Math.floor((start.length * room) / width);
        while (length > 0 && this.widthOf(start.slice(0, length) + '…') > room) length--;
        return length > 0 ? start.slice(0, length) + '…' : '';
    }

    text(colour, text, x, y, room) {
        const fitting = this.fitText(text, room);
        if (!fitting) return;
        this.drawn++;
        this.context.fillStyle = colour;
        this.context.fillText(fitting, x, y);
    }

    roundBox(colour, x, y, width, height) {
        this.drawn++;
        this.context.fillStyle = colour;
        this.context.beginPath();
        this.context.roundRect(x, y, width, height, Math.min(3, width / 3));
        this.context.fill();
    }

    /* A span or a frame, from (x) on. Its label stays visible where its beginning is not. */
    box(box) {
        const { context, theme } = this;
        const left = Math.max(box.x, box.left - 4);
        const right = Math.min(box.x + box.width, this.width + 4);
        const width = Math.max(right - left - (right - left > 4 ? 1 : 0), 1);
        context.globalAlpha = box.dim ? DIM_FILL : 1;
        if (width > 6) this.roundBox(box.fill, left, box.y, width, BOX_HEIGHT);
        else this.fill(box.fill, left, box.y, width, BOX_HEIGHT);
        if (box.failed) this.markFailed(left, box.y, width);
        if (box.unfinished) this.markUnfinished(left + width, box.y, width);
        context.globalAlpha = box.dim ? DIM_TEXT : 1;
        const start = Math.max(left, box.left) + (box.failed ? 12 : 6);
        if (right - start > LABEL_LEAST - 6) {
            const room = right - start - 5 - (box.unfinished ? 6 : 0);
            this.text(theme.fills.text, box.label, start, box.y + BOX_HEIGHT / 2 + 0.5, room);
            const used = this.widthOf(box.label);
            if (box.note && room - used > this.widthOf(box.note) + 12) {
                context.globalAlpha = box.dim ? DIM_TEXT : 0.8;
                this.text(theme.fills.text, box.note, start + used + 8, box.y + BOX_HEIGHT / 2 + 0.5, 200);
            }
        }
        context.globalAlpha = 1;
        if (box.selected) this.frame(left, box.y, width);
    }

    frame(x, y, width) {
        this.drawn++;
        this.context.strokeStyle = this.theme.css.accent;
        this.context.lineWidth = 2;
        this.context.strokeRect(x - 1, y - 1, Math.max(width, 2) + 2, BOX_HEIGHT + 2);
    }

    /* A bar at the left and a notch in its corner. */
    markFailed(x, y, width) {
        this.fill(this.theme.css.failed, x, y, Math.min(3, width), BOX_HEIGHT);
        if (width > 8) this.shape(this.theme.css.failed, x, y, x + 9, y, x, y + 9);
    }

    /* A torn right edge. */
    markUnfinished(right, y, width) {
        if (width < 8) {
            this.fill(this.theme.css.unfinished, right - Math.min(width, 2), y, Math.min(width, 2), BOX_HEIGHT);
            return;
        }
        const points = [right, y];
        for (let i = 0; i <= 4; i++) points.push(right - (i % 2 ? 1 : 5), y + (BOX_HEIGHT * i) / 4);
        points.push(right, y + BOX_HEIGHT);
        this.shape(this.theme.css.unfinished, ...points);
    }
}

/* Steps of a scale with about (count) of them: 1, 2 or 5 times a power of ten. */
function stepOf(width, count) {
    const raw = width / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].find((each) => each * power >= raw) * power;
    return Math.max(step, 1);
}
