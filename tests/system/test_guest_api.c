/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The guest library at its edges, with glibc and with musl: the guest api (tests/guests/api.c) does what it
 * must not, or what is rare, and the sandbox says so and goes on.
 */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static ph_status answer(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    if (strcmp(args[0].str, "fail") == 0)
        return ph_host_fail(call, 12, "cannot answer");
    if (strcmp(args[0].str, "fail without a code") == 0)
        return ph_host_fail(call, 0, "no code");
    size_t size = strlen(args[0].str) + 16;
    char *text = ph_host_alloc(call, size);
    snprintf(text, size, "answer to %s", args[0].str);
    result->str = text;
    return PH_OK;
}

static ph_status take(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    (void)call;
    (void)args;
    (void)result;
    return PH_OK;
}

struct fixture {
    ph_image *image;
    ph_sandbox *sandbox;
};

/* A sandbox of the guest (name), not started, whose program gets the argument (mode). */
static struct fixture make(const char *name, const char *mode, uint64_t max_message) {
    static const ph_signature answer_signature = {PH_STR, 1, {PH_STR}};
    static const ph_signature take_signature = {PH_VOID, 1, {PH_BYTES}};
    const char *const argv[] = {mode, NULL};
    ph_config config = PH_CONFIG_INIT;
    struct fixture fixture;

    config.argv = argv;
    config.max_message = max_message;
    fixture.image = test_image(name);
    fixture.sandbox = test_sandbox(fixture.image, &config);
    test_status(fixture.sandbox,
                ph_sandbox_register(fixture.sandbox, "answer", &answer_signature, answer, NULL), PH_OK);
    test_status(fixture.sandbox, ph_sandbox_register(fixture.sandbox, "take", &take_signature, take, NULL),
                PH_OK);
    return fixture;
}

static struct fixture start(const char *name, const char *mode, uint64_t max_message) {
    struct fixture fixture = make(name, mode, max_message);
    test_status(fixture.sandbox, ph_sandbox_start(fixture.sandbox), PH_OK);
    return fixture;
}

static void finish(struct fixture *fixture) {
    ph_sandbox_destroy(fixture->sandbox);
    ph_image_close(fixture->image);
}

static ph_value i32(int32_t x) {
    return (ph_value){.type = PH_I32, .i32 = x};
}

static ph_value u64(uint64_t x) {
    return (ph_value){.type = PH_U64, .u64 = x};
}

static ph_value str(const char *x) {
    return (ph_value){.type = PH_STR, .str = x};
}

#define CALL(status, name, ...)                                                                              \
    call(&fixture, status, name, (ph_value[]){__VA_ARGS__},                                                  \
         sizeof((ph_value[]){__VA_ARGS__}) / sizeof(ph_value))
#define CALL_0(status, name) call(&fixture, status, name, NULL, 0)

static ph_value call(struct fixture *fixture, ph_status wanted, const char *name, const ph_value *args,
                     size_t count) {
    ph_value result = {.type = PH_VOID};
    test_status(fixture->sandbox, test_call(fixture->sandbox, fixture->image, name, args, count, &result),
                wanted);
    return result;
}

static void assert_error(struct fixture *fixture, int32_t code, const char *message) {
    assert_int_equal(ph_sandbox_error(fixture->sandbox)->code, code);
    assert_string_equal(ph_sandbox_error(fixture->sandbox)->message, message);
}

static void a_guest_error_has_code_and_message_and_poisons_nothing(void **state) {
    test_needs_kvm();
    struct fixture fixture = start(*state, "", 0);

    CALL(PH_E_GUEST, "fail_with", i32(1), str("went wrong"));
    assert_error(&fixture, 1, "went wrong");
    CALL(PH_E_GUEST, "fail_with", i32(INT32_MAX), str("100% wrong"));
    assert_error(&fixture, INT32_MAX, "100% wrong");
    CALL(PH_E_GUEST, "fail_with", i32(0), str("zero is no error"));
    assert_error(&fixture, -3, "zero is no error");
    CALL(PH_E_GUEST, "fail_at", i32(1000));
    assert_error(&fixture, 1, "at the bottom");
    for (int i = 0; i < 100; i++)
        CALL(PH_E_GUEST, "fail_at", i32(10));
    assert_true(CALL_0(PH_OK, "is_in_pinhole").boolean);
    finish(&fixture);
}

