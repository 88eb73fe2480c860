/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * Tracing in a guest program: spans, events, logs and counters that the host sees with nanosecond times.
 * Included by guest.h; there is no need to include it by name. docs/tracing.md says how the host asks for
 * them.
 *
 *     static int64_t query(const char *text) {
 *         PH_SPAN("query", ph_str("text", text));
 *         ...
 *         PH_EVENT("parsed", ph_u64("tokens", count), ph_bool("cached", false));
 *         PH_LOG_WARN("slow: %d of %d", done, all);
 *         PH_COUNTER("rows", rows);
 *     }
 *
 * What the host does not ask for costs one load and one branch, and its arguments are not evaluated; natively
 * nothing is ever asked for. A program that defines PH_TRACE_DISABLE before it includes guest.h has none of
 * it. (What -finstrument-functions adds does not depend on that.)
 *
 * Fields are written as ph_KIND("name", value) behind the other arguments, up to 12 of them:
 *
 *     ph_i64("n", int64_t)       ph_u64("n", uint64_t)      ph_f64("n", double)      ph_bool("n", bool)
 *     ph_str("n", const char *)  ph_ptr("n", const void *)  ph_bytes("n", const void *, size_t)
 *
 * Names of spans, events, counters and fields are string literals; that of a field has no ", \, %, {, | or }
 * in it. A compiler's error about `)` or PH__ROW means that a name is none, or that a field is of none of
 * these kinds. Strings and bytes are copied at once, at most 1,024 bytes of each and 1,900 of all in one
 * record; NULL is recorded as "(null)". A level is a constant of ph_level, from PH_LEVEL_ERROR to
 * PH_LEVEL_TRACE.
 *
 * All of it may be used in signal handlers, in static constructors, in inline functions, templates and
 * lambdas, and in functions that are left by longjmp or a C++ exception. It allocates nothing and never
 * fails.
 */
#ifndef PINHOLE_GUEST_TRACE_H
#define PINHOLE_GUEST_TRACE_H

#include <pinhole/guest.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An open span: what PH_SPAN_BEGIN gives and PH_SPAN_END takes. All zero is no span. */
typedef struct ph_span {
    uint64_t position;
} ph_span;

/**
 * A span that lasts until its block is left, in whichever way: PH_SPAN("name", fields...), at level info. A
 * declaration.
 */
#define PH_SPAN(...) PH__SPAN(PH_LEVEL_INFO, __VA_ARGS__)

/** PH_SPAN_AT(level, "name", fields...) is PH_SPAN at another level. */
#define PH_SPAN_AT(level, ...) PH__SPAN(level, __VA_ARGS__)

/** PH_SPAN_AS(variable, level, "name", fields...) declares (variable), so that fields can be added. */
#define PH_SPAN_AS(variable, level, ...) PH__SPAN_AS(variable, level, __VA_ARGS__)

/**
 * PH_SPAN_BEGIN("name", fields...) begins a span that lasts until PH_SPAN_END, and has its ph_span as its
 * value. For spans that no block encloses; one that is begun inside another is also ended inside it. Level
 * info.
 */
#define PH_SPAN_BEGIN(...) PH__SPAN_BEGIN(PH_LEVEL_INFO, 0, __VA_ARGS__)

/** PH_SPAN_BEGIN_AT(level, "name", fields...) */
#define PH_SPAN_BEGIN_AT(level, ...) PH__SPAN_BEGIN(level, 0, __VA_ARGS__)

/** Ends (span), once. */
#define PH_SPAN_END(span) PH__SPAN_END(span)

/** PH_SPAN_FIELDS(span, fields...) adds fields to an open span. */
#define PH_SPAN_FIELDS(...) PH__SPAN_FIELDS(__VA_ARGS__)

/** PH_EVENT("name", fields...): something that happens now, in the innermost open span. Level info. */
#define PH_EVENT(...) PH__EVENT(PH_LEVEL_INFO, __VA_ARGS__)

/** PH_EVENT_AT(level, "name", fields...) */
#define PH_EVENT_AT(level, ...) PH__EVENT(level, __VA_ARGS__)

/**
 * PH_LOG_INFO(format, ...): a line as printf would print it. The format is a literal and stays in the
 * program's file; what is recorded are the values, at most 12, and the host formats them. `*` counts as one.
 * %n, %m, %ls, %lc and numbered arguments are not supported.
 */
