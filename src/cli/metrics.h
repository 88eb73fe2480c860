/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The option of `run` and `call` that serves metrics over HTTP while the command runs.
 */
#ifndef PH_CLI_METRICS_H
#define PH_CLI_METRICS_H

#include <pinhole/metrics.h>
#include <pinhole/trace.h>

#include "cli/options.h"

struct MHD_Daemon;

/* Zeroed to begin with. The first part is filled in by PH__METERING_OPTIONS, the rest by ph__metering_open.
 */
struct ph__metering {
    const char *listen;

    ph_metrics *metrics;
    struct MHD_Daemon *server;
};

/* Entries for a list of options, for (metering), a struct ph__metering. */
#define PH__METERING_OPTIONS(metering)                                                                       \
    { "--metrics-listen", PH__OPTION_WORD, &(metering).listen }

/* The option as --help shows it. */
#define PH__METERING_HELP                                                                                    \
    "  --metrics-listen [ADDR]:PORT\n"                                                                       \
    "                      serve metrics for Prometheus at http://ADDR:PORT/metrics until the command\n"     \
    "                      ends; without ADDR on 127.0.0.1; port 0 is any that is free\n"

/* Checks the option. Returns PH__OPTIONS_GO_ON or an exit status. */
int ph__metering_check(const struct ph__command *command, const struct ph__metering *metering);

/* Makes the metrics that (config)'s sandbox is counted among, and begins to serve them, when that was asked
 * for. Says where on stderr. Returns as ph__metering_check; ph__metering_free is due in any case. */
int ph__metering_open(const struct ph__command *command, struct ph__metering *metering, ph_config *config);

/* Ends the serving. The counts stay. */
void ph__metering_stop(struct ph__metering *metering);

/* Frees what is left, after the sandbox was destroyed, also without ph__metering_stop. */
void ph__metering_free(struct ph__metering *metering);

#endif
