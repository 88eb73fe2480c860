/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Search in names, fields, messages and places in the source: what neither matches nor lies in a match is dimmed, and
 * Enter goes from one match to the next. */

const TYPING_MS = 120;

class Search {
    constructor(app) {
        this.app = app;
        this.box = byId('search');
        this.active = false;
        this.lit = new Uint8Array(app.trace.spans.count); /* found, or within what was */
        this.labels = new Set();
        this.list = [];
        this.at = -1;
        this.box.addEventListener('input', () => {
            clearTimeout(this.timer);
            this.timer = setTimeout(() => this.run(), TYPING_MS);
        });
        this.box.addEventListener('keydown', (event) => this.key(event));
        byId('search-next').addEventListener('click', () => this.step(1));
        byId('search-previous').addEventListener('click', () => this.step(-1));
    }

    key(event) {
        if (event.key === 'Enter') {
            event.preventDefault();
            this.runNow();
            this.step(event.shiftKey ? -1 : 1);
        } else if (event.key === 'Escape') {
            event.stopPropagation();
            this.clear();
            this.app.focusView();
        }
    }

    /* All that is found for (extras), in small letters. */
    textOf(extras) {
        const { trace } = this.app;
        if (!extras) return '';
        const marks = (extras.s ? 'failed ' + extras.s : '') + (extras.u ? ' unfinished' : '');
        const parts = [
            extras.m || '',
            marks,
            extras.t || '',
            extras.i || '',
            trace.text(extras.f || 0),
            trace.text(extras.n || 0),
        ];
        for (const [name, , value] of extras.v || []) parts.push(trace.text(name) + '=' + value);
        return parts.join('\n').toLowerCase();
    }

    runNow() {
        clearTimeout(this.timer);
        if (this.box.value.trim().toLowerCase() !== (this.words || '')) this.run();
    }

    run() {
        const { trace, groups } = this.app;
        const { spans, labels } = trace;
        this.words = this.box.value.trim().toLowerCase();
        this.active = this.words !== '';
        this.at = -1;
        this.labels.clear();
        this.list = [];
        const named = labels.texts.map((text) => this.active && text.toLowerCase().includes(this.words));
        for (const span of this.active ? spans.order : []) {
            const found = named[spans.label[span]] || this.textOf(spans.extras[span]).includes(this.words);
            this.lit[span] = found || (spans.around[span] >= 0 && this.lit[spans.around[span]]) ? 1 : 0;
            if (!found) continue;
            this.list.push({ type: 'span', index: span });
            this.labels.add(spans.label[span]);
        }
        this.addEvents();
        for (const group of groups)
            for (const track of [group.host, group.guest, group.async])
                for (const row of track.rows) row.lit = this.active ? row.countsOf((span) => this.lit[span]) : null;
        this.show();
        this.app.searched();
    }

    addEvents() {
        if (!this.active) return;
        this.app.trace.events.forEach((event, index) => {
            if (
                eventLabel(event).toLowerCase().includes(this.words) ||
                event.name.toLowerCase().includes(this.words) ||
                this.textOf(event.extras).includes(this.words)
            )
                this.list.push({ type: 'event', index });
        });
    }

    show() {
        const all = this.list.length;
        byId('search-count').textContent = !this.active
            ? ''
            : all === 0
              ? 'no match'
              : (this.at < 0 ? '' : shownCount(this.at + 1) + ' of ') + shownCount(all);
        byId('search-next').disabled = byId('search-previous').disabled = all === 0;
    }

    step(by) {
        if (!this.list.length) return;
        this.at = this.at < 0 && by < 0 ? this.list.length - 1 : (this.at + by + this.list.length) % this.list.length;
        this.show();
        this.app.select(this.list[this.at]);
    }

    /* Goes to the next match of (words), as if they were typed. */
    stepThrough(words) {
        this.box.value = words;
        this.runNow();
        this.step(1);
    }

    clear() {
        this.box.value = '';
        this.runNow();
    }
}
