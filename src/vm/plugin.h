/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The backend that is in a plug-in: the soft one. plugin.c opens it. The static library that is installed has
 * plugin_none.c in its place, so that a program which links it needs no dynamic linker. Used by backend.c.
 */
#ifndef PH_VM_PLUGIN_H
#define PH_VM_PLUGIN_H

#include "vm/vcpu.h"

/* Gives the backend of the plug-in, which stays open. PH_E_BACKEND says what to do. */
ph_status ph__plugin_find(const struct ph__backend **backend, ph_error *error);

/* For tests: the plug-in's path, unless NULL. */
extern const char *ph__plugin_path;

#endif
