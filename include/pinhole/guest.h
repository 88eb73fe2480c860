/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * What a program that runs inside a pinhole micro-VM includes: which of its functions the host may call,
 * which functions of the host it calls, and how it fails.
 *
 * A guest is an ordinary static program in C11 or C++17, with glibc or musl:
 *
 *     #include <pinhole/guest.h>
 *
 *     PH_IMPORT(weekday, PH_STR, PH_I32);
 *
 *     static const char *greet(const char *name) {
 *         return ph_strf("Hello, %s! Today is %s.", name, weekday(0));
 *     }
 *     PH_EXPORT(greet, PH_STR, PH_STR);
 *
 * built with `cc -static greet.c -lpinhole-guest`. The library brings a main that serves calls; a program
 * that has its own main ends it with `return ph_serve();`.
 *
 * The types of arguments and results, and what they are in C:
 *
 *     PH_I32 int32_t    PH_U32 uint32_t    PH_F32 float     PH_STR const char *
 *     PH_I64 int64_t    PH_U64 uint64_t    PH_F64 double    PH_BYTES ph_bytes
 *     PH_BOOL bool      PH_VOID void, as a result only
 *
 * Memory: what an argument of an export points at, what a host function gave and what ph_alloc and its like
 * gave lives until the call ends. The guest frees none of it, and keeps none of it for a later call.
 *
 * A guest has one thread, and calls do not nest.
 */
#ifndef PINHOLE_GUEST_H
#define PINHOLE_GUEST_H

#include <pinhole/types.h>

/* In C, handing a host function a number for a pointer breaks a rule of the language, which compilers before
 * GCC 14 only warn of. Here the wrong type does not compile. */
#ifndef __cplusplus
#pragma GCC diagnostic error "-Wint-conversion"
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Error codes that this library reports; a guest's own codes are positive.
 *
 * PH_GUEST_E_TOO_LARGE: a result, or the arguments of a host function, are larger than the sandbox's message
 * limit. PH_GUEST_E_NO_MEMORY: ph_alloc got none. PH_GUEST_E_CODE: ph_fail was given a code that is not
 * positive. PH_GUEST_E_FORMAT: ph_strf was given what printf cannot print. PH_GUEST_E_NATIVE: a host function
 * was called, and the program does not run in pinhole. PH_GUEST_E_PROTOCOL: the host does not speak as this
 * library does. PH_GUEST_E_HOST: a host function failed and gave no code.
 */
enum ph_guest_error {
    PH_GUEST_E_TOO_LARGE = -1,
    PH_GUEST_E_NO_MEMORY = -2,
    PH_GUEST_E_CODE = -3,
    PH_GUEST_E_FORMAT = -4,
    PH_GUEST_E_NATIVE = -5,
    PH_GUEST_E_PROTOCOL = -6,
    PH_GUEST_E_HOST = -7,
};

/** The most bytes of an error's message, its NUL included. What is longer is cut. */
#define PH_ERROR_MESSAGE_SIZE 1024

/**
 * Lets the host call (function), which takes and gives C values of the types that follow: first that of
 * the result, then those of up to 12 arguments. At file or namespace scope, once in a program for each name.
 *
 *     static double half(double x) { return x / 2; }
 *     PH_EXPORT(half, PH_F64, PH_F64);
 *
 * A function whose C type is another one does not compile. In C++, a function that is left by an
 * exception ends the program (std::terminate).
 */
#define PH_EXPORT(function, ...) PH__EXPORT(#function, ph__export_##function, function, __VA_ARGS__)

/**
 * PH_EXPORT under another name: the host calls it (public_name), (function) is any expression for a function:
 *
 *     PH_EXPORT_AS(sum_i32, math::sum<int32_t>, PH_I32, PH_I32, PH_I32);
 *     PH_EXPORT_AS(twice, [](int32_t x) { return 2 * x; }, PH_I32, PH_I32);
 *
 * One with a comma outside parentheses goes into parentheses of its own.
 */
