// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a page must not do, and pages that are not as they should be: hostile texts, no end, nothing in it.
import assert from 'node:assert/strict';
import { pointOf, press, searchFor, selected, settle, shoot, withPage } from './browser.mjs';

export const checks = {};

checks.hostile = async (file) => {
    await withPage(file, async (page) => {
        for (const key of ['1', '2', '3']) await press(page, key);
        await shoot(page, 'hostile-totals');
        await press(page, '1', 'Enter');
        for (let i = 0; i < 40; i++) await press(page, 'Tab');
        for (const attack of [
            '</script><script>window.__pwned=1</script>',
            '<img src=http://127.0.0.1:9/ onerror=alert(4)>',
            '&lt;script&gt;&#60;b&#62;',
            '__proto__',
        ]) {
            await searchFor(page, attack);
            for (let i = 0; i < 20; i++) await page.press('#search', 'Enter');
            assert.ok((await page.textContent('#details')).includes(attack), attack);
        }
        await searchFor(page, 'txet desrever');
        assert.ok(
            (await page.textContent('#details-title')).includes('\\u{202e}'),
            'turned text is shown as it is written',
        );
        await shoot(page, 'hostile-timeline');
        const point = await pointOf(page, '</script><script>window.__pwned=1</script>');
        await page.mouse.move(point.x, point.y);
        await settle(page);
        assert.equal(await page.textContent('#tip b'), '</script><script>window.__pwned=1</script>');
        const found = await page.evaluate(() => ({
            pwned: typeof window.__pwned,
            strangers: document.querySelectorAll('img, iframe, svg svg, [onload], [onerror]').length,
            scripts: document.querySelectorAll('script:not(.chunk)').length,
            spans: pinhole.trace.spans.count,
            events: pinhole.trace.events.length,
            title: document.title.replace(/\d+-\d+-\d+ \d+:\d+:\d+ UTC/, 'TIME'),
            polluted: typeof {}.polluted,
        }));
        assert.deepEqual(found, {
            pwned: 'undefined',
            strangers: 0,
            scripts: 1,
            spans: 138,
            events: 34,
            title: 'W'.repeat(60) + '…, </title><script>window.__pwned=11</script>\\u{202e} – TIME – pinhole trace',
            polluted: 'undefined',
        });
    });
};

/* A script that got into the page all the same would not run. */
checks.policy = async (file) => {
    await withPage(
        file,
        async (page) => {
            await page.evaluate(() => {
                window.breaches = [];
                document.addEventListener('securitypolicyviolation', (event) =>
                    window.breaches.push(event.effectiveDirective),
                );
                const add = (tag, properties) =>
                    document.body.append(Object.assign(document.createElement(tag), properties));
                add('script', { textContent: 'window.__pwned = 1' });
                add('style', { textContent: 'body { display: none }' });
                add('img', { src: 'http://127.0.0.1:9/x' });
                add('iframe', { src: 'http://127.0.0.1:9/y' });
                document.body.insertAdjacentHTML('beforeend', '<img src="data:," onerror="window.__pwned = 2">');
            });
            await page.waitForFunction(() => window.breaches.length >= 5);
            const breaches = await page.evaluate(() => window.breaches.sort());
            assert.deepEqual(breaches, [
                'frame-src',
                'img-src',
                'script-src-attr',
                'script-src-elem',
                'style-src-elem',
            ]);
            assert.equal(await page.evaluate(() => typeof window.__pwned), 'undefined');
        },
        { expected: /policy|request: http:..127.0.0.1:9.x/i },
    );
};

/* As a killed process leaves it: all but the item under way. */
checks.killed = async (file) => {
    await withPage(file, async (page) => {
        assert.match(await page.textContent('#notices'), /This trace has no end/);
        assert.equal(await page.evaluate(() => pinhole.trace.spans.count), 133);
        await shoot(page, 'killed-light');
        await searchFor(page, 'guest hash');
        assert.equal(await page.textContent('#search-count'), '1 of 3');
        await searchFor(page, 'call hash');
        assert.equal(await page.textContent('#search-count'), '1 of 2');
        for (const view of ['flame', 'totals']) await page.click('#tab-' + view);
    });
};

checks.whole = async (file) => {
    await withPage(file, async (page) => {
        assert.equal(await page.textContent('#notices'), '');
        assert.equal(await page.textContent('#summary'), '2 sandboxes · 134 spans · 4 events · 3 failed · 13.00 ms');
        assert.match(
            await page.title(),
            /^call query, call hash, call parse – \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC – pinhole trace$/,
        );
        assert.equal(await page.textContent('#roots'), 'call query, call hash, call parse');
        assert.match(await page.textContent('#version'), /^\d+\.\d+\.\d+/);
        for (const [count, label] of [
            ['1 of 3', 'call parse'],
            ['2 of 3', 'guest parse'],
            ['3 of 3', 'parse'],
            ['1 of 3', 'call parse'],
        ]) {
            await page.click('#failures');
            assert.equal(await page.textContent('#search-count'), count);
            assert.equal(await selected(page), label);
        }
    });
};

checks.query = async (file) => {
    await withPage(file, async (page) => {
        await searchFor(page, 'select 1');
        assert.ok(['prepare', 'call query'].includes(await selected(page)));
        await searchFor(page, 'guest query');
        assert.match(await page.innerText('#details'), /Parent\s+call query/);
        assert.match(await page.title(), /^call query – /);
        await shoot(page, 'query');
    });
};

checks.empty = async (file) => {
    await withPage(file, async (page) => {
        assert.match(await page.textContent('#notices'), /There are no spans/);
        for (const key of ['Enter', 'Tab', 'ArrowDown', '2', 'ArrowDown', '3', '1', '+', '0']) await press(page, key);
        await searchFor(page, 'x');
        assert.equal(await page.textContent('#search-count'), 'no match');
    });
};
