/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Which format of the metrics a client gets for its header Accept.
 */
#include "cli/accept.h"
#include "support/support.h"

#define OPEN "application/openmetrics-text"

static void openmetrics_is_for_who_asks_for_it(void **state) {
    static const char *const asking[] = {
        OPEN,
        OPEN "; version=1.0.0; charset=utf-8",
        OPEN ";version=\"1.0.0\"",
        "Application/OpenMetrics-Text",
        /* Prometheus, 2.5 and later. */
        OPEN ";version=1.0.0;q=0.5," OPEN ";version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        OPEN ";q=0.001",
        OPEN ";q=1.000, text/plain;q=1",
        "text/html ,\t" OPEN " ; q=0.7 , text/plain;q=0.700",
        ",, " OPEN ",",
    };
    static const char *const others[] = {
        NULL,
        "",
        "*/*",
        "text/plain",
        "application/*",
        OPEN ";q=0",
        OPEN ";q=0.000",
        OPEN ";q=2",
        OPEN ";q=1.5",
        OPEN ";q=x",
        OPEN ";q=",
        OPEN ";q",
        OPEN ";q=-1",
        OPEN ";q=0.3,text/plain;q=0.4",
        OPEN ";version=2.0.0",
        OPEN ";version=0.0.1",
        OPEN "x",
        "x" OPEN,
        "text/html;x=" OPEN,
        ";;;;====,,,,\"",
    };
    (void)state;

    for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++)
        if (ph__accept_format(asking[i]) != PH_METRICS_OPENMETRICS)
            fail_msg("not OpenMetrics: %s", asking[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (ph__accept_format(others[i]) != PH_METRICS_PROMETHEUS)
            fail_msg("OpenMetrics: %s", others[i] ? others[i] : "nothing");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openmetrics_is_for_who_asks_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
