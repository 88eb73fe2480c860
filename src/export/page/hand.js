/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Mouse, pen and fingers on the line of time: drag to move, wheel or pinch to zoom, Shift and drag to choose a range,
 * click to select; and the tip beside the pointer. */

const WHEEL_STEP = 0.0016;
const CLICK_PIXELS = 4;

class TimelineHand {
    constructor(timeline) {
        this.timeline = timeline;
        this.app = timeline.app;
        this.pointers = new Map();
        this.moved = 0;
        const { canvas, scroller } = timeline;
        scroller.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
        canvas.addEventListener('pointerdown', (event) => this.down(event));
        canvas.addEventListener('pointermove', (event) => this.move(event));
        canvas.addEventListener('pointerup', (event) => this.up(event));
        canvas.addEventListener('pointercancel', (event) => this.forget(event));
        canvas.addEventListener('pointerleave', () => this.hover(null));
        canvas.addEventListener('dblclick', (event) => this.doubleClick(event));
    }

    pointOf(event) {
        const box = this.timeline.canvas.getBoundingClientRect();
        return { x: event.clientX - box.left, y: event.clientY - box.top };
    }

    /* Over the names at the left, and with Alt, it scrolls as elsewhere. */
    wheel(event) {
        const { timeline, app } = this;
        const point = this.pointOf(event);
        const pixels = event.deltaMode === 1 ? 16 : 1;
        if (!event.ctrlKey && (event.altKey || point.x < timeline.gutter)) return;
        event.preventDefault();
        const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
        if (!event.ctrlKey && (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)))
            app.range.pan(((sideways * pixels) / timeline.room) * app.range.width);
        else
            app.range.zoom(
                Math.exp(event.deltaY * pixels * WHEEL_STEP * (event.ctrlKey ? 4 : 1)),
                timeline.timeOf(point.x),
            );
    }

    down(event) {
        if (event.button !== 0) return;
        const point = this.pointOf(event);
        this.timeline.canvas.setPointerCapture(event.pointerId);
        this.pointers.set(event.pointerId, point);
        this.moved = this.pointers.size > 1 ? CLICK_PIXELS + 1 : 0;
        this.marking = event.shiftKey && point.x >= this.timeline.gutter ? point.x : null;
        this.hover(null);
    }

    move(event) {
        const point = this.pointOf(event);
        const before = this.pointers.get(event.pointerId);
        if (!before) {
            this.hover(point, event);
            return;
        }
        this.moved += Math.abs(point.x - before.x) + Math.abs(point.y - before.y);
        if (this.marking !== null) this.mark(point.x);
        else if (this.pointers.size === 2) this.pinch(event.pointerId, point);
        else if (this.moved > CLICK_PIXELS) this.drag(before, point);
        this.pointers.set(event.pointerId, point);
    }

    drag(before, point) {
        const { timeline, app } = this;
        timeline.canvas.classList.add('dragged');
        timeline.scroller.scrollTop -= point.y - before.y;
        app.range.pan((-(point.x - before.x) / timeline.room) * app.range.width);
    }

    pinch(id, point) {
        const { timeline, app } = this;
        const other = [...this.pointers].find(([each]) => each !== id)[1];
        const before = Math.max(Math.abs(this.pointers.get(id).x - other.x), 8);
        const now = Math.max(Math.abs(point.x - other.x), 8);
        app.range.zoom(before / now, timeline.timeOf((point.x + other.x) / 2));
    }

    mark(x) {
        const box = byId('mark');
        box.hidden = false;
        box.style.left = Math.min(this.marking, x) + 'px';
        box.style.width = Math.abs(this.marking - x) + 'px';
    }

    up(event) {
        const { timeline, app } = this;
        const point = this.pointOf(event);
        const wasDown = this.pointers.has(event.pointerId);
        const from = this.marking;
        this.forget(event);
        if (!wasDown) return;
        if (from !== null && Math.abs(point.x - from) > CLICK_PIXELS) {
            app.range.glide(timeline.timeOf(Math.min(from, point.x)), timeline.timeOf(Math.max(from, point.x)));
        } else if (this.moved <= CLICK_PIXELS) {
            const hit = timeline.hit(point.x, point.y);
            app.select(hit && hit.type !== 'counter' ? hit : null);
        }
    }

    forget(event) {
        this.pointers.delete(event.pointerId);
        this.marking = null;
        byId('mark').hidden = true;
        this.timeline.canvas.classList.remove('dragged');
    }

    doubleClick(event) {
        const { x, y } = this.pointOf(event);
        const hit = this.timeline.hit(x, y);
        if (hit && hit.type === 'span') this.app.zoomToSelection();
    }

    hover(point, event) {
        const { timeline, app } = this;
        const hit = point && timeline.hit(point.x, point.y);
        timeline.hoverX = point ? point.x : -1;
        timeline.canvas.classList.toggle('over', Boolean(hit));
        showTip(hit ? this.tipOf(hit, point.x) : null, event);
        app.redraw();
    }

    tipOf(hit, x) {
        const { trace } = this.app;
        if (hit.type === 'counter') {
            const i = counterAt(hit.line, this.timeline.timeOf(x));
            return [hit.line.name, i < 0 ? 'no value yet' : hit.line.values[i].value];
        }
        if (hit.type === 'event') {
            const event = trace.events[hit.index];
            return [eventLabel(event), LEVELS[event.level] + ' at ' + shownDuration(event.time - trace.bounds.from)];
        }
        const { spans } = trace;
        const notes = [shownDuration(spans.end[hit.index] - spans.start[hit.index])];
        if (spans.failed[hit.index]) notes.push(spans.extras[hit.index].s);
        if (spans.unfinished[hit.index]) notes.push('unfinished');
        return [trace.labels.texts[spans.label[hit.index]], notes.join(' · ')];
    }
}

/* The tip beside the pointer: a title and a line below it. Without (texts) it goes away. */
function showTip(texts, event) {
    const tip = byId('tip');
    tip.hidden = !texts;
    if (!texts) return;
    tip.replaceChildren(element('b', { textContent: clip(texts[0]) }), element('span', { textContent: texts[1] }));
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const above = event.clientY + 18 + tip.offsetHeight > innerHeight;
    tip.style.left = Math.max(left, 4) + 'px';
    tip.style.top = (above ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18) + 'px';
}
