/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the static library has in place of plugin.c: KVM alone (plugin.h).
 */
#include "base/error.h"
#include "vm/plugin.h"

ph_status ph__plugin_find(const struct ph__backend **backend, ph_error *error) {
    (void)backend;
    return ph__error_set(
        error, PH_E_BACKEND,
        "there is no soft backend in libpinhole.a, which has KVM only: link libpinhole.so, which "
        "opens its plug-in");
}
