/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A collector of OpenTelemetry that takes all that is sent to it over HTTP, looks at none of it, and says so:
 * a process of its own on a port of 127.0.0.1.
 */
#ifndef BENCH_COLLECTOR_H
#define BENCH_COLLECTOR_H

#include <sys/types.h>

struct collector {
    pid_t process;
    char endpoint[40]; /* http://127.0.0.1:PORT */
};

/* Before this process has threads. */
void collector_start(struct collector *collector);
void collector_stop(const struct collector *collector);

#endif
