/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The keyboard. Tab only walks spans while one is selected, and leaves the drawing at its ends, so that nobody is
 * caught in it; Escape lets go. */

const PAN_PART = 0.15;
const ZOOM_FACTOR = 1.4;

class Keys {
    constructor(app) {
        this.app = app;
        document.addEventListener('keydown', (event) => this.anywhere(event));
        byId('timeline').addEventListener('keydown', (event) => this.inTimeline(event));
        byId('flame-scroll').addEventListener('keydown', (event) => this.inFlame(event));
    }

    /* Keys that hold wherever the focus is, but for places to type in. */
    anywhere(event) {
        const { app } = this;
        if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
        if (event.target.matches('input[type=search], textarea') || byId('help').open) return;
        const keys = {
            '/': () => app.search.box.focus(),
            '?': () => app.help.open(),
            1: () => app.show('timeline', true),
            2: () => app.show('flame', true),
            3: () => app.show('totals', true),
            n: () => app.search.step(1),
            N: () => app.search.step(-1),
            t: () => app.theme.toggle(),
            0: () => app.range.showAll(),
            Escape: () => app.escape(),
        };
        if (event.target === document.body && event.key !== 'Tab') this.inView(event);
        this.run(event, keys);
    }

    /* As long as nothing else has the focus, the view has it. */
    inView(event) {
        if (this.app.view === 'timeline') this.inTimeline(event);
        else if (this.app.view === 'flame') this.inFlame(event);
    }

    run(event, keys) {
        if (event.defaultPrevented || !Object.hasOwn(keys, event.key)) return;
        event.preventDefault();
        keys[event.key]();
    }

    inTimeline(event) {
        const { app } = this;
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const { range } = app;
        const selected = app.selection && app.selection.type === 'span' && !event.shiftKey;
        const pan = (by) => range.glide(range.from + by * range.width, range.to + by * range.width);
        const zoom = (factor) => range.zoom(factor, range.from + range.width / 2);
        const scroll = (by) => (byId('timeline').scrollTop += by);
        const page = byId('timeline').clientHeight * 0.8;
        if (event.key === 'Tab') {
            if (
                app.selection &&
                app.selection.type === 'span' &&
                app.walk(event.shiftKey ? 'previous in time' : 'next in time')
            )
                event.preventDefault();
            return;
        }
        this.run(event, {
            ArrowLeft: () => (selected ? app.walk('previous') : pan(-PAN_PART)),
            ArrowRight: () => (selected ? app.walk('next') : pan(PAN_PART)),
            ArrowUp: () => (selected ? app.walk('out') : scroll(-60)),
            ArrowDown: () => (selected ? app.walk('in') : scroll(60)),
            a: () => pan(-PAN_PART),
            d: () => pan(PAN_PART),
            w: () => zoom(1 / ZOOM_FACTOR),
            s: () => zoom(ZOOM_FACTOR),
            '+': () => zoom(1 / ZOOM_FACTOR),
            '=': () => zoom(1 / ZOOM_FACTOR),
            '-': () => zoom(ZOOM_FACTOR),
            PageUp: () => scroll(-page),
            PageDown: () => scroll(page),
            Home: () => range.glide(range.least, range.least + range.width),
            End: () => range.glide(range.most - range.width, range.most),
            Enter: () => (app.selection ? app.zoomToSelection() : app.selectFirst()),
        });
    }

    inFlame(event) {
        const { app } = this;
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const walk = (direction) => {
            const span = app.flame.walk(direction);
            if (span >= 0) app.select({ type: 'span', index: span }, { stay: true });
        };
        this.run(event, {
            ArrowLeft: () => walk('previous'),
            ArrowRight: () => walk('next'),
            ArrowUp: () => walk('out'),
            ArrowDown: () => walk('in'),
            Enter: () => walk('in'),
        });
    }
}
