/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The panel with everything that is known of what is selected. */

const LISTED_MOST = 50;

class Details {
    constructor(app) {
        this.app = app;
        this.panel = byId('details');
        this.body = byId('details-body');
        byId('details-close').addEventListener('click', () => {
            app.select(null);
            app.focusView();
        });
        byId('details-zoom').addEventListener('click', () => {
            app.show('timeline');
            app.zoomToSelection();
        });
    }

    show(selection) {
        this.panel.hidden = !selection;
        document.body.classList.toggle('detailed', Boolean(selection));
        if (!selection) return;
        this.body.replaceChildren(
            ...(selection.type === 'span' ? this.ofSpan(selection.index) : this.ofEvent(selection.index)),
        );
        this.body.scrollTop = 0;
    }

    title(text, ...marks) {
        byId('details-title').textContent = text;
        return element('p', { className: 'marks' }, ...marks);
    }

    mark(text, kind) {
        return element('span', { className: 'mark ' + (kind || ''), textContent: text });
    }

    /* A list of names and values; those without a value are left out. */
    list(entries) {
        const list = element('dl');
        for (const [name, value] of entries)
            if (value !== null && value !== undefined && value !== '')
                list.append(element('dt', { textContent: name }), element('dd', {}, value));
        return list;
    }

    duration(ns) {
        return ns < 1000 ? shownDuration(ns) : shownDuration(ns) + ' (' + shownCount(ns) + ' ns)';
    }

    place(extras) {
        const file = this.app.trace.text(extras.f || 0);
        return file ? shownText(file) + (extras.l ? ':' + extras.l : '') : '';
    }

    source(extras) {
        return [
            ['Source', this.place(extras)],
            ['Function', shownText(this.app.trace.text(extras.n || 0))],
        ];
    }

    /* A text that stays on one line. */
    whole(text) {
        return element('span', { className: 'whole', textContent: text });
    }

    id(hex) {
        return hex ? element('code', { className: 'whole', textContent: hex }) : '';
    }

    link(span, text) {
        const button = element('button', { type: 'button', className: 'link', textContent: clip(text) });
        button.addEventListener('click', () => this.app.select({ type: 'span', index: span }));
        return button;
    }

    labelOf(span) {
        return this.app.trace.labels.texts[this.app.trace.spans.label[span]];
    }

    ofSpan(span) {
        const { trace } = this.app;
        const { spans } = trace;
        const extras = spans.extras[span] || {};
        const marks = [this.mark(KINDS[spans.kind[span]] || 'span'), this.mark(LEVELS[spans.level[span]] || '')];
        if (spans.failed[span]) marks.push(this.mark('▲ ' + extras.s, 'failed'));
        if (spans.unfinished[span]) marks.push(this.mark('✂ unfinished', 'unfinished'));
        const duration = durationOf(spans, span);
        marks.push(this.mark(shownDuration(duration)));
        return [
            this.title(this.labelOf(span), ...marks),
            extras.m ? element('p', { className: 'message' }, shownLines(extras.m)) : null,
            ...this.fields(extras),
            extras.d
                ? element('p', { className: 'quiet', textContent: plural(extras.d, 'field') + ' left out' })
                : null,
            this.list([
                ['Duration', this.duration(duration)],
                ['Self', spans.children[span] ? this.duration(spans.self[span]) : ''],
                ['Begins', '+' + this.duration(spans.start[span] - trace.bounds.from)],
                ['At', this.whole(shownMoment(trace.zero, spans.start[span]))],
                ['Ends', this.whole(shownMoment(trace.zero, spans.end[span]))],
            ]),
            this.list([...this.source(extras), ['Parent', this.parentOf(span)]]),
            this.list([
                ['Sandbox', String(trace.sandboxes[spans.sandbox[span]])],
                ['Span', String(spans.id[span])],
                ['Span id', this.id(extras.i)],
                ['Trace', this.id(extras.t)],
                ['Caller', this.id(extras.r)],
                ['State', shownText(extras.w || '')],
            ]),
            ...this.events(span),
            ...this.children(span),
        ].filter((part) => part);
    }