#define PH_EXPORT_AS(public_name, function, ...)                                                             \
    PH__EXPORT(#public_name, ph__export_##public_name, function, __VA_ARGS__)

/**
 * Makes the host's function (name) callable: result and argument types as for PH_EXPORT. At file or
 * namespace scope; in a header too. It defines two inline functions:
 *
 *     PH_IMPORT(weekday, PH_STR, PH_I32);
 *
 *     const char *weekday(int32_t);
 *     int32_t ph_try_weekday(int32_t, const char **result);
 *
 * When the host's function fails, weekday ends the call with that error, as ph_fail does, and ph_try_weekday
 * returns its code, which is never 0, sets *result to zero, and lets the guest go on; ph_error_message says
 * what the host said. For PH_VOID it takes no (result).
 *
 * A program that uses an import starts only in a sandbox that has a function of that name and those types.
 */
#define PH_IMPORT(name, ...) PH__IMPORT(#name, name, ph_try_##name, __VA_ARGS__)

/**
 * PH_IMPORT of the host's function (public_name) under the name (function), for where the C name is taken:
 *
 *     PH_IMPORT_AS(log, host_log, PH_VOID, PH_STR);
 */
#define PH_IMPORT_AS(public_name, function, ...)                                                             \
    PH__IMPORT(#public_name, function, ph_try_##function, __VA_ARGS__)

/**
 * Has (function), a void(void), run once before the first call, after all static constructors. Several run
 * in the order in which constructors would. Only ph_serve runs them.
 */
#define PH_INIT(function)                                                                                    \
    __attribute__((constructor, used, no_instrument_function)) static void ph__init_##function(void) {       \
        static struct ph__init ph__self;                                                                     \
        ph__self.run = function;                                                                             \
        ph__init_add(&ph__self);                                                                             \
    }                                                                                                        \
    PH__END

/**
 * Has (function), a void(void), run at the begin of the first call after the guest was restored from a
 * snapshot: for what must not be the same in two copies, such as a generator of random numbers, or an
 * identity. Several run in the order in which constructors would. What they take of ph_alloc lives until they
 * have all run.
 */
#define PH_ON_RESTORE(function)                                                                              \
    __attribute__((constructor, used)) static void ph__on_restore_##function(void) {                         \
        static struct ph__init ph__self;                                                                     \
        ph__self.run = function;                                                                             \
        ph__on_restore_add(&ph__self);                                                                       \
    }                                                                                                        \
    PH__END

/**
 * The message of the last host function that failed in a ph_try_ function of this call, "" if none did.
 * It lives until the call ends.
 */
const char *ph_error_message(void);

/**
 * Ends the call with an error: (code), which is positive, and a message as for printf (format). The host gets
 * both, and the sandbox stays ready for the next call.
 *
 * It jumps straight out of the guest's functions: in C++ no destructor runs, and what they hold stays held.
 * Not from a signal handler. Outside a call it is ph_abort.
 */
