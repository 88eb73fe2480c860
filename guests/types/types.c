/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * One function for each type that crosses between host and guest, which gives back what it got, and one that
 * takes twelve arguments of all types.
 */
#include <inttypes.h>

#include <pinhole/guest.h>

static int32_t echo_i32(int32_t value) {
    return value;
}
PH_EXPORT(echo_i32, PH_I32, PH_I32);

static uint32_t echo_u32(uint32_t value) {
    return value;
}
PH_EXPORT(echo_u32, PH_U32, PH_U32);

static int64_t echo_i64(int64_t value) {
    return value;
}
PH_EXPORT(echo_i64, PH_I64, PH_I64);

static uint64_t echo_u64(uint64_t value) {
    return value;
}
PH_EXPORT(echo_u64, PH_U64, PH_U64);

static float echo_f32(float value) {
    return value;
}
PH_EXPORT(echo_f32, PH_F32, PH_F32);

static double echo_f64(double value) {
    return value;
}
PH_EXPORT(echo_f64, PH_F64, PH_F64);

static bool echo_bool(bool value) {
    return value;
}
PH_EXPORT(echo_bool, PH_BOOL, PH_BOOL);

static const char *echo_str(const char *value) {
    return value;
}
PH_EXPORT(echo_str, PH_STR, PH_STR);

static ph_bytes echo_bytes(ph_bytes value) {
    return value;
}
PH_EXPORT(echo_bytes, PH_BYTES, PH_BYTES);

static void echo_void(void) {
}
PH_EXPORT(echo_void, PH_VOID);

static const char *hex(ph_bytes bytes) {
    const unsigned char *data = bytes.data;
    char *text = ph_alloc(2 * bytes.size + 1);

    for (size_t i = 0; i < bytes.size; i++) {
        text[2 * i] = "0123456789abcdef"[data[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[data[i] & 15];
    }
    text[2 * bytes.size] = 0;
    return text;
}

/* Names each argument and its value; floats in C's hexadecimal notation, which is exact, bytes in hex. */
static const char *mixed(int32_t i32, uint32_t u32, int64_t i64, uint64_t u64, float f32, double f64,
                         bool boolean, const char *str, ph_bytes bytes, int32_t last_i32,
                         const char *last_str, ph_bytes last_bytes) {
    return ph_strf("i32=%" PRId32 " u32=%" PRIu32 " i64=%" PRId64 " u64=%" PRIu64
                   " f32=%a f64=%a bool=%s str=%s"
                   " bytes=%s i32=%" PRId32 " str=%s bytes=%s",
                   i32, u32, i64, u64, (double)f32, f64, boolean ? "true" : "false", str, hex(bytes),
                   last_i32, last_str, hex(last_bytes));
}
PH_EXPORT(mixed, PH_STR, PH_I32, PH_U32, PH_I64, PH_U64, PH_F32, PH_F64, PH_BOOL, PH_STR, PH_BYTES, PH_I32,
          PH_STR, PH_BYTES);