static void a_long_error_message_is_cut_between_characters(void **state) {
    char message[2001];

    test_needs_kvm();
    struct fixture fixture = start(*state, "", 0);
    for (size_t i = 0; i < 2000; i += 2)
        memcpy(message + i, "\xc3\xa9", 2); /* é */
    message[2000] = 0;
    CALL(PH_E_GUEST, "fail_with", i32(1), str(message));
    const char *got = ph_sandbox_error(fixture.sandbox)->message;
    size_t size = strlen(got);
    assert_true(size >= 500 && size <= 1023 && size % 2 == 0);
    assert_memory_equal(got, message, size);
    finish(&fixture);
}

static void an_error_message_fits_under_a_tiny_message_limit(void **state) {
    char message[1000];

    test_needs_kvm();
    struct fixture fixture = start(*state, "", 16);
    CALL(PH_E_GUEST, "string_of_size", u64(17));
    assert_error(&fixture, -1,
                 "the result of string_of_size has 17 bytes, more than the message limit of 16");
    assert_int_equal(strlen(CALL(PH_OK, "string_of_size", u64(16)).str), 16);
    finish(&fixture);

    fixture = start(*state, "", 1001);
    memset(message, 'm', sizeof message - 1);
    message[sizeof message - 1] = 0;
    CALL(PH_E_GUEST, "fail_with", i32(1), str(message));
    finish(&fixture);
}

static void an_abort_poisons(void **state) {
    test_needs_kvm();
    struct fixture fixture = start(*state, "", 0);
    CALL(PH_E_ABORTED, "abort_with", i32(-9), str("no way on"));
    assert_int_equal(ph_sandbox_error(fixture.sandbox)->code, -9);
    assert_non_null(strstr(ph_sandbox_error(fixture.sandbox)->message, "no way on"));
    CALL_0(PH_E_POISONED, "is_in_pinhole");
    finish(&fixture);
}

static void a_result_beyond_the_limit_is_an_error_and_loses_nothing(void **state) {
    test_needs_kvm();
    struct fixture fixture = start(*state, "", 0);

    assert_int_equal(CALL(PH_OK, "bytes_of_size", u64(65536)).bytes.size, 65536);
    CALL(PH_E_GUEST, "bytes_of_size", u64(65537));
    assert_error(&fixture, -1,
                 "the result of bytes_of_size has 65537 bytes, more than the message limit of 65536");
    assert_int_equal(strlen(CALL(PH_OK, "string_of_size", u64(65536)).str), 65536);
    CALL(PH_E_GUEST, "string_of_size", u64(65537));
    assert_int_equal(CALL(PH_OK, "bytes_of_size", u64(0)).bytes.size, 0);
    assert_string_equal(CALL(PH_OK, "string_of_size", u64(0)).str, "");
    finish(&fixture);
}

static void arguments_of_a_host_function_beyond_the_limit_are_an_error(void **state) {
    test_needs_kvm();
    struct fixture fixture = start(*state, "", 0);

    assert_int_equal(CALL(PH_OK, "try_take", u64(65536)).i32, 0);
    assert_int_equal(CALL(PH_OK, "try_take", u64(65537)).i32, -1);
    finish(&fixture);
}

