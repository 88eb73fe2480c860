// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The page in use: search, keys, mouse, fingers, and what the views say.
import assert from 'node:assert/strict';
import { pointOf, press, rangeOf, searchFor, selected, settle, shoot, withPage } from './browser.mjs';

export const checks = {};

checks.search = async (file) => {
    await withPage(file, async (page) => {
        const count = () => page.textContent('#search-count');
        await press(page, '/');
        assert.equal(await page.evaluate(() => document.activeElement.id), 'search');
        await page.keyboard.type('PREAD');
        await page.waitForFunction(() => document.getElementById('search-count').textContent === '48');
        await press(page, 'Enter');
        assert.equal(await count(), '1 of 48');
        assert.equal(await selected(page), 'syscall pread64');
        await press(page, 'Enter', 'Shift+Enter', 'Shift+Enter');
        assert.equal(await count(), '48 of 48');
        await shoot(page, 'search-light');
        await searchFor(page, 'step');
        const lit = (label) =>
            page.evaluate((wanted) => {
                const { search, trace } = pinhole;
                const { label: labels, order } = trace.spans;
                return order.filter((span) => trace.labels.texts[labels[span]] === wanted && search.lit[span]).length;
            }, label);
        assert.equal(await lit('step'), 12);
        assert.equal(await lit('syscall pread64'), 48, 'what lies in a match stays as it is');
        assert.equal(await lit('prepare'), 0);
        await searchFor(page, 'moons'); /* a field's value */
        assert.equal(await count(), '1 of 1');
        assert.equal(await selected(page), 'prepare');
        await searchFor(page, 'faults.c'); /* a file's name */
        assert.equal(await selected(page), 'parse');
        await searchFor(page, 'bad header'); /* a log */
        assert.equal(await page.textContent('#details-title'), 'bad header: "PK"');
        await searchFor(page, 'unfinished');
        assert.equal(await count(), '1 of 3');
        await searchFor(page, 'no such thing');
        assert.equal(await count(), 'no match');
        await page.press('#search', 'Escape');
        await settle(page);
        assert.equal(await count(), '');
        assert.equal(await page.inputValue('#search'), '');
    });
};

checks.keyboard = async (file) => {
    await withPage(file, async (page) => {
        const walk = async (key, label) => {
            await press(page, key);
            assert.equal(await selected(page), label, key);
        };
        await walk('Enter', 'create');
        await walk('ArrowDown', 'load');
        await walk('ArrowUp', 'create');
        await walk('ArrowRight', 'start');
        await walk('ArrowDown', 'guest.init');
        await walk('ArrowDown', 'syscall brk');
        await walk('ArrowRight', 'syscall arch_prctl');
        await walk('ArrowLeft', 'syscall brk');
        await page.focus('#timeline');
        await walk('Tab', 'syscall arch_prctl');
        await walk('Shift+Tab', 'syscall brk');
        assert.match(
            await page.textContent('#announcement'),
            /^syscall brk, system call, 60\.00 µs, begins at 900\.0 µs, depth 3$/,
        );
        const whole = await rangeOf(page);
        await press(page, 'Enter');
        assert.ok((await rangeOf(page)).width < whole.width / 50, 'Enter zooms to the selected span');
        await press(page, '0');
        assert.deepEqual(await rangeOf(page), whole);
        assert.ok(await page.evaluate(() => pinhole.range.isWhole));
        await walk('Escape', null);
        await press(page, '+', '+');
        const near = await rangeOf(page);
        assert.ok(near.width < whole.width * 0.6);
        await press(page, 'ArrowRight');
        assert.ok((await rangeOf(page)).from > near.from, 'arrow keys move while nothing is selected');
        await press(page, 'a');
        assert.ok(Math.abs((await rangeOf(page)).from - near.from) < 1);
        await press(page, 's', '-');
        assert.ok(Math.abs((await rangeOf(page)).width - whole.width) < 10);
        assert.ok(await page.evaluate(() => pinhole.range.isWhole), 'no handle is left at the edges');
        await press(page, 'Tab');
        assert.notEqual(await page.evaluate(() => document.activeElement.id), 'timeline', 'Tab leaves the drawing');
        await press(page, '?');
        assert.ok(await page.isVisible('#help'));
        await shoot(page, 'help-light');
        await press(page, 'Escape');
        assert.ok(await page.isHidden('#help'));
        await press(page, '2');
        assert.ok(await page.isVisible('#view-flame'));
        await walk('ArrowDown', 'call query');
        await walk('ArrowDown', 'guest query');
        await walk('ArrowUp', 'call query');
        await walk('ArrowRight', 'call hash');
        assert.ok(await page.isEnabled('#zoom-in'));
        await press(page, '3');
        assert.ok(await page.isVisible('#view-totals'));
        assert.ok((await page.isDisabled('#zoom-in')) && (await page.isDisabled('#zoom-out')));
        await press(page, '1', 't');
        assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
        await page.focus('#tab-timeline');
        await press(page, 'ArrowRight');
        assert.equal(await page.getAttribute('#tab-flame', 'aria-selected'), 'true');
    });
};

