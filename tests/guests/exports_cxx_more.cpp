/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The second file of the guest exports_cxx: it uses the same inline functions, templates and imports, so that
 * the linker has two of each to choose from.
 */
#include "exports_cxx.h"

namespace more {

static int32_t all(int32_t x) {
    return math::through_import<int32_t>(x) + in_line(x) + math::sum<int32_t>(x, 1);
}
PH_EXPORT_AS(more, all, PH_I32, PH_I32);

static const char *try_join(const char *a, const char *b) {
    const char *joined;
    int32_t code = host::ph_try_join(a, b, &joined);

    return code == 0 ? joined : ph_strf("%d: %s", code, ph_error_message());
}
PH_EXPORT(try_join, PH_STR, PH_STR, PH_STR);

} // namespace more
