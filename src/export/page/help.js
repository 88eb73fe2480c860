/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The dialog of keys, and of what the colours and marks stand for. */

class Help {
    constructor(app) {
        this.app = app;
        this.dialog = byId('help');
        byId('help-close').addEventListener('click', () => this.dialog.close());
    }

    open() {
        byId('legend').replaceChildren(...this.entries());
        this.dialog.showModal();
        this.dialog.scrollTop = 0;
    }

    entries() {
        const { kinds, names } = this.app.theme.fills;
        const fills = kinds.map((fill, kind) => [KINDS[kind], fill || stripesOf(names)]);
        return [
            ...fills.map(([name, fill]) => entryOf(name, fill, '')),
            entryOf('failed', kinds[CALL], 'has-failed'),
            entryOf('unfinished: nobody ended it', kinds[GUEST], 'is-unfinished'),
            entryOf('many in one place: zoom in', kinds[GUEST], 'many'),
        ];
    }
}

function entryOf(name, fill, marks) {
    const swatch = element('i', { className: 'swatch ' + marks });
    swatch.style.background = fill;
    return element('li', {}, swatch, name);
}

/* Kinds without a colour have one for each name. */
function stripesOf(colours) {
    const part = 100 / 4;
    const stops = colours.slice(0, 4).map((colour, i) => `${colour} ${part * i}% ${part * (i + 1)}%`);
    return 'linear-gradient(to right, ' + stops.join(', ') + ')';
}