checks.mouse = async (file) => {
    await withPage(file, async (page) => {
        const timeAt = (x) => page.evaluate((at) => pinhole.timeline.timeOf(at), x);
        const point = await pointOf(page, 'prepare');
        await page.mouse.move(point.x, point.y);
        await settle(page);
        assert.equal(await page.textContent('#tip'), 'prepare1.300 ms');
        const whole = await rangeOf(page);
        const under = await timeAt(point.x);
        for (let i = 0; i < 5; i++) await page.mouse.wheel(0, -200);
        await page.waitForFunction((width) => pinhole.range.width < width / 3, whole.width);
        assert.ok(
            Math.abs((await timeAt(point.x)) - under) < whole.width / 1000,
            'what is under the pointer stays there',
        );
        const before = await rangeOf(page);
        await page.mouse.down();
        await page.mouse.move(point.x + 100, point.y, { steps: 5 });
        await page.mouse.up();
        await settle(page);
        assert.ok((await rangeOf(page)).from < before.from, 'a drag moves');
        assert.equal(await selected(page), null, 'and selects nothing');
        await page.click('#zoom-all');
        await page.mouse.click(point.x, point.y);
        assert.equal(await selected(page), 'prepare');
        await page.mouse.click(700, 770);
        assert.equal(await selected(page), null);
        await page.keyboard.down('Shift');
        await page.mouse.move(400, 300);
        await page.mouse.down();
        await page.mouse.move(600, 300, { steps: 4 });
        const [from, to] = [await timeAt(400), await timeAt(600)];
        await page.mouse.up();
        await page.keyboard.up('Shift');
        await settle(page);
        assert.ok(
            Math.abs((await rangeOf(page)).from - from) < 1 && Math.abs((await rangeOf(page)).to - to) < 1,
            'Shift and a drag choose a range',
        );
        const strip = await page.locator('#overview-canvas').boundingBox();
        await page.click('#zoom-all');
        const gutter = await page.evaluate(() => pinhole.timeline.gutter);
        const stripAt = (part) => strip.x + gutter + (strip.width - gutter) * part;
        await page.mouse.move(stripAt(0.2), strip.y + 20);
        await page.mouse.down();
        await page.mouse.move(stripAt(0.4), strip.y + 20, { steps: 4 });
        await page.mouse.up();
        await settle(page);
        assert.ok(Math.abs((await rangeOf(page)).width / whole.width - 0.2) < 0.01, 'so does a drag in the strip');
    });
};

