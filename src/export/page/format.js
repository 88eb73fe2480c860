/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* How numbers, times and a guest's texts are shown, and how elements are made. Texts only ever become text nodes or
 * pictures on a canvas: nothing here or elsewhere in the page parses one as HTML. */

/* Controls, marks that turn the direction of text around, and characters without width. */
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function escapeHidden(character) {
    const short = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }[character];
    return short || '\\u{' + character.charCodeAt(0).toString(16) + '}';
}

/* One line that cannot move or hide what is around it. */
function shownText(text) {
    return text.replace(HIDDEN, escapeHidden);
}

/* The same for a value, whose lines stay lines. */
function shownLines(text) {
    return text.replace(HIDDEN, (character) =>
        character === '\n' || character === '\t' ? character : escapeHidden(character),
    );
}

/* As much of a text as a list has room for. */
function clip(text) {
    return text.length > 200 ? text.slice(0, 200) + '…' : text;
}

const UNITS = [
    [1e9, 's'],
    [1e6, 'ms'],
    [1e3, 'µs'],
    [1, 'ns'],
];

/* Four digits: `412 ns`, `21.40 µs`, `1.500 s`. */
function shownDuration(ns) {
    const size = Math.abs(ns);
    if (size < 1000) return Math.round(ns) + ' ns';
    if (size >= 60e9) return Math.floor(ns / 60e9) + ' min ' + ((ns % 60e9) / 1e9).toFixed(1) + ' s';
    const [unit, name] = UNITS.find(([each]) => size >= each);
    const value = ns / unit;
    return value.toFixed(size / unit >= 100 ? 1 : size / unit >= 10 ? 2 : 3) + ' ' + name;
}

function shownCount(number) {
    return number.toLocaleString('en');
}

/* Short, for a scale. */
function shownNumber(number) {
    return Math.abs(number) >= 1e6 ? number.toExponential(1) : String(Math.round(number * 1000) / 1000);
}

function plural(number, one, many) {
    return shownCount(number) + ' ' + (number === 1 ? one : many || one + 's');
}

/* Nanoseconds behind (zero), a BigInt since 1970, as a moment in UTC. */
function shownMoment(zero, ns) {
    const at = zero + BigInt(Math.round(ns));
    const date = new Date(Number(at / 1000000n));
    if (Number.isNaN(date.getTime())) return String(at) + ' ns';
    const part = String(at % 1000000000n).padStart(9, '0');
    return (
        date
            .toISOString()
            .replace('T', ' ')
            .replace(/\.\d+Z$/, '') +
        '.' +
        part +
        ' UTC'
    );
}

/* An element with properties, attributes (those with a dash, `role` and `for`) and children: nodes or texts. */
function element(tag, properties, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(properties || {})) {
        if (key.includes('-') || key === 'role' || key === 'for') made.setAttribute(key, value);
        else made[key] = value;
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
}

function byId(id) {
    return document.getElementById(id);
}
