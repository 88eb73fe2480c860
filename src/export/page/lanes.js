/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Events as marks and counters as small charts, in lanes of the line of time. */

const ERROR = 1;
const WARN = 2;
const EVENT_LABEL_LEAST = 60;

/* A triangle is an error, a diamond a warning, a dot all else. */
function drawMark(paint, level, x, y) {
    const colour = paint.theme.fills.levels[level] || paint.theme.css.quiet;
    if (level === ERROR) paint.shape(colour, x, y - 6, x + 6, y + 5, x - 6, y + 5);
    else if (level === WARN) paint.shape(colour, x, y - 6, x + 6, y, x, y + 6, x - 6, y);
    else {
        paint.drawn++;
        paint.context.fillStyle = colour;
        paint.context.beginPath();
        paint.context.arc(x, y, 3.5, 0, 7);
        paint.context.fill();
    }
}

/* The worst level of the events from (from) up to (to). */
function worstLevel(events, list, from, to) {
    let worst = events[list[from]].level;
    for (let i = from + 1; i < Math.min(to, from + LOOKS_MOST); i++) worst = Math.min(worst, events[list[i]].level);
    return worst;
}

/* One mark for the events of eight pixels, and a label where there is room. */
function drawEvents(timeline, line, y) {
    const { app, paint } = timeline;
    const { events } = app.trace;
    const list = line.group.events;
    let i = firstIndex(0, list.length, (at) => events[list[at]].time >= app.range.from);
    while (i < list.length && events[list[i]].time <= app.range.to) {
        const x = timeline.xOf(events[list[i]].time);
        const until = timeline.timeOf(x + 8);
        const next = firstIndex(i + 1, list.length, (at) => events[list[at]].time >= until);
        const room = (next < list.length ? timeline.xOf(events[list[next]].time) : paint.width) - x - 16;
        drawMark(paint, worstLevel(events, list, i, next), x, y + 11);
        const many = next - i > 1;
        if (room > EVENT_LABEL_LEAST)
            paint.text(
                paint.theme.css.quiet,
                many ? plural(next - i, 'event') : eventLabel(events[list[i]]),
                x + 9,
                y + 11,
                room,
            );
        if (app.selection && app.selection.type === 'event' && list.slice(i, next).includes(app.selection.index)) {
            paint.context.strokeStyle = paint.theme.css.accent;
            paint.context.lineWidth = 2;
            paint.context.strokeRect(x - 8, y + 2, 16, 18);
        }
        i = next;
    }
}

/* The event nearest to (time), within (slack); -1 when there is none. */
function eventAt(timeline, line, time, slack) {
    const { events } = timeline.app.trace;
    const list = line.group.events;
    const i = firstIndex(0, list.length, (at) => events[list[at]].time >= time - slack);
    let best = -1;
    for (let at = i; at < Math.min(list.length, i + LOOKS_MOST); at++) {
        const off = Math.abs(events[list[at]].time - time);
        if (off > slack) break;
        if (best < 0 || off < Math.abs(events[best].time - time)) best = list[at];
    }
    return best;
}

/* Numbers of a counter for drawing, and their bounds; read once. */
function numbersOf(line) {
    if (!line.numbers) {
        line.numbers = line.values.map((each) => Number(each.value)).map((each) => (Number.isFinite(each) ? each : 0));
        line.least = line.numbers.reduce((a, b) => Math.min(a, b), 0);
        line.most = line.numbers.reduce((a, b) => Math.max(a, b), line.least + 1e-9);
    }
    return line.numbers;
}

/* The index of the value that holds at (time); -1 before the first. */
function counterAt(line, time) {
    return firstIndex(0, line.values.length, (i) => line.values[i].time > time) - 1;
}

/* Steps, since a value holds until the next one; of those in one pixel their least and their most. */
function drawCounter(timeline, line, y) {
    const { app, paint } = timeline;
    const { context } = paint;
    const numbers = numbersOf(line);
    const bottom = y + line.height - 6;
    const scale = (line.height - 14) / (line.most - line.least);
    const yOf = (number) => bottom - (number - line.least) * scale;
    let i = Math.max(counterAt(line, app.range.from), 0);
    let x = Math.max(timeline.xOf(line.values[i].time), timeline.gutter - 2);
    const begin = x;
    context.beginPath();
    context.moveTo(x, bottom);
    context.lineTo(x, yOf(numbers[i]));
    while (++i < numbers.length && line.values[i].time <= app.range.to) {
        const until = timeline.timeOf(Math.floor(timeline.xOf(line.values[i].time)) + 1);
        x = timeline.xOf(line.values[i].time);
        context.lineTo(x, yOf(numbers[i - 1]));
        let [least, most] = [numbers[i], numbers[i]];
        for (; i + 1 < numbers.length && line.values[i + 1].time < until; i++) {
            least = Math.min(least, numbers[i + 1]);
            most = Math.max(most, numbers[i + 1]);
        }
        context.lineTo(x, yOf(least));
        context.lineTo(x, yOf(most));
        context.lineTo(x, yOf(numbers[i]));
    }
    const last = Math.min(i, numbers.length) - 1;
    context.lineTo(paint.width, yOf(numbers[last]));
    paint.drawn += 2;
    context.strokeStyle = paint.theme.css.accent;
    context.lineWidth = 1.5;
    context.stroke();
    context.lineTo(paint.width, bottom);
    context.lineTo(begin, bottom);
    context.closePath();
    context.globalAlpha = 0.15;
    context.fillStyle = paint.theme.css.accent;
    context.fill();
    context.globalAlpha = 1;
}
