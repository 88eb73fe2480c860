/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the two files of the guest exports_cxx share: inline functions and templates that call imports.
 */
#ifndef TESTS_GUESTS_EXPORTS_CXX_H
#define TESTS_GUESTS_EXPORTS_CXX_H

#include "imports.h"

/* The same import in another namespace is the same import. */
namespace other {
PH_IMPORT(add, PH_I32, PH_I32, PH_I32);
}

inline int32_t in_line(int32_t x) {
    return host::add_three(x, 10, 100);
}

namespace math {

template <typename T> T sum(T a, T b) {
    return a + b;
}

template <typename T, typename U> T mixed(T a, U b) {
    return a + static_cast<T>(b);
}

template <typename T> T through_import(T x) {
    return host::add(x, other::add(x, 1));
}

struct box {
    static int64_t twice(int64_t x) {
        return 2 * x;
    }
};

inline const char *overloaded(int32_t x) {
    return ph_strf("i32 %d", x);
}

inline const char *overloaded(const char *x) {
    return ph_strf("str %s", x);
}

} // namespace math

#endif
