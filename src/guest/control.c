/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Finds the control page, by the auxiliary vector: also before ph_serve, since a static constructor may ask
 * whether it runs in pinhole or call the host.
 */
#include "internal.h"

const struct ph__control *ph__control_find(void) {
    static const struct ph__control *found;
    static bool looked;

    if (!looked) {
        found = (const struct ph__control *)getauxval(PH__AT_PINHOLE);
        looked = true;
    }
    return found;
}

bool ph_running_in_pinhole(void) {
    return ph__control_find() != NULL;
}
