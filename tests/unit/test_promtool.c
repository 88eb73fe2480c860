/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Prometheus' own checker reads what is written for it. `make test` fetches it; without it this is skipped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "metrics/counts.h"
#include "support/support.h"

static const char *promtool(void) {
    static char path[1024];
    const char *cache = getenv("PH_TEST_CACHE");

    assert_non_null(cache);
    snprintf(path, sizeof path, "%s/prometheus/usr/bin/promtool", cache);
    if (access(path, X_OK) != 0) {
        print_message("no promtool at %s: scripts/fetch-data.sh prometheus\n", path);
        skip();
    }
    return path;
}

/* Whether promtool finds nothing to say about the (size) bytes at (text). */
static bool is_fine(const char *text, size_t size) {
    char command[1100];

    snprintf(command, sizeof command, "'%s' check metrics 2>&1", promtool());
    FILE *pipe = popen(command, "we"); /* NOLINT(cert-env33-c): the build's own file */
    assert_non_null(pipe);
    fwrite(text, 1, size, pipe);
    return pclose(pipe) == 0;
}

static void promtool_has_nothing_to_say(void **state) {
    ph_metrics *metrics;
    struct ph__counts *counts;
    ph_error error;
    size_t size;
    (void)state;

    promtool();
    assert_int_equal(ph_metrics_create(&metrics, &error), PH_OK);
    char *text = ph_metrics_text(metrics, PH_METRICS_PROMETHEUS, &size);
    assert_true(is_fine(text, size));
    free(text);
    assert_int_equal(ph__counts_open(metrics, 1000000, &counts, &error), PH_OK);
    for (unsigned i = 0; i < PH__CELLS_COUNTED; i++)
        ph__count(counts, i, i);
    text = ph_metrics_text(metrics, PH_METRICS_PROMETHEUS, &size);
    assert_true(is_fine(text, size));
    free(text);
    ph__counts_close(counts, false);
    ph_metrics_destroy(metrics);
    /* It does look: a name that it minds, and what is no metric. */
    static const char minded[] = "# HELP a_counter x\n# TYPE a_counter counter\na_counter 1\n";
    assert_false(is_fine(minded, sizeof minded - 1));
    assert_false(is_fine("a b c\n", 6));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promtool_has_nothing_to_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