checks.touch = async (file) => {
    await withPage(
        file,
        async (page) => {
            const client = await page.context().newCDPSession(page);
            const touch = async (type, ...points) => {
                await client.send('Input.dispatchTouchEvent', {
                    type,
                    touchPoints: points.map(([x, y], id) => ({ x, y, id })),
                });
                await settle(page);
            };
            const whole = await rangeOf(page);
            await touch('touchStart', [150, 400], [250, 400]);
            for (let i = 1; i <= 5; i++) await touch('touchMove', [150 - 12 * i, 400], [250 + 20 * i, 400]);
            await touch('touchEnd');
            const near = await rangeOf(page);
            assert.ok(near.width < whole.width * 0.5, 'two fingers zoom');
            await touch('touchStart', [200, 400]);
            for (let i = 1; i <= 5; i++) await touch('touchMove', [200 - 20 * i, 400]);
            await touch('touchEnd');
            const moved = await rangeOf(page);
            assert.ok(moved.from > near.from && Math.abs(moved.width - near.width) < 1, 'one moves');
            await page.click('#zoom-all');
            const point = await pointOf(page, 'guest query');
            await page.touchscreen.tap(point.x, point.y);
            await settle(page);
            assert.equal(await selected(page), 'guest query');
            const low = () =>
                page.evaluate(() =>
                    [...document.querySelectorAll('button, input[type=search]')]
                        .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 40)
                        .map((each) => each.id || each.textContent),
                );
            assert.deepEqual(await low(), []);
            await shoot(page, 'touch-400');
            await page.click('#tab-totals');
            await settle(page);
            assert.deepEqual(await low(), []);
            assert.ok(await page.isVisible('#totals-hint'), 'there are more columns');
            await page.evaluate(() => (document.getElementById('totals-scroll').scrollLeft = 1000));
            await settle(page);
            assert.ok(await page.isHidden('#totals-hint'));
            await page.click('#help-open');
            await settle(page);
            const dialog = await page.locator('#help').boundingBox();
            assert.ok(dialog.x >= 12 && dialog.x + dialog.width <= 388, 'a margin at both sides');
            const heading = await page.locator('#help-title').boundingBox();
            assert.ok(heading.y >= dialog.y && heading.y < dialog.y + 60, 'the dialog begins at its beginning');
            await shoot(page, 'help-400');
        },
        { hasTouch: true, isMobile: true, width: 400 },
    );
};

checks.details = async (file) => {
    await withPage(file, async (page) => {
        const has = async (...texts) => {
            const text = await page.innerText('#details');
            for (const each of texts) assert.ok(text.includes(each), each + ' is not in:\n' + text);
        };
        await searchFor(page, 'prepare');
        await has(
            'prepare',
            'user',
            '1.300 ms (1,300,000 ns)',
            '+2.100 ms',
            'guests/sqlite/sqlite.c:114',
            'guest query',
            'SELECT name, moons\n  FROM planets',
            '-9007199254740993',
            '18446744073709551615',
            '0.1',
            'true',
            '0x401136',
            '3q2+7w==',
            'cut: it had 5,000 bytes',
            'a second one of that name',
            'Events (1)',
            'cache.miss',
        );
        await shoot(page, 'details-light');
        const text = await page.innerText('#details');
        const places = ['Fields', 'Duration', 'Source', 'Parent', 'Sandbox', 'Events (1)'].map((each) =>
            text.indexOf(each),
        );
        assert.deepEqual(
            places,
            [...places].sort((a, b) => a - b),
            'what was said comes first',
        );
        assert.deepEqual(
            await page.evaluate(() =>
                [...document.querySelectorAll('#details .whole')].filter(
                    (each) => each.getClientRects().length > 1 || each.getBoundingClientRect().right > innerWidth - 14,
                ),
            ),
            [],
        );
        const moments = (await page.innerText('#details')).match(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.(\d{9}) UTC/g);
        const [begin, end] = moments.map((moment) => BigInt(moment.slice(20, 29)));
        assert.equal((end - begin + 1000000000n) % 1000000000n, 1300000n, 'times are to the nanosecond');
        await page.click('#details .link:has-text("guest query")');
        assert.equal(await selected(page), 'guest query');
        await has('Inside it (', 'Events (', 'slow: 2 of 12 rows sorted');
        await page.click('#details .link:has-text("slow:")');
        await has('log', 'warn', 'slow: %d of %d rows sorted', 'src/store.c:88', 'store_write');
        await page.click('#search');
        await searchFor(page, 'call query');
        await has('4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7', 'congo=t61rcWkgMzE', 'none: this is a root');
        await has('3 fields left out');
        assert.match(await page.innerText('#details'), /Span id\n[0-9a-f]{16}\n/);
        await shoot(page, 'ids-light');
        await searchFor(page, 'call parse');
        await has('page-fault', 'the guest wrote to 0x10, which is not mapped, in parse+0x2c');
        await shoot(page, 'failed-light');
        await searchFor(page, 'write-back');
        await press(page, 'Enter');
        await has('unfinished', 'async');
        await page.click('#details-close');
        assert.ok(await page.isHidden('#details'));
    });
};

