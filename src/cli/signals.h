/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Ctrl-C and SIGTERM: the first one interrupts the guest, a second one ends the process at once.
 */
#ifndef PH_CLI_SIGNALS_H
#define PH_CLI_SIGNALS_H

#include <pinhole/pinhole.h>

/* Installs the handlers. Once, before the first sandbox. False when the kernel refuses. */
bool ph__signals_init(void);

/* What a signal interrupts from now on; NULL is nothing. Set back before the sandbox is destroyed. */
void ph__signals_target(ph_sandbox *sandbox);

/* The signal that came, or 0. */
int ph__signals_received(void);

/* A descriptor that can be read from once a signal has come, for poll; -1 when there is none. */
int ph__signals_descriptor(void);

#endif