#define PH_LOG_ERROR(...) PH__LOG(PH_LEVEL_ERROR, __VA_ARGS__)
#define PH_LOG_WARN(...) PH__LOG(PH_LEVEL_WARN, __VA_ARGS__)
#define PH_LOG_INFO(...) PH__LOG(PH_LEVEL_INFO, __VA_ARGS__)
#define PH_LOG_DEBUG(...) PH__LOG(PH_LEVEL_DEBUG, __VA_ARGS__)
#define PH_LOG_TRACE(...) PH__LOG(PH_LEVEL_TRACE, __VA_ARGS__)

/** PH_LOG_AT(level, format, ...) */
#define PH_LOG_AT(level, ...) PH__LOG(level, __VA_ARGS__)

/** The counter (name) has the int64_t (value) from here on. Level info. */
#define PH_COUNTER(name, value) PH__COUNTER(name, ph_i64("value", value))

/** PH_COUNTER with a double. */
#define PH_COUNTER_F64(name, value) PH__COUNTER(name, ph_f64("value", value))

/**
 * PH_ASYNC_BEGIN("name", id, fields...) begins a span that need not nest with others, and may be ended in
 * another function or call: by PH_ASYNC_END with the same name and (id), a uint64_t that the program chooses.
 * Level info. Beginning one whose name and (id) are open ends that one as unfinished, and so does the
 * sandbox's end; an end without a begin is counted and otherwise ignored.
 */
#define PH_ASYNC_BEGIN(...) PH__ASYNC(ASYNC_BEGIN, PH_LEVEL_INFO, __VA_ARGS__)

/** PH_ASYNC_BEGIN_AT(level, "name", id, fields...) */
#define PH_ASYNC_BEGIN_AT(level, ...) PH__ASYNC(ASYNC_BEGIN, level, __VA_ARGS__)

/** PH_ASYNC_END("name", id, fields...) */
#define PH_ASYNC_END(...) PH__ASYNC(ASYNC_END, PH_LEVEL_INFO, __VA_ARGS__)

/** PH_ASYNC_END_AT(level, "name", id, fields...) */
#define PH_ASYNC_END_AT(level, ...) PH__ASYNC(ASYNC_END, level, __VA_ARGS__)

/**
 * The traceparent (W3C Trace Context) that this call belongs to, for a guest that passes it on: 55
 * characters, or "" where there is none. It is the host's; the string changes with the next call.
 */
const char *ph_traceparent(void);

/*
 * The rest is how the macros work; a guest names none of it. src/abi/trace.h has the formats,
 * src/abi/recorder.h the same recorder for the library and the monitor, and says why it is right.
 */

/* Records a site's (values), of which some are strings or bytes, behind the (extra_count) words, 0 or 1, of
 * (extra). (head) is word 0. Returns its position, or 0. */
uint64_t ph__trace_record(uint64_t head, unsigned extra_count, uint64_t extra, const ph_value *values,
                          unsigned count);