static void memory_that_is_not_there_is_an_error(void **state) {
    test_needs_kvm();
    struct fixture fixture = start(*state, "", 0);

    CALL(PH_E_GUEST, "bytes_of_size", u64(1ull << 40));
    assert_int_equal(ph_sandbox_error(fixture.sandbox)->code, -2);
    CALL(PH_E_GUEST, "bytes_of_size", u64(UINT64_MAX));
    assert_int_equal(ph_sandbox_error(fixture.sandbox)->code, -2);
    assert_int_equal(CALL(PH_OK, "bytes_of_size", u64(10)).bytes.size, 10);
    finish(&fixture);
}

static void null_results_are_empty(void **state) {
    test_needs_kvm();
    struct fixture fixture = start(*state, "", 0);

    assert_string_equal(CALL_0(PH_OK, "null_string").str, "");
    assert_int_equal(CALL_0(PH_OK, "null_bytes").bytes.size, 0);
    finish(&fixture);
}

static void texts_of_every_length_are_formatted(void **state) {
    test_needs_kvm();
    struct fixture fixture = start(*state, "", 0);

    /* Around the size of the block that small calls are served from, and of the chunks behind it. */
    const int32_t widths[] = {1, 15, 16, 17, 16380, 16381, 16382, 16383, 16384, 16385, 60000, 65534};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        const char *text = CALL(PH_OK, "padded", str("x"), i32(widths[i])).str;
        assert_int_equal(strlen(text), widths[i] + 2);
        assert_string_equal(text + widths[i], "x]");
    }
    finish(&fixture);
}

static void blocks_of_a_call_do_not_overlap(void **state) {
    test_needs_kvm();
    struct fixture fixture = start(*state, "", 0);

    for (int round = 0; round < 3; round++) {
        assert_true(CALL(PH_OK, "blocks_are_apart", i32(300), (ph_value){.type = PH_U32, .u32 = 1}).boolean);
        assert_true(
            CALL(PH_OK, "blocks_are_apart", i32(100), (ph_value){.type = PH_U32, .u32 = 1000}).boolean);
        assert_true(
            CALL(PH_OK, "blocks_are_apart", i32(5), (ph_value){.type = PH_U32, .u32 = 1000000}).boolean);
    }
    finish(&fixture);
}

static void calls_that_return_strings_grow_nothing(void **state) {
    test_needs_kvm();
    struct fixture fixture = start(*state, "", 0);

    CALL(PH_OK, "string_of_size", u64(60000));
    CALL(PH_OK, "blocks_are_apart", i32(300), (ph_value){.type = PH_U32, .u32 = 10});
    uint64_t end = CALL_0(PH_OK, "heap_end").u64;
    for (unsigned i = 0; i < test_scaled(20000); i++) {
        CALL(PH_OK, "string_of_size", u64(i % 60000));
        if (i % 100 == 0)
            CALL(PH_OK, "blocks_are_apart", i32(300), (ph_value){.type = PH_U32, .u32 = 10});
        if (i % 3 == 0)
            CALL(PH_E_GUEST, "fail_at", i32(3));
    }
    assert_int_equal(CALL_0(PH_OK, "heap_end").u64, end);
    finish(&fixture);
}

static void a_failed_host_function_ends_the_call_or_is_tried(void **state) {
    test_needs_kvm();
    struct fixture fixture = start(*state, "", 0);

    assert_string_equal(CALL(PH_OK, "must_answer", str("x")).str, "answer to x");
    CALL(PH_E_HOST_FUNCTION, "must_answer", str("fail"));
    assert_error(&fixture, 12, "cannot answer");
    assert_string_equal(CALL(PH_OK, "try_answer", str("x")).str, "answer to x");
    assert_string_equal(CALL(PH_OK, "try_answer", str("fail")).str, "12: cannot answer, result NULL");
    assert_string_equal(CALL_0(PH_OK, "last_message").str, ""); /* it was the other call's */
    assert_string_equal(CALL(PH_OK, "try_answer", str("fail without a code")).str,
                        "-7: no code, result NULL");
    assert_string_equal(CALL(PH_OK, "answers", str("a"), str("b")).str, "answer to a, answer to b");
    finish(&fixture);
}