checks.totals = async (file) => {
    await withPage(file, async (page) => {
        const rows = () => page.locator('#totals-body tr').allInnerTexts();
        const row = async (name) =>
            (await rows()).map((each) => each.split(/\s*[\n\t]\s*/)).find((each) => each[0] === name);
        await press(page, '3');
        await shoot(page, 'totals-light');
        assert.deepEqual(await row('step'), ['step', '12', '4.560 ms', '1.277 ms', '380.0 µs', '460.0 µs', '–']);
        assert.deepEqual((await row('call parse')).slice(-1), ['▲ 1']);
        assert.ok((await rows())[0].startsWith('call query'));
        await page.click('button[data-key=count]');
        assert.ok((await rows())[0].startsWith('syscall pread64'));
        assert.equal(await page.getAttribute('th:has(button[data-key=count])', 'aria-sort'), 'descending');
        await page.click('button[data-key=count]');
        assert.equal(await page.getAttribute('th:has(button[data-key=count])', 'aria-sort'), 'ascending');
        await page.click('button[data-key=name]');
        const names = (await rows()).map((each) => each.split(/\s*[\n\t]/)[0]);
        assert.deepEqual(names, [...names].sort());
        await page.fill('#search', 'parse');
        await page.waitForFunction(() => document.querySelectorAll('#totals-body tr').length === 4);
        await page.click('#totals-body .name:has-text("call parse")');
        assert.equal(await selected(page), 'call parse');
    });
};

checks.flame = async (file) => {
    await withPage(file, async (page) => {
        const total = (path) =>
            page.evaluate((names) => {
                let frame = pinhole.flame.root;
                for (const name of names) frame = frame && frame.children.get(pinhole.trace.labels.texts.indexOf(name));
                return frame ? [frame.total, frame.count] : null;
            }, path);
        await press(page, '2');
        await shoot(page, 'flame-light');
        assert.deepEqual(await total(['call query', 'guest query', 'step']), [4560000, 12]);
        assert.deepEqual(
            await total(['call query', 'guest query', 'step', 'btree_next()', 'syscall pread64']),
            [228000, 12],
        );
        assert.deepEqual(await total(['call hash']), [4800000, 3]);
        assert.equal(await total(['write-back (async)']), null);
        const boxes = () =>
            page.evaluate(() => pinhole.flame.boxes.map((box) => pinhole.trace.labels.texts[box.frame.label]));
        assert.ok((await boxes()).includes('start'));
        const step = await page.evaluate(() => {
            const box = pinhole.flame.boxes.find((each) => pinhole.trace.labels.texts[each.frame.label] === 'step');
            const canvas = pinhole.flame.canvas.getBoundingClientRect();
            return { x: canvas.left + box.x + box.width / 2, y: canvas.top + box.y + 8 };
        });
        await page.mouse.move(step.x, step.y);
        await settle(page);
        assert.match(await page.textContent('#tip'), /^step4\.560 ms · 28\.1% · 12 times$/);
        await page.mouse.click(step.x, step.y);
        await settle(page);
        assert.ok(!(await boxes()).includes('start'), 'a frame that was clicked fills the picture');
        assert.equal(await selected(page), 'step');
        await shoot(page, 'flame-step-light');
        await page.click('#flame-up');
        await settle(page);
        assert.ok((await boxes()).includes('start'));
        await page.evaluate(() => pinhole.range.set(pinhole.trace.bounds.from, pinhole.trace.bounds.from + 1e6));
        await page.click('#flame-visible');
        await settle(page);
        assert.ok(!(await boxes()).includes('call query'), 'of the visible part');
    });
};
