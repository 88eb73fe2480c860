/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Light and dark: the reader's choice, or else the system's. The colours of what is drawn are here, those of all else
 * in page.css. Every fill has a contrast of at least 4.5 to the text on it. */

const FILLS = {
    light: {
        text: '#1b2430',
        kinds: ['#c8d0dc', '#a9c0e0', '#cdc3ea', '#a6d6cf', null, null, '#e0dacc', null],
        names: ['#b6d4f1', '#bfe2c6', '#f0d8a3', '#d8cbef', '#c2e2ea', '#dde2ae', '#e8cfe4', '#f1d1bb'],
        levels: [null, '#b3261e', '#9a5b00', '#3a6ea5', '#5c6672', '#5c6672'],
    },
    dark: {
        text: '#f2f5f9',
        kinds: ['#414b5b', '#34527f', '#4c4383', '#1f625d', null, null, '#4b473d', null],
        names: ['#2c557f', '#2b6047', '#6b5321', '#50437c', '#235d6b', '#58612a', '#653f60', '#70482f'],
        levels: [null, '#ff8f86', '#f0b35a', '#7fb4ea', '#9aa5b3', '#9aa5b3'],
    },
};

const STYLES = ['background', 'panel', 'text', 'quiet', 'line', 'faint', 'accent', 'failed', 'unfinished', 'shade'];

function hashOf(text) {
    let hash = 0x811c9dc5;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    return hash >>> 0;
}

class Theme {
    constructor(labels, changed) {
        this.labels = labels;
        this.changed = changed;
        this.system = matchMedia('(prefers-color-scheme: dark)');
        this.system.addEventListener('change', () => this.apply());
        this.chosen = this.remembered();
        this.apply();
    }

    remembered() {
        try {
            const chosen = localStorage.getItem('pinhole-theme');
            return chosen === 'light' || chosen === 'dark' ? chosen : null;
        } catch {
            return null; /* a page from a file may have no storage */
        }
    }

    get name() {
        return this.chosen || (this.system.matches ? 'dark' : 'light');
    }

    toggle() {
        this.chosen = this.name === 'dark' ? 'light' : 'dark';
        try {
            localStorage.setItem('pinhole-theme', this.chosen);
        } catch {
            /* it is forgotten with the page, then */
        }
        this.apply();
    }

    apply() {
        document.documentElement.dataset.theme = this.name;
        const style = getComputedStyle(document.documentElement);
        this.css = {};
        for (const key of STYLES) this.css[key] = style.getPropertyValue('--' + key).trim();
        this.fills = FILLS[this.name];
        this.cache = new Map();
        this.changed();
    }

    /* The fill of spans with (label). */
    fillOf(label) {
        let fill = this.cache.get(label);
        if (!fill) {
            const { kinds, names } = this.fills;
            fill = kinds[this.labels.kinds[label]] || names[hashOf(this.labels.texts[label]) % names.length];
            this.cache.set(label, fill);
        }
        return fill;
    }
}
