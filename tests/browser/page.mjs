// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of the page that --trace html writes: `node page.mjs CHECK PAGE`, run by test_html_page.c, which has made the
// page (html_pages.c). Ends with 1 and says what is wrong. With PH_TEST_SCREENSHOTS it leaves pictures in that folder.
import { checks as hostile } from './hostile.mjs';
import { checks as looks } from './looks.mjs';
import { checks as use } from './use.mjs';

const checks = { ...hostile, ...looks, ...use };
const [name, file] = process.argv.slice(2);
try {
    await checks[name](file);
} catch (error) {
    console.error(error.stack || error);
    process.exitCode = 1;
}
