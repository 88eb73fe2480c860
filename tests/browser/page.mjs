// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks the pages that --trace html writes. test_html_page.c, which makes them (html_pages.c), says which: a line
// `CHECK PAGE` on standard input is answered with what is wrong, or nothing, and a NUL. With PH_TEST_SCREENSHOTS it
// leaves pictures in that folder. One browser serves all lines: to start it takes longer than most checks.
import { createInterface } from 'node:readline';
import { closeBrowser } from './browser.mjs';
import { checks as hostile } from './hostile.mjs';
import { checks as looks } from './looks.mjs';
import { checks as use } from './use.mjs';

const checks = { ...hostile, ...looks, ...use };

async function problemOf(name, file) {
    try {
        await checks[name](file);
        return '';
    } catch (error) {
        return String(error.stack || error);
    }
}

for await (const line of createInterface({ input: process.stdin })) {
    const [name, file] = line.split(' ');
    process.stdout.write((await problemOf(name, file)) + '\0');
}
await closeBrowser();
