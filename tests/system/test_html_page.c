/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The page of the sink for HTML in a real browser, headless Chromium: tests/browser/page.mjs looks at pages
 * that are made here. Skipped where there is no Chromium, no node, or no driver for it (fetch-data.sh npm).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"
#include "system/command_runner.h"
#include "system/html_pages.h"

#define CHROMIUM "/usr/bin/chromium"

static char page[64];

/* The process that has the browser, while there is one. */
static struct {
    pid_t process;
    FILE *asks, *answers;
} checker;

static int make_name(void **state) {
    (void)state;
    snprintf(page, sizeof page, "/tmp/pinhole-page-%d.html", (int)getpid());
    return 0;
}

static int clean_up(void **state) {
    (void)state;
    unlink(page);
    if (!checker.process)
        return 0;
    fclose(checker.asks);
    fclose(checker.answers);
    return waitpid(checker.process, NULL, 0) == checker.process ? 0 : -1;
}

static void skip_without(const char *what, bool there) {
    if (there)
        return;
    print_message("skipped: there is no %s\n", what);
    skip();
}

static void needs_a_browser(void) {
    char driver[512];

    snprintf(driver, sizeof driver, "%s/npm/node_modules/playwright-core/package.json",
             getenv("PH_TEST_CACHE"));
    skip_without(CHROMIUM, access(CHROMIUM, X_OK) == 0);
    skip_without("playwright-core: scripts/fetch-data.sh npm gets it", access(driver, R_OK) == 0);
    /* NOLINTNEXTLINE(cert-env33-c): a constant command */
    skip_without("node", system("command -v node >/dev/null 2>&1") == 0);
}

/* Starts page.mjs, with pipes as its standard input and output. */
static void start_checker(void) {
    char script[512];
    int asks[2], answers[2];

    snprintf(script, sizeof script, "%s/tests/browser/page.mjs", getenv("PH_TEST_SOURCE"));
    assert_int_equal(setenv("PH_TEST_CHROMIUM", CHROMIUM, 1), 0);
    assert_int_equal(pipe2(asks, O_CLOEXEC), 0);
    assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
    checker.process = fork();
    assert_true(checker.process >= 0);
    if (!checker.process) {
        dup2(asks[0], STDIN_FILENO);
        dup2(answers[1], STDOUT_FILENO);
        execlp("node", "node", script, (char *)NULL);
        _exit(127);
    }
    close(asks[0]);
    close(answers[1]);
    checker.asks = fdopen(asks[1], "w");
    checker.answers = fdopen(answers[0], "r");
    assert_non_null(checker.asks);
    assert_non_null(checker.answers);
    signal(SIGPIPE, SIG_IGN);
}

/* Has (check) of page.mjs look at the page. */
static void look(const char *check) {
    char *text = NULL;
    size_t size = 0;

    if (!checker.process)
        start_checker();
    fprintf(checker.asks, "%s %s\n", check, page);
    fflush(checker.asks);
    if (getdelim(&text, &size, 0, checker.answers) <= 0)
        fail_msg("node ended");
    if (*text)
        fail_msg("%s", text);
    free(text);
}

static void nothing_that_a_guest_says_runs(void **state) {
    (void)state;
    needs_a_browser();
    page_make_hostile(page);
    look("hostile");
}

static void the_page_forbids_what_is_not_its_own(void **state) {
    (void)state;
    needs_a_browser();
    page_make_rich(page);
    look("policy");
}

static void a_whole_trace_has_no_notice(void **state) {
    (void)state;
    needs_a_browser();
    page_make_rich(page);
    look("whole");
}

static void search_finds_names_fields_and_places(void **state) {
    (void)state;
    needs_a_browser();
    page_make_rich(page);
    look("search");
}

static void keys_reach_everything(void **state) {
    (void)state;
    needs_a_browser();
    page_make_rich(page);
    look("keyboard");
}

static void the_mouse_moves_zooms_and_selects(void **state) {
    (void)state;
    needs_a_browser();
    page_make_rich(page);
    look("mouse");
}

static void fingers_move_zoom_and_select(void **state) {
    (void)state;
    needs_a_browser();
    page_make_rich(page);
    look("touch");
}

static void details_are_exact(void **state) {
    (void)state;
    needs_a_browser();
    page_make_rich(page);
    look("details");
}

static void totals_add_up(void **state) {
    (void)state;
    needs_a_browser();
    page_make_rich(page);
    look("totals");
}

static void the_flame_graph_adds_up(void **state) {
    (void)state;
    needs_a_browser();
    page_make_rich(page);
    look("flame");
}

static void light_and_dark_can_be_read(void **state) {
    (void)state;
    needs_a_browser();
    page_make_rich(page);
    look("themes");
}

static void it_fits_narrow_and_wide_windows(void **state) {
    (void)state;
    needs_a_browser();
    page_make_rich(page);
    look("widths");
}

static void a_large_trace_costs_a_frame_no_more(void **state) {
    (void)state;
    needs_a_browser();
    page_make_large(page, 120000);
    look("large");
}

static void a_page_without_its_end_is_shown(void **state) {
    (void)state;
    needs_a_browser();
    page_make_killed(page);
    look("killed");
}

static void a_page_of_nothing_is_shown(void **state) {
    (void)state;
    needs_a_browser();
    page_make_empty(page);
    look("empty");
}

/* What the command writes, from a real guest. */
static void a_query_of_the_command_is_shown(void **state) {
    char option[80];

    (void)state;
    needs_a_browser();
    test_needs_kvm();
    snprintf(option, sizeof option, "html:%s", page);
    assert_prints(run_command(ARGUMENTS("call", "--trace", option, test_guest_path("sqlite"), "query",
                                        "\"SELECT 1 AS n\"")),
                  0, "\"[{\\\"n\\\":1}]\"\n");
    look("query");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_that_a_guest_says_runs),
        cmocka_unit_test(the_page_forbids_what_is_not_its_own),
        cmocka_unit_test(a_whole_trace_has_no_notice),
        cmocka_unit_test(search_finds_names_fields_and_places),
        cmocka_unit_test(keys_reach_everything),
        cmocka_unit_test(the_mouse_moves_zooms_and_selects),
        cmocka_unit_test(fingers_move_zoom_and_select),
        cmocka_unit_test(details_are_exact),
        cmocka_unit_test(totals_add_up),
        cmocka_unit_test(the_flame_graph_adds_up),
        cmocka_unit_test(light_and_dark_can_be_read),
        cmocka_unit_test(it_fits_narrow_and_wide_windows),
        cmocka_unit_test(a_large_trace_costs_a_frame_no_more),
        cmocka_unit_test(a_page_without_its_end_is_shown),
        cmocka_unit_test(a_page_of_nothing_is_shown),
        cmocka_unit_test(a_query_of_the_command_is_shown),
    };
    return cmocka_run_group_tests_name("html_page", tests, make_name, clean_up);
}
