/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A plug-in of another version of pinhole, for test_backend.c.
 */
#include "vm/vcpu.h"

const struct ph__backend ph__backend_plugin = {.version = PH__BACKEND_VERSION + 1, .name = "other"};