    parentOf(span) {
        const { spans } = this.app.trace;
        if (spans.parent[span] >= 0) return this.link(spans.parent[span], this.labelOf(spans.parent[span]));
        if (!spans.parentId[span]) return 'none: this is a root';
        const text = spans.parentId[span] + ', which is not in this page';
        return spans.around[span] < 0
            ? text
            : element(
                  'span',
                  {},
                  text + '; it lies in ',
                  this.link(spans.around[span], this.labelOf(spans.around[span])),
              );
    }

    ofEvent(index) {
        const { trace } = this.app;
        const event = trace.events[index];
        const extras = event.extras || {};
        const span = trace.spans.indexes.get(event.span);
        return [
            this.title(
                eventLabel(event),
                this.mark(extras.m === undefined ? 'event' : 'log'),
                this.mark(LEVELS[event.level] || '', LEVELS[event.level]),
            ),
            extras.m !== undefined ? element('p', { className: 'message' }, shownLines(extras.m)) : null,
            ...this.fields(extras),
            this.list([
                ['Happened', '+' + this.duration(event.time - trace.bounds.from)],
                ['At', this.whole(shownMoment(trace.zero, event.time))],
            ]),
            this.list([
                [
                    'In',
                    span !== undefined
                        ? this.link(span, this.labelOf(span))
                        : event.span
                          ? event.span + ', which is not in this page'
                          : '',
                ],
                [extras.m !== undefined ? 'Format' : '', extras.m !== undefined ? shownText(event.name) : ''],
                ...this.source(extras),
                ['Sandbox', String(trace.sandboxes[event.sandbox])],
            ]),
        ].filter((part) => part);
    }

    fields(extras) {
        if (!extras.v) return [];
        const rows = extras.v.map(([name, type, value, size], position) => {
            const shown = element('td', {}, element('code', { textContent: shownLines(value) || '(empty)' }));
            if (size !== undefined)
                shown.append(element('small', { textContent: 'cut: it had ' + plural(size, 'byte') }));
            const label = shownText(this.app.trace.text(name)) || '(' + position + ')';
            return element(
                'tr',
                {},
                element('th', { scope: 'row', textContent: label }),
                shown,
                element('td', { className: 'type', textContent: type }),
            );
        });
        return [
            element('h3', { textContent: 'Fields' }),
            element('table', { className: 'fields' }, element('tbody', {}, ...rows)),
        ];
    }

    events(span) {
        const { trace } = this.app;
        this.eventsOf ||= groupBy(trace.events, (event) => event.span);
        const list = this.eventsOf.get(trace.spans.id[span]) || [];
        const items = list.slice(0, LISTED_MOST).map((index) => {
            const event = trace.events[index];
            const button = element('button', {
                type: 'button',
                className: 'link',
                textContent: clip(eventLabel(event)),
            });
            button.addEventListener('click', () => this.app.select({ type: 'event', index }));
            return element(
                'li',
                {},
                element('small', { textContent: '+' + shownDuration(event.time - trace.spans.start[span]) }),
                button,
            );
        });
        return this.listing('Events', items, list.length);
    }

    /* The longest ones first. */
    children(span) {
        const { spans } = this.app.trace;
        this.childrenOf ||= groupBy(spans.around, (parent) => (parent < 0 ? undefined : parent));
        const list = [...(this.childrenOf.get(span) || [])].sort((a, b) => durationOf(spans, b) - durationOf(spans, a));
        const items = list
            .slice(0, LISTED_MOST)
            .map((child) =>
                element(
                    'li',
                    {},
                    element('small', { textContent: shownDuration(durationOf(spans, child)) }),
                    this.link(child, this.labelOf(child)),
                ),
            );
        return this.listing('Inside it', items, list.length);
    }

    listing(title, items, count) {
        if (!count) return [];
        const heading = element('h3', { textContent: title + ' (' + shownCount(count) + ')' });
        const more =
            count > LISTED_MOST
                ? element('p', { className: 'quiet', textContent: shownCount(count - LISTED_MOST) + ' more' })
                : null;
        return [heading, element('ul', { className: 'listing' }, ...items), more];
    }
}

/* Indexes of (list) by the key of each; those without one are left out. */
function groupBy(list, keyOf) {
    const groups = new Map();
    for (let i = 0; i < list.length; i++) {
        const key = keyOf(list[i]);
        if (key === undefined) continue;
        const group = groups.get(key);
        if (group) group.push(i);
        else groups.set(key, [i]);
    }
    return groups;
}