void ph_fail(int32_t code, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

/**
 * Gives up for good: the host gets (code), any number, and the message, and the sandbox serves no more
 * calls until it is restored.
 */
void ph_abort(int32_t code, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

/**
 * (size) bytes, aligned for any type, not zeroed, that live until the call ends. Never NULL: without memory
 * the call fails with PH_GUEST_E_NO_MEMORY.
 */
void *ph_alloc(size_t size) __attribute__((malloc, alloc_size(1), assume_aligned(16), returns_nonnull));

/** The text that printf would print for (format), in memory of ph_alloc. */
char *ph_strf(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

/** A copy of the string (text) in memory of ph_alloc. */
char *ph_str_copy(const char *text) __attribute__((returns_nonnull));

/** A copy of (size) bytes at (data) in memory of ph_alloc. */
ph_bytes ph_bytes_copy(const void *data, size_t size);

/**
 * Runs the PH_INIT functions, then serves the host's calls for ever. For programs that have their own main,
 * at its end:
 *
 *     return ph_serve();
 *
 * Where the program does not run in pinhole it says so on stderr and returns 1.
 */
int ph_serve(void);

/** True in a pinhole sandbox, false where the same program runs natively. */
bool ph_running_in_pinhole(void);

/*
 * The rest is how the macros work; a guest names none of it.
 *
 * Exports and imports are rows of two tables, the sections ph_exports and ph_imports, that the host reads
 * from the ELF file. Their layout is fixed (src/abi/table.h) and holds no absolute address, so static-PIE
 * needs no relocation. They are written in assembly because a section attribute cannot be shared by inline
 * and plain functions in C++; "R" (SHF_GNU_RETAIN) keeps them through --gc-sections.
 */

/* Calls the import that (entry) describes. values[0] is the result's place, the arguments follow; types are
 * filled in from (entry). ph__host_call ends the call on failure, ph__host_call_try returns the code. */
void ph__host_call(const void *entry, ph_value *values);
int32_t ph__host_call_try(const void *entry, ph_value *values) __attribute__((warn_unused_result));

struct ph__init {
    void (*run)(void);
    struct ph__init *next;
};
void ph__init_add(struct ph__init *init);
void ph__on_restore_add(struct ph__init *init);

#ifdef __cplusplus
}
#endif

/* The number of types behind the result: 0 to 12, else TOO_MANY. */
#define PH__COUNT(...)                                                                                       \
    PH__COUNT_(__VA_ARGS__, TOO_MANY, TOO_MANY, TOO_MANY, TOO_MANY, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1,   \
               0, ~)
#define PH__COUNT_(r, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count

#define PH__FIRST(...) PH__FIRST_(__VA_ARGS__, ~)
#define PH__FIRST_(first, ...) first

/* The result is no macro that uses PH__CAT in turn: C leaves open whether that one would expand. */
#define PH__CAT(a, b) PH__CAT_(a, b)
#define PH__CAT_(a, b) a##b
#define PH__TEXT(x) PH__TEXT_(x)
#define PH__TEXT_(x) #x

#define PH__COMMA() ,
#define PH__NOTHING()

/* PH__MAP(m, s, none, result, a, b) is m(1, a) s() m(2, b): (m) of each argument, (s) between, or (none). */
#define PH__MAP(m, s, none, ...) PH__MAP_BY(PH__COUNT(__VA_ARGS__))(m, s, none, __VA_ARGS__)
#define PH__MAP_BY(count) PH__MAP_BY_(count)
#define PH__MAP_BY_(count) PH__MAP_##count
#define PH__MAP_0(m, s, none, r) none
#define PH__MAP_1(m, s, none, r, a) m(1, a)
#define PH__MAP_2(m, s, none, r, a, b) PH__MAP_1(m, s, none, r, a) s() m(2, b)
#define PH__MAP_3(m, s, none, r, a, b, c) PH__MAP_2(m, s, none, r, a, b) s() m(3, c)
#define PH__MAP_4(m, s, none, r, a, b, c, d) PH__MAP_3(m, s, none, r, a, b, c) s() m(4, d)
#define PH__MAP_5(m, s, none, r, a, b, c, d, e) PH__MAP_4(m, s, none, r, a, b, c, d) s() m(5, e)
#define PH__MAP_6(m, s, none, r, a, b, c, d, e, f) PH__MAP_5(m, s, none, r, a, b, c, d, e) s() m(6, f)
#define PH__MAP_7(m, s, none, r, a, b, c, d, e, f, g) PH__MAP_6(m, s, none, r, a, b, c, d, e, f) s() m(7, g)
#define PH__MAP_8(m, s, none, r, a, b, c, d, e, f, g, h)                                                     \
    PH__MAP_7(m, s, none, r, a, b, c, d, e, f, g) s() m(8, h)
#define PH__MAP_9(m, s, none, r, a, b, c, d, e, f, g, h, i)                                                  \
    PH__MAP_8(m, s, none, r, a, b, c, d, e, f, g, h) s() m(9, i)
#define PH__MAP_10(m, s, none, r, a, b, c, d, e, f, g, h, i, j)                                              \
    PH__MAP_9(m, s, none, r, a, b, c, d, e, f, g, h, i) s() m(10, j)
#define PH__MAP_11(m, s, none, r, a, b, c, d, e, f, g, h, i, j, k)                                           \
    PH__MAP_10(m, s, none, r, a, b, c, d, e, f, g, h, i, j) s() m(11, k)
#define PH__MAP_12(m, s, none, r, a, b, c, d, e, f, g, h, i, j, k, l)                                        \
    PH__MAP_11(m, s, none, r, a, b, c, d, e, f, g, h, i, j, k) s() m(12, l)
#define PH__MAP_TOO_MANY(...) ph__at_most_12_arguments

/* Code: the number of the ph_type, as text for the assembler. C: the type in C. FIELD: the member of
 * ph_value. */
#define PH__CODE_PH_VOID 0
#define PH__CODE_PH_I32 1
#define PH__CODE_PH_U32 2
#define PH__CODE_PH_I64 3
#define PH__CODE_PH_U64 4
#define PH__CODE_PH_F32 5
#define PH__CODE_PH_F64 6
#define PH__CODE_PH_BOOL 7
#define PH__CODE_PH_STR 8
#define PH__CODE_PH_BYTES 9

#define PH__C_PH_VOID ph__void_is_a_result_only
#define PH__C_PH_I32 int32_t
#define PH__C_PH_U32 uint32_t
#define PH__C_PH_I64 int64_t
#define PH__C_PH_U64 uint64_t
#define PH__C_PH_F32 float
#define PH__C_PH_F64 double
#define PH__C_PH_BOOL bool
#define PH__C_PH_STR const char *
#define PH__C_PH_BYTES ph_bytes

#define PH__FIELD_PH_VOID i32
#define PH__FIELD_PH_I32 i32
#define PH__FIELD_PH_U32 u32
#define PH__FIELD_PH_I64 i64
#define PH__FIELD_PH_U64 u64
#define PH__FIELD_PH_F32 f32
#define PH__FIELD_PH_F64 f64
#define PH__FIELD_PH_BOOL boolean
#define PH__FIELD_PH_STR str
#define PH__FIELD_PH_BYTES bytes

#define PH__C(type) PH__CAT(PH__C_, type)
#define PH__FIELD(type) PH__CAT(PH__FIELD_, type)
#define PH__CODE_TEXT(type) PH__TEXT(PH__CAT(PH__CODE_, type))

/* What differs for a function without a result. */
#define PH__KIND_PH_VOID VOID
#define PH__KIND_PH_I32 VALUE
#define PH__KIND_PH_U32 VALUE
#define PH__KIND_PH_I64 VALUE
#define PH__KIND_PH_U64 VALUE
#define PH__KIND_PH_F32 VALUE
#define PH__KIND_PH_F64 VALUE
#define PH__KIND_PH_BOOL VALUE
#define PH__KIND_PH_STR VALUE
#define PH__KIND_PH_BYTES VALUE
#define PH__BY_RESULT(prefix, type) PH__BY_KIND(prefix, PH__CAT(PH__KIND_, type))
#define PH__BY_KIND(prefix, kind) PH__BY_KIND_(prefix, kind)
#define PH__BY_KIND_(prefix, kind) prefix##kind

#define PH__C_RESULT(type) PH__BY_RESULT(PH__C_RESULT_, type)(type)
#define PH__C_RESULT_VOID(type) void
#define PH__C_RESULT_VALUE(type) PH__C(type)

/* For PH__MAP, each for argument number (n) of (type). */
#define PH__AS_C_TYPE(n, type) PH__C(type)
#define PH__AS_PARAMETER(n, type) PH__C(type) ph__##n
#define PH__AS_FIRST_PARAMETER(n, type) PH__C(type) ph__##n,
#define PH__AS_PACKED(n, type) ph__values[n].PH__FIELD(type) = ph__##n;
#define PH__AS_UNPACKED(n, type) ph__args[(n)-1].PH__FIELD(type)
#define PH__AS_CODE(n, type) "," PH__CODE_TEXT(type)
#define PH__AS_SUFFIX(n, type) "." PH__CODE_TEXT(type)

#define PH__C_TYPES(...) PH__MAP(PH__AS_C_TYPE, PH__COMMA, void, __VA_ARGS__)
#define PH__PARAMETERS(...) PH__MAP(PH__AS_PARAMETER, PH__COMMA, void, __VA_ARGS__)

/* Functions that the macros make: -finstrument-functions shows those of the program alone. */
#define PH__OURS __attribute__((no_instrument_function))

#ifdef __cplusplus
#define PH__EXTERN_C extern "C"
#define PH__INLINE PH__OURS inline
#define PH__END static_assert(sizeof(ph_value) == 24, "part of the ABI")
/* The conversion to an exact pointer to function is the check. */
#define PH__CHECK_TYPE(text, function, result, ...)
#else
#define PH__EXTERN_C extern
#define PH__INLINE PH__OURS __attribute__((unused)) static inline
#define PH__END _Static_assert(sizeof(ph_value) == 24, "part of the ABI")
/* (function) is the name of a function or a pointer to one. */
#define PH__CHECK_TYPE(text, function, result, ...)                                                          \
    __extension__ _Static_assert(                                                                            \
        __builtin_types_compatible_p(__typeof__(function), result(__VA_ARGS__)) ||                           \
            __builtin_types_compatible_p(__typeof__(function), result(*)(__VA_ARGS__)),                      \
        "the export " text " has another C type than PH_EXPORT says");
#endif

#ifdef __clang__
#define PH__THUNK_ATTRIBUTES PH__OURS __attribute__((used, noinline, visibility("hidden")))
#else
#define PH__THUNK_ATTRIBUTES                                                                                 \
    PH__OURS __attribute__((used, noinline, visibility("hidden"), externally_visible))
#endif

/* clang-format off */
/* One row: struct ph__function_entry of src/abi/table.h. Beside the name, which keeps it alive, is a
 * reference that pulls the note out of the archive: without the note the host would not find the tables. */
#define PH__ROW(text, thunk, ...)                                                                            \
    ".pushsection .rodata.ph_names,\"a\",@progbits\n"                                                        \
    "7701: .asciz \"" text "\"\n"                                                                            \
    ".long ph__note - .\n"                                                                                   \
    ".popsection\n"                                                                                          \
    ".long 7701b - .\n"                                                                                      \
    ".long " thunk "\n"                                                                                      \
    ".byte " PH__CODE_TEXT(PH__FIRST(__VA_ARGS__)) "," PH__TEXT(PH__COUNT(__VA_ARGS__))                      \
        PH__MAP(PH__AS_CODE, PH__NOTHING, , __VA_ARGS__) "\n"                                                \
    ".zero 14 - " PH__TEXT(PH__COUNT(__VA_ARGS__)) "\n"

/* Sets ph__entry to the import's row, which is written where it is first used in an assembly file: an import
 * that nobody calls is not imported, and inlining or LTO may repeat this. The types are in the label's name
 * so that two imports that disagree get two rows, which the host refuses. */
#define PH__FIND_IMPORT(text, ...)                                                                           \
    const void *ph__entry;                                                                                   \
    __asm__(".ifndef " PH__IMPORT_LABEL(text, __VA_ARGS__) "\n"                                              \
            ".pushsection ph_imports,\"aR\",@progbits\n"                                                     \
            ".balign 4\n"                                                                                    \
            PH__IMPORT_LABEL(text, __VA_ARGS__) ":\n"                                                        \
            PH__ROW(text, "0", __VA_ARGS__)                                                                  \
            ".popsection\n"                                                                                  \
            ".endif\n"                                                                                       \
            "{lea " PH__IMPORT_LABEL(text, __VA_ARGS__) "(%%rip), %0"                                        \
            "|lea %0, " PH__IMPORT_LABEL(text, __VA_ARGS__) "[rip]}"                                         \
            : "=r"(ph__entry))
#define PH__IMPORT_LABEL(text, ...)                                                                          \
    ".Lph__import_" text "." PH__CODE_TEXT(PH__FIRST(__VA_ARGS__))                                           \
        PH__MAP(PH__AS_SUFFIX, PH__NOTHING, , __VA_ARGS__)
/* clang-format on */

/* The thunk, a ph__thunk of table.h, is global and hidden so that the assembly finds it under its name
 * with LTO too; two exports of one name are an error at link time. The empty assembly keeps the compiler from
 * inlining the function: faults and profiles then name it and not the thunk. */
#define PH__EXPORT(text, thunk, function, ...)                                                               \
    PH__EXTERN_C void thunk(const ph_value *, ph_value *) PH__THUNK_ATTRIBUTES;                              \
    PH__EXTERN_C void thunk(const ph_value *ph__args, ph_value *ph__result) {                                \
        PH__CHECK_TYPE(text, function, PH__C_RESULT(PH__FIRST(__VA_ARGS__)), PH__C_TYPES(__VA_ARGS__))       \
        PH__C_RESULT(PH__FIRST(__VA_ARGS__)) (*ph__function)(PH__C_TYPES(__VA_ARGS__)) = function;           \
        __asm__("" : "+r"(ph__function));                                                                    \
        (void)ph__args;                                                                                      \
        (void)ph__result;                                                                                    \
        PH__BY_RESULT(PH__STORE_, PH__FIRST(__VA_ARGS__))                                                    \
        (PH__FIRST(__VA_ARGS__)) ph__function(PH__MAP(PH__AS_UNPACKED, PH__COMMA, , __VA_ARGS__));           \
    }                                                                                                        \
    __asm__(".pushsection ph_exports,\"aR\",@progbits\n"                                                     \
            ".balign 4\n" PH__ROW(text, PH__TEXT(thunk) " - .", __VA_ARGS__) ".popsection")
#define PH__STORE_VOID(type)
#define PH__STORE_VALUE(type) ph__result->PH__FIELD(type) =

#define PH__IMPORT(text, name, try_name, ...)                                                                \
    PH__INLINE PH__C_RESULT(PH__FIRST(__VA_ARGS__)) name(PH__PARAMETERS(__VA_ARGS__)) {                      \
        ph_value ph__values[1 + PH__COUNT(__VA_ARGS__)];                                                     \
        PH__FIND_IMPORT(text, __VA_ARGS__);                                                                  \
        PH__MAP(PH__AS_PACKED, PH__NOTHING, , __VA_ARGS__)                                                   \
        ph__host_call(ph__entry, ph__values);                                                                \
        PH__BY_RESULT(PH__RETURN_, PH__FIRST(__VA_ARGS__))(PH__FIRST(__VA_ARGS__))                           \
    }                                                                                                        \
    __attribute__((warn_unused_result)) PH__INLINE int32_t try_name(                                         \
        PH__BY_RESULT(PH__TRY_PARAMETERS_, PH__FIRST(__VA_ARGS__))(__VA_ARGS__)) {                           \
        ph_value ph__values[1 + PH__COUNT(__VA_ARGS__)];                                                     \
        PH__FIND_IMPORT(text, __VA_ARGS__);                                                                  \
        PH__MAP(PH__AS_PACKED, PH__NOTHING, , __VA_ARGS__)                                                   \
        int32_t ph__code = ph__host_call_try(ph__entry, ph__values);                                         \
        PH__BY_RESULT(PH__GIVE_, PH__FIRST(__VA_ARGS__))(PH__FIRST(__VA_ARGS__)) return ph__code;            \
    }                                                                                                        \
    PH__END
#define PH__RETURN_VOID(type)
#define PH__RETURN_VALUE(type) return ph__values[0].PH__FIELD(type);
#define PH__TRY_PARAMETERS_VOID(...) PH__PARAMETERS(__VA_ARGS__)
#define PH__TRY_PARAMETERS_VALUE(...)                                                                        \
    PH__MAP(PH__AS_FIRST_PARAMETER, PH__NOTHING, , __VA_ARGS__) PH__C(PH__FIRST(__VA_ARGS__)) * ph__result
#define PH__GIVE_VOID(type)
#define PH__GIVE_VALUE(type) *ph__result = ph__values[0].PH__FIELD(type);

#include <pinhole/guest-trace.h>

#endif
