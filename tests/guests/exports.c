/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Exports of every shape that C has, to be found and called in every kind of static ELF file: it is built
 * with several compilers, with LTO, --gc-sections, stripped and as static-PIE (meson.build). exports_more.c
 * is the second file.
 */
#include "imports.h"

static int32_t constructed;
static int32_t initialised;

__attribute__((constructor)) static void construct(void) {
    constructed = 42;
}

static void initialise(void) {
    initialised = constructed + 1;
}
PH_INIT(initialise);

static int32_t plain(int32_t x) {
    return x + 1;
}
PH_EXPORT(plain, PH_I32, PH_I32);

static inline int32_t in_line(int32_t x) {
    return add_three(x, 10, 100);
}
PH_EXPORT(in_line, PH_I32, PH_I32);

int32_t global(const int32_t x);
int32_t global(const int32_t x) {
    return -x;
}
PH_EXPORT(global, PH_I32, PH_I32);

static void nothing(void) {
}
PH_EXPORT(nothing, PH_VOID);

__attribute__((noreturn)) static void refuse(void) {
    ph_fail(7, "refused");
}
PH_EXPORT(refuse, PH_VOID);

static int32_t was_constructed(void) {
    return constructed;
}
PH_EXPORT(was_constructed, PH_I32);

static int32_t was_initialised(void) {
    return initialised;
}
PH_EXPORT(was_initialised, PH_I32);

static int64_t sum(int32_t a, uint32_t b, int64_t c, uint64_t d, float e, double f, bool g, const char *h,
                   ph_bytes i, int32_t j, int32_t k, int32_t l) {
    int64_t total =
        a + (int64_t)b + c + (int64_t)d + (int64_t)e + (int64_t)f + g + (int64_t)i.size + j + k + l;
    while (*h)
        total += *h++;
    return total;
}
PH_EXPORT(sum, PH_I64, PH_I32, PH_U32, PH_I64, PH_U64, PH_F32, PH_F64, PH_BOOL, PH_STR, PH_BYTES, PH_I32,
          PH_I32, PH_I32);

/* The public name is a C library's, and that of a macro. */
#define exit leave
static const char *leave(void) {
    return "stayed";
}
PH_EXPORT(exit, PH_STR);
#undef exit

static int32_t (*const pointer)(int32_t) = plain;
PH_EXPORT_AS(by_pointer, pointer, PH_I32, PH_I32);

static const char *try_join(const char *a, const char *b) {
    const char *joined;
    int32_t code = ph_try_join(a, b, &joined);

    return code == 0 ? joined : ph_strf("%d: %s", code, ph_error_message());
}
PH_EXPORT(try_join, PH_STR, PH_STR, PH_STR);

static int32_t try_note(const char *text) {
    return ph_try_note(text);
}
PH_EXPORT(try_note, PH_I32, PH_STR);
