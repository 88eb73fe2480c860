/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Chooses a backend (backend.h).
 */
#include "vm/backend.h"

#include <stdio.h>

#include "base/error.h"
#include "vm/plugin.h"

const struct ph__backend *ph__backend_instead;

static const struct ph__backend *kvm(void) {
    return ph__backend_instead ? ph__backend_instead : &ph__backend_kvm;
}

static ph_status find_best(ph_diagnostics_fn diagnostics, void *context, const struct ph__backend **backend,
                           ph_error *error) {
    char line[2 * PH_ERROR_MESSAGE_MAX];
    ph_error why, ignored;

    *backend = kvm();
    if (kvm()->probe(&why) == PH_OK)
        return PH_OK;
    if (ph__plugin_find(backend, &ignored) != PH_OK)
        return ph__error_set(error, PH_E_BACKEND, "%s; and %s", why.message, ignored.message);
    snprintf(line, sizeof line, "running on the soft backend, which isolates less than KVM would: %s",
             why.message);
    if (diagnostics)
        diagnostics(context, line);
    return PH_OK;
}

ph_status ph__backend_find(ph_backend wanted, ph_diagnostics_fn diagnostics, void *context,
                           const struct ph__backend **backend, ph_error *error) {
    switch (wanted) {
    case PH_BACKEND_KVM:
        *backend = kvm();
        return PH_OK;
    case PH_BACKEND_AUTO:
        return find_best(diagnostics, context, backend, error);
    case PH_BACKEND_SOFT:
        return ph__plugin_find(backend, error);
    default:
        return ph__error_set(error, PH_E_ARGUMENT, "there is no backend number %d", (int)wanted);
    }
}
