/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The part of the trace that is seen, in nanoseconds since its zero. */

const WIDTH_LEAST = 10;
const GLIDE_MS = 180;
const WHOLE_PART = 1 - 1e-6; /* from there on it is all of it: zooms do not lead back to the last bit */

class Range {
    constructor(bounds, changed) {
        const margin = (bounds.to - bounds.from) * 0.01;
        this.least = bounds.from - margin;
        this.most = bounds.to + margin;
        this.from = this.least;
        this.to = this.most;
        this.changed = changed;
        this.calm = matchMedia('(prefers-reduced-motion: reduce)');
        this.glides = 0;
    }

    get width() {
        return this.to - this.from;
    }

    get isWhole() {
        return this.from <= this.least && this.to >= this.most;
    }

    /* The nearest range there is to the one that is asked for. */
    fit(from, to) {
        if (to - from >= (this.most - this.least) * WHOLE_PART) return [this.least, this.most];
        const width = Math.max(to - from, WIDTH_LEAST);
        const middle = (from + to) / 2;
        const start = Math.min(Math.max(middle - width / 2, this.least), this.most - width);
        return [start, start + width];
    }

    set(from, to) {
        this.glides++;
        this.put(...this.fit(from, to));
    }

    put(from, to) {
        this.from = from;
        this.to = to;
        this.changed();
    }

    /* As set, but by a short movement that the eye can follow. */
    glide(from, to) {
        if (this.calm.matches) {
            this.set(from, to);
            return;
        }
        const [endFrom, endTo] = this.fit(from, to);
        const [startFrom, startTo] = [this.from, this.to];
        const mine = ++this.glides;
        const begun = performance.now();
        const step = (now) => {
            if (mine !== this.glides) return;
            const part = Math.min(Math.max((now - begun) / GLIDE_MS, 0), 1);
            const eased = 1 - (1 - part) ** 3;
            if (part === 1) this.put(endFrom, endTo);
            else this.put(startFrom + (endFrom - startFrom) * eased, startTo + (endTo - startTo) * eased);
            if (part < 1) requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
    }

    /* Times the width, around the moment (at). */
    zoom(factor, at) {
        const width = Math.min(Math.max(this.width * factor, WIDTH_LEAST), this.most - this.least);
        const part = (at - this.from) / this.width;
        this.set(at - part * width, at + (1 - part) * width);
    }

    pan(ns) {
        this.set(this.from + ns, this.to + ns);
    }

    showAll() {
        this.glide(this.least, this.most);
    }

    /* With some of what is around it. */
    show(from, to) {
        const margin = Math.max((to - from) * 0.15, WIDTH_LEAST / 2);
        this.glide(from - margin, to + margin);
    }

    /* Moves as little as makes the moments from (from) to (to) visible. */
    reveal(from, to) {
        if (to - from > this.width) this.show(from, to);
        else if (from < this.from) this.glide(from - this.width * 0.1, from + this.width * 0.9);
        else if (to > this.to) this.glide(to - this.width * 0.9, to + this.width * 0.1);
    }
}
