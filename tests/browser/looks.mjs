// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the page looks: colours that can be read, windows of any width, and what a frame of a large trace costs.
import assert from 'node:assert/strict';
import { pointOf, press, rangeOf, searchFor, selected, settle, shoot, withPage } from './browser.mjs';

export const checks = {};

/* The parts of WCAG that can be counted. */
function luminance(colour) {
    const parts = colour
        .match(/^#(..)(..)(..)$/)
        .slice(1)
        .map((hex) => parseInt(hex, 16) / 255);
    const [red, green, blue] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(a, b) {
    const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (light + 0.05) / (dark + 0.05);
}

async function checkContrast(page, name) {
    const theme = await page.evaluate(() => ({
        css: pinhole.theme.css,
        fills: pinhole.theme.fills,
        name: pinhole.theme.name,
    }));
    assert.equal(theme.name, name);
    for (const fill of [...theme.fills.kinds, ...theme.fills.names].filter(Boolean))
        assert.ok(contrast(fill, theme.fills.text) >= 4.5, `${name}: text on ${fill}`);
    for (const ground of ['background', 'panel', 'shade'])
        for (const colour of ['text', 'quiet', 'accent', 'failed', 'unfinished'])
            assert.ok(
                contrast(theme.css[ground], theme.css[colour]) >= 4.5,
                `${name}: ${colour} on ${ground}: ${contrast(theme.css[ground], theme.css[colour])}`,
            );
    for (const level of theme.fills.levels.filter(Boolean))
        assert.ok(contrast(level, theme.css.background) >= 3, `${name}: ${level}`);
}

checks.themes = async (file) => {
    for (const scheme of ['light', 'dark']) {
        await withPage(
            file,
            async (page) => {
                const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
                await checkContrast(page, scheme);
                await searchFor(page, 'prepare');
                await page.press('#search', 'Escape');
                await settle(page);
                await shoot(page, 'timeline-' + scheme);
                await press(page, '2', 'Escape');
                await shoot(page, 'flame-' + scheme);
                await press(page, '3');
                await shoot(page, 'totals-' + scheme);
                const before = await ground();
                await page.click('#theme');
                await settle(page);
                assert.notEqual(await ground(), before);
                await checkContrast(page, scheme === 'light' ? 'dark' : 'light');
                await page.reload();
                await page.waitForFunction(() => document.documentElement.dataset.ready === 'true');
                assert.notEqual(await ground(), before, 'the choice is remembered');
            },
            { colorScheme: scheme },
        );
    }
};

checks.widths = async (file) => {
    for (const [width, height] of [
        [400, 800],
        [700, 800],
        [1280, 800],
        [2560, 1300],
    ]) {
        await withPage(
            file,
            async (page) => {
                const outside = () =>
                    page.evaluate(() =>
                        [...document.querySelectorAll('header *, #details, #details button, .strip *')]
                            .filter(
                                (each) =>
                                    each.getClientRects().length &&
                                    (each.getBoundingClientRect().right > innerWidth + 1 ||
                                        each.getBoundingClientRect().left < -1),
                            )
                            .map((each) => each.id || each.tagName),
                    );
                await searchFor(page, 'prepare');
                await page.press('#search', 'Escape');
                await settle(page);
                const [strip, line] = await page.evaluate(() =>
                    [pinhole.overview, pinhole.timeline].map((each) =>
                        [pinhole.range.least, pinhole.range.most].map((time) => each.xOf(time)),
                    ),
                );
                assert.deepEqual(strip, line, `${width}: the strip and the axis below it lie over each other`);
                for (const view of ['timeline', 'flame', 'totals']) {
                    await page.click('#tab-' + view);
                    await settle(page);
                    assert.deepEqual(await outside(), [], `${width}: ${view}`);
                    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
                    const box = await page.locator('#view-' + view).boundingBox();
                    assert.ok(box.height > 150, `${width}: ${view} is ${box.height} high`);
                    assert.ok((await page.locator('#details').boundingBox()).height > 150);
                    await shoot(page, `${view}-${width}`);
                }
            },
            { width, height, colorScheme: width === 700 ? 'dark' : 'light' },
        );
    }
};

/* Of the row of the first span with (label), how many pixels side by side have one colour that is a name's, at most,
 * and how many colours of names there are. */
async function coloursOf(page, label) {
    return page.evaluate((wanted) => {
        const { trace, timeline, theme } = pinhole;
        const span = trace.spans.order.find((each) => trace.labels.texts[trace.spans.label[each]] === wanted);
        const y = timeline.lineOfRow.get(trace.spans.row[span]).y + 26 - timeline.scroller.scrollTop + 10;
        const { data } = timeline.paint.context.getImageData(timeline.gutter, y, timeline.room, 1);
        const colours = Array.from(
            { length: data.length / 4 },
            (_, x) =>
                '#' + [...data.slice(4 * x, 4 * x + 3)].map((part) => part.toString(16).padStart(2, '0')).join(''),
        );
        let [longest, length] = [0, 0];
        const used = new Set(colours.filter((colour) => theme.fills.names.includes(colour))).size;
        colours.forEach((colour, x) => {
            length = theme.fills.names.includes(colour) ? (colour === colours[x - 1] ? length + 1 : 1) : 0;
            longest = Math.max(longest, length);
        });
        return { longest, used };
    }, label);
}

async function checkMany(page) {
    const { longest, used } = await coloursOf(page, 'parse');
    assert.ok(longest < 6, 'no box of many looks like one span');
    assert.ok(used > 0, 'it has the colour of what is in it');
}

/* What a frame draws does not grow with the trace. */
checks.large = async (file) => {
    await withPage(
        file,
        async (page) => {
            const most = 8 * 1280;
            const drawn = () => page.evaluate(() => pinhole[pinhole.view].paint.drawn);
            assert.equal(await page.evaluate(() => pinhole.trace.spans.count), 100002);
            assert.match(await page.textContent('#notices'), /20,000 more spans were left out/);
            assert.match(await page.textContent('#notices'), /Records were lost in 1 place:/);
            assert.ok((await drawn()) < most);
            await shoot(page, 'large-whole');
            await checkMany(page);
            const point = await pointOf(page, 'guest work');
            await page.mouse.move(point.x, point.y + 30);
            for (let i = 0; i < 24; i++) {
                await page.mouse.wheel(0, -150);
                await settle(page);
                assert.ok((await drawn()) < most, `${await drawn()} boxes`);
                assert.ok((await drawn()) > 5);
                if (i === 12) await shoot(page, 'large-near');
                if (i === 12) await checkMany(page);
            }
            assert.ok((await rangeOf(page)).width < 1e6);
            await page.mouse.click(point.x, point.y);
            assert.equal(await selected(page), 'guest work');
            await press(page, 'ArrowDown', 'Enter', 'ArrowDown', 'ArrowRight');
            assert.ok(await selected(page));
            await shoot(page, 'large-zoomed');
            await searchFor(page, 'syscall write');
            assert.equal(await page.textContent('#search-count'), '1 of 25,000');
            await press(page, 'Escape', '0');
            await page.click('#tab-flame');
            await settle(page);
            assert.ok((await drawn()) < most);
            await page.click('#tab-totals');
            await settle(page);
            assert.match(await page.innerText('#totals-body tr:has-text("syscall write")'), /25,000/);
            assert.ok((await page.evaluate(() => pinhole.frames)) > 24);
        },
        { expected: /willReadFrequently/ } /* the browser's advice to who reads a canvas, as this check does */,
    );
};
