/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Results, errors and host calls in every combination: for tests of calls.
 */
#include <stdlib.h>
#include <string.h>

#include <pinhole/guest.h>

PH_IMPORT(measure, PH_U64, PH_BYTES);
PH_IMPORT(produce, PH_BYTES, PH_U64);
PH_IMPORT(refuse, PH_STR, PH_I32);

static void fail_with(int32_t code, const char *message) {
    ph_fail(code, "%s", message);
}
PH_EXPORT(fail_with, PH_VOID, PH_I32, PH_STR);

static void abort_with(int32_t code, const char *message) {
    ph_abort(code, "%s", message);
}
PH_EXPORT(abort_with, PH_VOID, PH_I32, PH_STR);

static uint64_t length(ph_bytes bytes) {
    return bytes.size;
}
PH_EXPORT(length, PH_U64, PH_BYTES);

static uint64_t sum_lengths(ph_bytes a, const char *b, ph_bytes c, const char *d) {
    return a.size + strlen(b) + c.size + strlen(d);
}
PH_EXPORT(sum_lengths, PH_U64, PH_BYTES, PH_STR, PH_BYTES, PH_STR);

static ph_bytes pattern(uint64_t size) {
    unsigned char *bytes = ph_alloc(size);

    for (uint64_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7);
    return (ph_bytes){bytes, size};
}
PH_EXPORT(pattern, PH_BYTES, PH_U64);

/* A string of (size) letters, in memory of the call. */
static const char *letters(uint64_t size) {
    char *text = ph_alloc(size + 1);

    memset(text, 'x', size);
    text[size] = 0;
    return text;
}
PH_EXPORT(letters, PH_STR, PH_U64);

static uint64_t measure_there(uint64_t size) {
    return measure(pattern(size));
}
PH_EXPORT(measure_there, PH_U64, PH_U64);

static uint64_t produce_here(uint64_t size) {
    ph_bytes bytes = produce(size);
    const unsigned char *data = bytes.data;

    for (uint64_t i = 0; i < bytes.size; i++)
        if (data[i] != (unsigned char)(i * 3))
            ph_fail(2, "byte %u is wrong", (unsigned)i);
    return bytes.size;
}
PH_EXPORT(produce_here, PH_U64, PH_U64);

static const char *let_refuse(int32_t code) {
    return refuse(code);
}
PH_EXPORT(let_refuse, PH_STR, PH_I32);

static const char *try_refuse(int32_t code) {
    const char *answer = "";
    int32_t got = ph_try_refuse(code, &answer);

    return ph_strf("%d:%s:%s", (int)got, ph_error_message(), answer ? answer : "none");
}
PH_EXPORT(try_refuse, PH_STR, PH_I32);

/* The argument must still be there after a host call has answered with bytes of its own. */
static const char *keep(const char *text) {
    ph_bytes other = produce(1000);

    return ph_strf("%s %u", text, (unsigned)other.size);
}
PH_EXPORT(keep, PH_STR, PH_STR);
