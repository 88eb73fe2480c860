/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * What host and guest programs both say: the types of arguments and results, and the value that carries
 * one. Included by pinhole.h and guest.h; there is no need to include it by name.
 */
#ifndef PINHOLE_TYPES_H
#define PINHOLE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most arguments that an export or an import takes. */
#define PH_MAX_ARGS 12

/**
 * The type of an argument or a result. The numbers are part of the ABI between host and guest.
 *
 * PH_VOID is a result only. PH_STR is NUL-terminated text without a NUL inside, PH_BYTES any bytes with
 * a length. Every value crosses bit for bit, negative zero and the payload of a NaN too.
 */
typedef enum ph_type {
    PH_VOID = 0,
    PH_I32 = 1,
    PH_U32 = 2,
    PH_I64 = 3,
    PH_U64 = 4,
    PH_F32 = 5,
    PH_F64 = 6,
    PH_BOOL = 7,
    PH_STR = 8,
    PH_BYTES = 9,
    /** An address in the guest, as a field of a trace only; in a ph_value it is (u64). */
    PH_POINTER = 10,
} ph_type;

/**
 * How much something matters, and how much of it is wanted: a filter of PH_LEVEL_INFO lets errors, warnings
 * and information through. The numbers are part of the ABI between host and guest.
 */
typedef enum ph_level {
    PH_LEVEL_OFF = 0,
    PH_LEVEL_ERROR = 1,
    PH_LEVEL_WARN = 2,
    PH_LEVEL_INFO = 3,
    PH_LEVEL_DEBUG = 4,
    PH_LEVEL_TRACE = 5,
} ph_level;

/**
 * A run of bytes: (data) points at (size) of them and may be NULL when (size) is 0. Whoever hands one
 * over says how long the bytes live; a ph_bytes owns nothing.
 */
typedef struct ph_bytes {
    const void *data;
    size_t size;
} ph_bytes;

/**
 * One typed value. (type) says which member holds it; for PH_VOID none does.
 */
typedef struct ph_value {
    ph_type type;
    union {
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
        bool boolean;
        const char *str;
        ph_bytes bytes;
    };
} ph_value;

/**
 * What a function takes and gives: the type of its (result), the number (count) of its arguments and
 * their types (args).
 */
typedef struct ph_signature {
    ph_type result;
    uint32_t count;
    ph_type args[PH_MAX_ARGS];
} ph_signature;

#ifdef __cplusplus
}
#endif

#endif
