/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The guest library at its edges: errors, aborts, memory, host calls that fail, from exports, from PH_INIT
 * and from a main of its own. Program arguments choose what goes wrong before the first call.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pinhole/guest.h>

PH_IMPORT(answer, PH_STR, PH_STR);
PH_IMPORT(take, PH_VOID, PH_BYTES);

static const char *mode = "";
static char *at_start; /* what the host said in PH_INIT, copied: the call's memory ends with it */

static void initialise(void) {
    if (strcmp(mode, "init-fails") == 0)
        ph_fail(5, "no start today");
    if (strcmp(mode, "init-calls") == 0)
        at_start = strdup(answer("init"));
}
PH_INIT(initialise);

static const char *said_at_start(void) {
    return at_start;
}
PH_EXPORT(said_at_start, PH_STR);

static void fail_with(int32_t code, const char *message) {
    ph_fail(code, "%s", message);
}
PH_EXPORT(fail_with, PH_VOID, PH_I32, PH_STR);

static void abort_with(int32_t code, const char *message) {
    ph_abort(code, "%s", message);
}
PH_EXPORT(abort_with, PH_VOID, PH_I32, PH_STR);

/* Registers and stack are as they were after a call that was left halfway down. */
__attribute__((noinline)) static int32_t fail_at(int32_t depth) {
    volatile char frame[128] = {0};

    if (depth == 0)
        ph_fail(1, "at the bottom");
    if (depth < 0)
        return 0;
    return fail_at(depth - 1) + frame[0];
}
PH_EXPORT(fail_at, PH_I32, PH_I32);

static ph_bytes bytes_of_size(uint64_t size) {
    char *bytes = ph_alloc(size);

    memset(bytes, 'b', size);
    return (ph_bytes){bytes, size};
}
PH_EXPORT(bytes_of_size, PH_BYTES, PH_U64);

static const char *string_of_size(uint64_t size) {
    char *text = ph_alloc(size + 1);

    memset(text, 's', size);
    text[size] = 0;
    return text;
}
PH_EXPORT(string_of_size, PH_STR, PH_U64);

static const char *null_string(void) {
    return NULL;
}
PH_EXPORT(null_string, PH_STR);

static ph_bytes null_bytes(void) {
    return (ph_bytes){NULL, 0};
}
PH_EXPORT(null_bytes, PH_BYTES);

static const char *padded(const char *text, int32_t width) {
    return ph_strf("[%*s]", width, text);
}
PH_EXPORT(padded, PH_STR, PH_STR, PH_I32);

/* Blocks of the call do not overlap, whatever their sizes, and are aligned. */
static bool blocks_are_apart(int32_t count, uint32_t step) {
    unsigned char **blocks = ph_alloc((size_t)count * sizeof *blocks);

    for (int32_t i = 0; i < count; i++) {
        size_t size = (size_t)i * step;
        blocks[i] = ph_alloc(size);
        if ((uintptr_t)blocks[i] % 16 != 0)
            return false;
        memset(blocks[i], i & 255, size);
    }
    for (int32_t i = 0; i < count; i++)
        for (size_t j = 0; j < (size_t)i * step; j++)
            if (blocks[i][j] != (i & 255))
                return false;
    return true;
}
PH_EXPORT(blocks_are_apart, PH_BOOL, PH_I32, PH_U32);

static uint64_t heap_end(void) {
    return (uint64_t)(uintptr_t)sbrk(0);
}
PH_EXPORT(heap_end, PH_U64);

/* "CODE: MESSAGE" of a host function that failed, or what it gave. */
static const char *try_answer(const char *question) {
    const char *text = "unset";
    int32_t code = ph_try_answer(question, &text);

    if (code == 0)
        return text;
    return ph_strf("%d: %s, result %s", code, ph_error_message(), text ? text : "NULL");
}
PH_EXPORT(try_answer, PH_STR, PH_STR);

static const char *must_answer(const char *question) {
    return answer(question);
}
PH_EXPORT(must_answer, PH_STR, PH_STR);

static const char *last_message(void) {
    return ph_error_message();
}
PH_EXPORT(last_message, PH_STR);

/* The result of a host call stays when the next one overwrites the box. */
static const char *answers(const char *first, const char *second) {
    const char *one = answer(first);
    const char *two = answer(second);

    return ph_strf("%s, %s", one, two);
}
PH_EXPORT(answers, PH_STR, PH_STR, PH_STR);

static int32_t try_take(uint64_t size) {
    return ph_try_take(bytes_of_size(size));
}
PH_EXPORT(try_take, PH_I32, PH_U64);

static void serve_again(void) {
    ph_serve();
}
PH_EXPORT(serve_again, PH_VOID);

static bool is_in_pinhole(void) {
    return ph_running_in_pinhole();
}
PH_EXPORT(is_in_pinhole, PH_BOOL);

int main(int count, char **arguments) {
    if (count > 1)
        mode = arguments[1];
    if (strcmp(mode, "main-fails") == 0)
        ph_fail(6, "main fails");
    if (strcmp(mode, "main-calls") == 0)
        at_start = strdup(answer("main"));
    if (strcmp(mode, "main-returns") == 0)
        return 3;
    return ph_serve();
}