/* Records the values that (format) names. */
void ph__trace_log(uint64_t head, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Not to be seen by -finstrument-functions, and at -O0 no slower than need be. */
#define PH__TRACE_INLINE __attribute__((always_inline, unused, no_instrument_function)) static inline

/* Bits 4..35 of the stack pointer, where a record's word 0 has them. */
PH__TRACE_INLINE uint64_t ph__stack_bits(void) {
    uint64_t pointer;
    __asm__ volatile("{movq %%rsp, %0|mov %0, rsp}" : "=r"(pointer));
    return pointer >> 4 << 32;
}

/* Values of fields, as words and as ph_values. */
PH__TRACE_INLINE uint64_t ph__word_i64(int64_t value) {
    return (uint64_t)value;
}
PH__TRACE_INLINE uint64_t ph__word_u64(uint64_t value) {
    return value;
}
PH__TRACE_INLINE uint64_t ph__word_f64(double value) {
    uint64_t word;
    __builtin_memcpy(&word, &value, sizeof word);
    return word;
}
PH__TRACE_INLINE uint64_t ph__word_bool(bool value) {
    return value;
}
PH__TRACE_INLINE uint64_t ph__word_ptr(const volatile void *value) {
    return (uint64_t)value;
}
PH__TRACE_INLINE ph_value ph__value_of(ph_type type, uint64_t word) {
    ph_value value;
    value.type = type;
    value.u64 = word;
    return value;
}
PH__TRACE_INLINE ph_value ph__value_str(const char *text) {
    ph_value value;
    value.type = PH_STR;
    value.str = text;
    return value;
}
PH__TRACE_INLINE ph_value ph__value_bytes(const void *data, size_t size) {
    ph_value value;
    value.type = PH_BYTES;
    value.bytes.data = data;
    value.bytes.size = size;
    return value;
}

/* A record's word 0, and bytes of its head; the ring's address, and where in its first page things are. */
#define PH__TRACE_HEAD_SIZE 16
#define PH__TRACE_END_WORD 0x202u
#define PH__TRACE_RING 0x7f8000000000ull
#define PH__TRACE_RING_HEAD 0
#define PH__TRACE_RING_LIMIT 8
#define PH__TRACE_RING_END_LIMIT 16
#define PH__TRACE_RING_MASK 24
#define PH__TRACE_RING_CRITICAL 64
#define PH__TRACE_RING_BYTES 4096

/* Numbers of kinds and types, for the assembler. */
#define PH__SITE_CODE_SPAN 1
#define PH__SITE_CODE_EVENT 2
#define PH__SITE_CODE_LOG 3
#define PH__SITE_CODE_FIELDS 4
#define PH__SITE_CODE_COUNTER 5
#define PH__SITE_CODE_ASYNC_BEGIN 6
#define PH__SITE_CODE_ASYNC_END 7

/* clang-format off */
/* For PH__MAP, each for (field) number (n). A field's kind is pasted, so that none of them is a macro. */
#define PH__FIELD_AS_ROW(n, field) PH__ROW_##field
#define PH__FIELD_AS_WORD(n, field) const uint64_t ph__field##n = PH__WORD_##field;
#define PH__FIELD_AS_VALUE(n, field) PH__VALUE_##field
#define PH__FIELD_AS_NEXT_VALUE(n, field) , PH__VALUE_##field
#define PH__FIELD_AS_OPERAND(n, field) , [ph__field##n] "rme"(ph__field##n)
#define PH__FIELD_AS_COPY(n, field)                                                                          \
    "movq %[ph__field" #n "], %%rax\n\t"                                                                     \
    "movq %%rax, 8*" #n "+%c[fields]-8(%[ring],%[at])\n\t"
#define PH__FIELD_AS_HOW(n, field) PH__HOW_##field

/* A type and a name. */
#define PH__ROW_ph_i64(name, value) ".byte 3\n.asciz \"" name "\"\n"
#define PH__ROW_ph_u64(name, value) ".byte 4\n.asciz \"" name "\"\n"
#define PH__ROW_ph_f64(name, value) ".byte 6\n.asciz \"" name "\"\n"
#define PH__ROW_ph_bool(name, value) ".byte 7\n.asciz \"" name "\"\n"
#define PH__ROW_ph_str(name, value) ".byte 8\n.asciz \"" name "\"\n"
#define PH__ROW_ph_bytes(name, data, size) ".byte 9\n.asciz \"" name "\"\n"
#define PH__ROW_ph_ptr(name, value) ".byte 10\n.asciz \"" name "\"\n"

#define PH__WORD_ph_i64(name, value) ph__word_i64(value)
#define PH__WORD_ph_u64(name, value) ph__word_u64(value)
#define PH__WORD_ph_f64(name, value) ph__word_f64(value)
#define PH__WORD_ph_bool(name, value) ph__word_bool(value)
#define PH__WORD_ph_ptr(name, value) ph__word_ptr(value)

#define PH__VALUE_ph_i64(name, value) ph__value_of(PH_I64, ph__word_i64(value))
#define PH__VALUE_ph_u64(name, value) ph__value_of(PH_U64, ph__word_u64(value))
#define PH__VALUE_ph_f64(name, value) ph__value_of(PH_F64, ph__word_f64(value))
#define PH__VALUE_ph_bool(name, value) ph__value_of(PH_BOOL, ph__word_bool(value))
#define PH__VALUE_ph_str(name, value) ph__value_str(value)
#define PH__VALUE_ph_bytes(name, data, size) ph__value_bytes(data, size)
#define PH__VALUE_ph_ptr(name, value) ph__value_of(PH_POINTER, ph__word_ptr(value))

/* SCALAR when every field takes one word, else DYNAMIC. */
#define PH__HOW_ph_i64(name, value)
#define PH__HOW_ph_u64(name, value)
#define PH__HOW_ph_f64(name, value)
#define PH__HOW_ph_bool(name, value)
#define PH__HOW_ph_str(name, value) , DYNAMIC
#define PH__HOW_ph_bytes(name, data, size) , DYNAMIC
#define PH__HOW_ph_ptr(name, value)
#define PH__HOW(...) PH__SECOND(~ PH__MAP(PH__FIELD_AS_HOW, PH__NOTHING, , __VA_ARGS__), SCALAR, ~)
#define PH__SECOND(...) PH__SECOND_(__VA_ARGS__)
#define PH__SECOND_(first, second, ...) second

#ifdef __cplusplus
#define PH__LEVEL_CHECK(level)                                                                               \
    static_assert((level) >= PH_LEVEL_ERROR && (level) <= PH_LEVEL_TRACE,                                    \
                  "a level is one of PH_LEVEL_ERROR to PH_LEVEL_TRACE")
#else
#define PH__LEVEL_CHECK(level)                                                                               \
    __extension__ _Static_assert((level) >= PH_LEVEL_ERROR && (level) <= PH_LEVEL_TRACE,                     \
                                 "a level is one of PH_LEVEL_ERROR to PH_LEVEL_TRACE")
#endif

#ifndef PH_TRACE_DISABLE

/* Runs what follows when the site is on, with its word in ph__word. __VA_ARGS__: anything, then the fields.
 * The host refuses a file with a site of another level.
 *
 * The row is struct ph__site_entry of src/abi/trace.h. "?" puts it and what it refers to into the COMDAT
 * group of the function, if it is in one; "R" keeps it through --gc-sections. Beside the fields is a
 * reference that pulls the note out of the archive: without the note the host would not find the table. */
#define PH__WHEN_ON(kind, level_, name_, ...)                                                                \
    PH__LEVEL_CHECK(level_);                                                                                 \
    uint64_t ph__word;                                                                                       \
    __asm__ volatile(".pushsection ph_site_words,\"aR?\",@progbits\n"                                        \
                     ".balign 8\n"                                                                           \
                     "7711: .quad 0\n"                                                                       \
                     ".popsection\n"                                                                         \
                     ".pushsection .rodata.ph_fields,\"a?\",@progbits\n"                                     \
                     "7712:\n"                                                                               \
                     PH__MAP(PH__FIELD_AS_ROW, PH__NOTHING, , __VA_ARGS__)                                   \
                     ".long ph__note - .\n"                                                                  \
                     ".popsection\n"                                                                         \
                     ".pushsection ph_sites,\"aR?\",@progbits\n"                                             \
                     ".balign 8\n"                                                                           \
                     ".long %c[name] - .\n"                                                                  \
                     ".long %c[file] - .\n"                                                                  \
                     ".long %c[func] - .\n"                                                                  \
                     ".long 7712b - .\n"                                                                     \
                     ".long 7711b - .\n"                                                                     \
                     ".long %c[line]\n"                                                                      \
                     ".byte " PH__TEXT(PH__SITE_CODE_##kind) ",%c[level]"                                    \
                     "," PH__TEXT(PH__COUNT(__VA_ARGS__)) "\n"                                               \
                     ".zero 5\n"                                                                             \
                     ".popsection\n"                                                                         \
                     "{movq 7711b(%%rip), %[word]|mov %[word], qword ptr 7711b[rip]}"                        \
                     : [word] "=r"(ph__word)                                                                 \
                     : [name] "i"("" name_), [file] "i"(__FILE__), [func] "i"(__func__),                     \
                       [line] "i"(__LINE__), [level] "i"(level_));                                           \
    if (__builtin_expect(ph__word != 0, 0))

/* Writes a record of one-word fields where head is, if it fits below the limit at (limit_), and publishes it.
 * Without room it asks ph__trace_room_call, which keeps every register but RAX and RDX: so a function with a
 * site needs no frame for it. What is on the stack below RSP is the function's own.
 *
 * An exception whose handler traces sends the writer back to its start when it comes before the store of
 * head: the monitor compares its place with the two that ring->critical leads to (src/abi/recorder.h). */
#define PH__WRITE(position_, head_, limit_, extra_count, extra_, ...)                                        \
    {                                                                                                        \
        const uint64_t ph__head = head_;                                                                     \
        uint64_t ph__at;                                                                                     \
        PH__MAP(PH__FIELD_AS_WORD, PH__NOTHING, , __VA_ARGS__)                                               \
        __asm__ volatile("7741: leaq 7742f(%%rip), %%rax\n\t"                                                \
                         "movq %%rax, %c[critical](%[ring])\n\t"                                             \
                         "movq (%[ring]), %%rcx\n\t"                                                         \
                         "leaq %c[size](%%rcx), %%rax\n\t"                                                   \
                         "cmpq %c[limit](%[ring]), %%rax\n\t"                                                \
                         "ja 7745f\n\t"                                                                      \
                         "movq %%rcx, %[at]\n\t"                                                             \
                         "andq %c[mask](%[ring]), %[at]\n\t"                                                 \
                         PH__COPY_EXTRA_##extra_count                                                        \
                         PH__MAP(PH__FIELD_AS_COPY, PH__NOTHING, , __VA_ARGS__)                              \
                         "rdtsc\n\t"                                                                         \
                         "shlq $32, %%rdx\n\t"                                                               \
                         "orq %%rdx, %%rax\n\t"                                                              \
                         "movq %[head], %c[bytes](%[ring],%[at])\n\t"                                        \
                         "movq %%rax, %c[bytes]+8(%[ring],%[at])\n\t"                                        \
                         "leaq %c[size](%%rcx), %%rax\n\t"                                                   \
                         "movq %%rax, (%[ring])\n\t"                                                         \
                         "7743: jmp 7744f\n\t"                                                               \
                         "7745: leaq -128(%%rsp), %%rsp\n\t"                                                 \
                         "movl $%c[size], %%eax\n\t"                                                         \
                         "movl $%c[limit], %%edx\n\t"                                                        \
                         "call ph__trace_room_call\n\t"                                                      \
                         "leaq 128(%%rsp), %%rsp\n\t"                                                        \
                         "testl %%eax, %%eax\n\t"                                                            \
                         "jnz 7741b\n\t"                                                                     \
                         "xorl %%ecx, %%ecx\n"                                                               \
                         "7744:\n"                                                                           \
                         ".pushsection .rodata.ph_critical,\"a?\",@progbits\n"                               \
                         ".balign 4\n"                                                                       \
                         "7742: .long 7741b - ., 7743b - .\n"                                                \
                         ".popsection"                                                                       \
                         : "=&c"(position_), [at] "=&r"(ph__at)                                              \
                         : [ring] "r"(PH__TRACE_RING), [head] "r"(ph__head), [limit] "i"(limit_),            \
                           [mask] "i"(PH__TRACE_RING_MASK), [critical] "i"(PH__TRACE_RING_CRITICAL),         \
                           [bytes] "i"(PH__TRACE_RING_BYTES),                                                \
                           [size] "i"(PH__TRACE_HEAD_SIZE + 8 * (extra_count + PH__COUNT(__VA_ARGS__))),     \
                           [fields] "i"(PH__TRACE_RING_BYTES + PH__TRACE_HEAD_SIZE + 8 * (extra_count)),     \
                           [extra] "rme"(extra_) PH__MAP(PH__FIELD_AS_OPERAND, PH__NOTHING, , __VA_ARGS__)   \
                         : "rax", "rdx", "cc", "memory");                                                    \
    }
#define PH__COPY_EXTRA_0
#define PH__COPY_EXTRA_1                                                                                     \
    "movq %[extra], %%rax\n\t"                                                                               \
    "movq %%rax, %c[bytes]+16(%[ring],%[at])\n\t"

#define PH__RECORD_SCALAR(position_, head_, extra_count, extra_, ...)                                        \
    PH__WRITE(position_, head_, PH__TRACE_RING_LIMIT, extra_count, extra_, __VA_ARGS__)
#define PH__RECORD_DYNAMIC(position_, head_, extra_count, extra_, ...)                                       \
    {                                                                                                        \
        const ph_value ph__values[] = {PH__MAP(PH__FIELD_AS_VALUE, PH__COMMA, , __VA_ARGS__)};               \
        position_ = ph__trace_record(head_, extra_count, extra_, ph__values, PH__COUNT(__VA_ARGS__));        \
    }

PH__TRACE_INLINE void ph__span_end(ph_span span) {
    if (span.position) {
        uint64_t position;
        PH__WRITE(position, span.position << 9 | PH__TRACE_END_WORD, PH__TRACE_RING_END_LIMIT, 0, 0, ~)
        (void)position;
    }
}
PH__TRACE_INLINE void ph__span_leave(const ph_span *span) {
    ph__span_end(*span);
}
#define PH__SPAN_ATTRIBUTES __attribute__((unused, cleanup(ph__span_leave)))
#define PH__SPAN(level, ...) PH__SPAN_AS(PH__CAT(ph__span_, __COUNTER__), level, __VA_ARGS__)

#else

/* Arguments count as used, and the compiler checks them and drops them. */
#define PH__WHEN_ON(kind, level, name, ...)                                                                  \
    PH__LEVEL_CHECK(level);                                                                                  \
    const uint64_t ph__word = sizeof("" name) * 0;                                                           \
    (void)ph__word;                                                                                          \
    if (0)
#define PH__RECORD_SCALAR(position_, head_, extra_count, extra_, ...)                                        \
    PH__RECORD_DYNAMIC(position_, head_, extra_count, extra_, __VA_ARGS__)
#define PH__RECORD_DYNAMIC(position_, head_, extra_count, extra_, ...)                                       \
    {                                                                                                        \
        const ph_value ph__values[] = {ph__value_of(PH_VOID, extra_)                                         \
                                           PH__MAP(PH__FIELD_AS_NEXT_VALUE, PH__NOTHING, , __VA_ARGS__)};    \
        (void)ph__values;                                                                                    \
        position_ = head_;                                                                                   \
    }
PH__TRACE_INLINE void ph__span_end(ph_span span) {
    (void)span;
}
#define PH__SPAN_ATTRIBUTES __attribute__((unused))
#define PH__SPAN(level, ...)                                                                                 \
    do {                                                                                                     \
        const ph_span ph__unused = PH__SPAN_BEGIN(level, 0, __VA_ARGS__);                                    \
        (void)ph__unused;                                                                                    \
    } while (0)

#endif

/* The macro that writes a record is chosen by the kinds of its fields. */
#define PH__RECORD(position, head, extra_count, extra, ...)                                                  \
    PH__CAT(PH__RECORD_, PH__HOW(__VA_ARGS__))(position, head, extra_count, extra, __VA_ARGS__)

#define PH__SPAN_AS(variable, level, ...)                                                                    \
    PH__SPAN_ATTRIBUTES ph_span variable = PH__SPAN_BEGIN(level, ph__stack_bits(), __VA_ARGS__)
#define PH__SPAN_BEGIN(level, stack, ...)                                                                    \
    __extension__({                                                                                          \
        ph_span ph__begun = {0};                                                                             \
        PH__WHEN_ON(SPAN, level, PH__FIRST(__VA_ARGS__), __VA_ARGS__)                                        \
        PH__RECORD(ph__begun.position, ph__word | stack, 0, 0, __VA_ARGS__)                                  \
        ph__begun;                                                                                           \
    })
#define PH__SPAN_END(span) ph__span_end(span)

/* Statements whose record nobody refers to. */
#define PH__TRACE(kind, level, name, extra_count, extra, ...)                                                \
    do {                                                                                                     \
        PH__WHEN_ON(kind, level, name, __VA_ARGS__) {                                                        \
            uint64_t ph__position;                                                                           \
            PH__RECORD(ph__position, ph__word | ph__stack_bits(), extra_count, extra, __VA_ARGS__)           \
            (void)ph__position;                                                                              \
        }                                                                                                    \
    } while (0)
#define PH__EVENT(level, ...) PH__TRACE(EVENT, level, PH__FIRST(__VA_ARGS__), 0, 0, __VA_ARGS__)
#define PH__COUNTER(name, field) PH__TRACE(COUNTER, PH_LEVEL_INFO, name, 0, 0, ~, field)
#define PH__ASYNC(kind, level, name, ...)                                                                    \
    PH__TRACE(kind, level, name, 1, ph__word_u64(PH__FIRST(__VA_ARGS__)), __VA_ARGS__)
#define PH__SPAN_FIELDS(...)                                                                                 \
    do {                                                                                                     \
        const ph_span ph__open = PH__FIRST(__VA_ARGS__);                                                     \
        if (ph__open.position) {                                                                             \
            PH__WHEN_ON(FIELDS, PH_LEVEL_INFO, "", __VA_ARGS__) {                                            \
                uint64_t ph__position;                                                                       \
                PH__RECORD(ph__position, ph__word, 1, ph__open.position, __VA_ARGS__)                        \
                (void)ph__position;                                                                          \
            }                                                                                                \
        }                                                                                                    \
    } while (0)
#define PH__LOG(level, ...)                                                                                  \
    do {                                                                                                     \
        PH__WHEN_ON(LOG, level, PH__FIRST(__VA_ARGS__), ~) {                                                 \
            PH__MAP(PH__LOG_AS_NOTHING, PH__NOTHING, , __VA_ARGS__)                                          \
            ph__trace_log(ph__word | ph__stack_bits(), __VA_ARGS__);                                         \
        }                                                                                                    \
    } while (0)
#define PH__LOG_AS_NOTHING(n, value)
/* clang-format on */

#ifdef __cplusplus
}
#endif

#endif