static void the_host_can_be_called_before_the_first_call(void **state) {
    test_needs_kvm();
    struct fixture fixture = start(*state, "init-calls", 0);
    assert_string_equal(CALL_0(PH_OK, "said_at_start").str, "answer to init");
    finish(&fixture);

    fixture = start(*state, "main-calls", 0);
    assert_string_equal(CALL_0(PH_OK, "said_at_start").str, "answer to main");
    finish(&fixture);
}

static void an_error_outside_a_call_is_an_abort(void **state) {
    test_needs_kvm();
    struct fixture fixture = make(*state, "init-fails", 0);
    test_status(fixture.sandbox, ph_sandbox_start(fixture.sandbox), PH_E_ABORTED);
    assert_int_equal(ph_sandbox_error(fixture.sandbox)->code, 5);
    assert_non_null(strstr(ph_sandbox_error(fixture.sandbox)->message, "no start today"));
    finish(&fixture);

    fixture = make(*state, "main-fails", 0);
    test_status(fixture.sandbox, ph_sandbox_start(fixture.sandbox), PH_E_ABORTED);
    assert_int_equal(ph_sandbox_error(fixture.sandbox)->code, 6);
    finish(&fixture);
}

static void a_main_that_does_not_serve_is_an_exit(void **state) {
    test_needs_kvm();
    struct fixture fixture = make(*state, "main-returns", 0);
    test_status(fixture.sandbox, ph_sandbox_start(fixture.sandbox), PH_E_EXITED);
    assert_int_equal(ph_sandbox_error(fixture.sandbox)->code, 3);
    finish(&fixture);
}

static void serving_twice_is_an_abort(void **state) {
    test_needs_kvm();
    struct fixture fixture = start(*state, "", 0);
    CALL_0(PH_E_ABORTED, "serve_again");
    finish(&fixture);
}

/* The same program, run natively, says what it is for. */
static void natively_it_says_what_it_is(void **state) {
    const char *path = test_guest_path(*state);
    char line[512];
    size_t size = 0;
    ssize_t got;
    int ends[2];
    int status;

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    while ((got = read(ends[0], line + size, sizeof line - 1 - size)) > 0)
        size += (size_t)got;
    close(ends[0]);
    line[size] = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_non_null(strstr(line, "pinhole call"));
    assert_ptr_equal(strchr(line, '\n'), line + size - 1); /* one line */
}

int main(void) {
#define BOTH(test)                                                                                           \
    {#test "_with_glibc", test, NULL, NULL, (void *)(uintptr_t) "api"}, {                                    \
#test "_with_musl", test, NULL, NULL, (void *)(uintptr_t) "api-musl"                                 \
    }
    const struct CMUnitTest tests[] = {
        BOTH(a_guest_error_has_code_and_message_and_poisons_nothing),
        BOTH(a_long_error_message_is_cut_between_characters),
        BOTH(an_error_message_fits_under_a_tiny_message_limit),
        BOTH(an_abort_poisons),
        BOTH(a_result_beyond_the_limit_is_an_error_and_loses_nothing),
        BOTH(arguments_of_a_host_function_beyond_the_limit_are_an_error),
        BOTH(memory_that_is_not_there_is_an_error),
        BOTH(null_results_are_empty),
        BOTH(texts_of_every_length_are_formatted),
        BOTH(blocks_of_a_call_do_not_overlap),
        BOTH(calls_that_return_strings_grow_nothing),
        BOTH(a_failed_host_function_ends_the_call_or_is_tried),
        BOTH(the_host_can_be_called_before_the_first_call),
        BOTH(an_error_outside_a_call_is_an_abort),
        BOTH(a_main_that_does_not_serve_is_an_exit),
        BOTH(serving_twice_is_an_abort),
        BOTH(natively_it_says_what_it_is),
    };
    return cmocka_run_group_tests_name("guest_api", tests, NULL, NULL);
}
