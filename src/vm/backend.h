/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Which backend runs a sandbox: the one place that knows how many there are. Used by sandbox.c and
 * snapshot_load.c, and by the command.
 */
#ifndef PH_VM_BACKEND_H
#define PH_VM_BACKEND_H

#include "vm/vcpu.h"

/* Gives (*backend) for (wanted). PH_BACKEND_SOFT opens the plug-in. PH_BACKEND_AUTO is KVM where it runs a
 * probe, and otherwise the plug-in, with one line to (diagnostics), which may be NULL, that says why.
 * PH_E_BACKEND says what to do about it; PH_E_ARGUMENT when there is no such number. */
ph_status ph__backend_find(ph_backend wanted, ph_diagnostics_fn diagnostics, void *context,
                           const struct ph__backend **backend, ph_error *error);

/* For tests: what takes the place of KVM, unless NULL. */
extern const struct ph__backend *ph__backend_instead;

#endif
