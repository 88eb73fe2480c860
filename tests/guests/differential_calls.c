/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * For test_differential_calls.c: each type through a host function and back, all of them at once, numbers
 * that are worked with, and errors.
 */
#include <string.h>

#include <pinhole/guest.h>

#define THROUGH(name, type, tag)                                                                             \
    PH_IMPORT(visit_##name, tag, tag);                                                                       \
    static type through_##name(type value) {                                                                 \
        return visit_##name(value);                                                                          \
    }                                                                                                        \
    PH_EXPORT(through_##name, tag, tag)

THROUGH(i32, int32_t, PH_I32);
THROUGH(u32, uint32_t, PH_U32);
THROUGH(i64, int64_t, PH_I64);
THROUGH(u64, uint64_t, PH_U64);
THROUGH(f32, float, PH_F32);
THROUGH(f64, double, PH_F64);
THROUGH(bool, bool, PH_BOOL);
THROUGH(str, const char *, PH_STR);
THROUGH(bytes, ph_bytes, PH_BYTES);

/* All types at once, each through its host function, in a text that shows every bit. */
static const char *all(int32_t i, uint32_t u, int64_t l, uint64_t m, float f, double d, bool b, const char *s,
                       ph_bytes y, int32_t last) {
    uint32_t f_bits;
    uint64_t d_bits, sum = 0;

    f = visit_f32(f);
    d = visit_f64(d);
    memcpy(&f_bits, &f, sizeof f_bits);
    memcpy(&d_bits, &d, sizeof d_bits);
    y = visit_bytes(y);
    for (size_t at = 0; at < y.size; at++)
        sum = sum * 31 + ((const unsigned char *)y.data)[at];
    return ph_strf("%d %u %lld %llu %x %llx %d %s %llu %d", (int)visit_i32(i), (unsigned)visit_u32(u),
                   (long long)visit_i64(l), (unsigned long long)visit_u64(m), (unsigned)f_bits,
                   (unsigned long long)d_bits, visit_bool(b), visit_str(s), (unsigned long long)sum,
                   (int)last);
}
PH_EXPORT(all, PH_STR, PH_I32, PH_U32, PH_I64, PH_U64, PH_F32, PH_F64, PH_BOOL, PH_STR, PH_BYTES, PH_I32);

/* What the C library prints of numbers, and what comes of working with them. Not with a NaN: which of two
 * comes out, and with which sign, emulators do otherwise. */
static const char *work(double a, double b, int64_t i, uint64_t u) {
    a = a != a ? 1 : a;
    b = b != b ? 2 : b;
    return ph_strf("%.17g %.17g %.17g %a %lld %llu %g", a + b, a * b, a / b, a - b, (long long)(i * 3 - 1),
                   (unsigned long long)(u / 7 + u % 11), (double)i + (double)u);
}
PH_EXPORT(work, PH_STR, PH_F64, PH_F64, PH_I64, PH_U64);

static int64_t divide(int64_t a, int64_t b) {
    return *(volatile int64_t *)&a / *(volatile int64_t *)&b;
}
PH_EXPORT(divide, PH_I64, PH_I64, PH_I64);

static int32_t peek(uint64_t address) {
    return *(volatile int32_t *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr): a test's address
}
PH_EXPORT(peek, PH_I32, PH_U64);

static void fail_with(int32_t code, const char *message) {
    ph_fail(code, "%s", message);
}
PH_EXPORT(fail_with, PH_VOID, PH_I32, PH_STR);

static void abort_with(int32_t code, const char *message) {
    ph_abort(code, "%s", message);
}
PH_EXPORT(abort_with, PH_VOID, PH_I32, PH_STR);

/* A host function that may fail. */
static const char *try_visit(const char *text) {
    const char *answer = "";
    int32_t code = ph_try_visit_str(text, &answer);

    return ph_strf("%d:%s:%s", (int)code, code ? ph_error_message() : "", code ? "" : answer);
}
PH_EXPORT(try_visit, PH_STR, PH_STR);
