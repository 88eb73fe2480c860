// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A page in headless Chromium, with all that it does beside being a page written down: requests, dialogs, errors,
// breaches of its policy.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { mkdirSync } from 'node:fs';
import path from 'node:path';

const modules = createRequire(path.join(process.env.PH_TEST_CACHE, 'npm', 'package.json'));
const { chromium } = modules('playwright-core');

const ARGUMENTS = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
];

let browser = null;

/* The one of all checks; another one when it has crashed. Each check has a profile of its own. */
async function theBrowser() {
    if (!browser || !browser.isConnected())
        browser = await chromium.launch({ executablePath: process.env.PH_TEST_CHROMIUM, args: ARGUMENTS });
    return browser;
}

export async function closeBrowser() {
    if (browser) await browser.close();
}

/* Opens (file) and gives it to (check). Fails when (check) does, and when the page did what no page may, but for what
 * (expected) matches. */
export async function withPage(file, check, { width = 1280, height = 800, expected = /^$/, ...options } = {}) {
    const context = await (
        await theBrowser()
    ).newContext({
        viewport: { width, height },
        reducedMotion: 'reduce',
        colorScheme: 'light',
        ...options,
    });
    try {
        const page = await context.newPage();
        const problems = watch(page, 'file://' + file);
        await page.addInitScript(() => {
            document.addEventListener('securitypolicyviolation', (event) =>
                console.error('policy: ' + event.violatedDirective),
            );
        });
        await page.goto('file://' + file);
        await page.waitForFunction(() => document.documentElement.dataset.ready === 'true');
        await settle(page);
        await check(page);
        await settle(page);
        assert.deepEqual(
            problems.filter((problem) => !expected.test(problem)),
            [],
        );
    } finally {
        await context.close();
    }
}

function watch(page, url) {
    const problems = [];
    page.on('console', (message) => problems.push('console: ' + message.text()));
    page.on('pageerror', (error) => problems.push('error: ' + error.stack));
    page.on(
        'request',
        (request) => request.url() !== url && request.url() !== 'data:,' && problems.push('request: ' + request.url()),
    );
    page.on('popup', () => problems.push('a window was opened'));
    page.on('dialog', (dialog) => {
        problems.push('dialog: ' + dialog.message());
        dialog.dismiss();
    });
    return problems;
}

/* Two frames: what was asked for has been drawn. */
export async function settle(page) {
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

export async function press(page, ...keys) {
    for (const key of keys) {
        await page.keyboard.press(key);
        await settle(page);
    }
}

/* What is searched for is found at once with Enter. */
export async function searchFor(page, text) {
    await page.fill('#search', text);
    await page.press('#search', 'Enter');
    await settle(page);
}

/* The label of the selected span, or null. */
export async function selected(page) {
    return page.evaluate(() => {
        const { selection, trace } = pinhole;
        return selection && selection.type === 'span' ? trace.labels.texts[trace.spans.label[selection.index]] : null;
    });
}

export async function rangeOf(page) {
    return page.evaluate(() => ({ from: pinhole.range.from, to: pinhole.range.to, width: pinhole.range.width }));
}

/* The middle of the first span with (label), in the window. */
export async function pointOf(page, label) {
    return page.evaluate((wanted) => {
        const { trace, timeline } = pinhole;
        const span = trace.spans.order.find((each) => trace.labels.texts[trace.spans.label[each]] === wanted);
        const box = timeline.canvas.getBoundingClientRect();
        const line = timeline.lineOfRow.get(trace.spans.row[span]);
        const x = timeline.xOf((trace.spans.start[span] + trace.spans.end[span]) / 2);
        return { x: box.left + x, y: box.top + line.y + 26 - timeline.scroller.scrollTop + 10 };
    }, label);
}

export async function shoot(page, name) {
    const folder = process.env.PH_TEST_SCREENSHOTS;
    if (!folder) return;
    mkdirSync(folder, { recursive: true });
    await page.screenshot({ path: path.join(folder, name + '.png') });
}
