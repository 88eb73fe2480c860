/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Exports and imports of C and C++ programs are found in the file, and can be called, in every kind of static
 * ELF file that a toolchain makes of them: tests/guests/exports*, each built in many ways
 * (tests/guests/meson.build).
 */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const c_guests[] = {
    "exports",          "exports-O0",       "exports-pie",       "exports-lto",
    "exports-gc",       "exports-stripped", "exports-musl",      "exports-musl-lto",
    "exports-musl-pie", "exports-clang",    "exports-clang-pie",
};
static const char *const cxx_guests[] = {
    "exports-cxx",    "exports-cxx-O0",       "exports-cxx-pie",   "exports-cxx-lto",
    "exports-cxx-gc", "exports-cxx-stripped", "exports-cxx-clang", "exports-cxx-clang-pie",
};

struct log {
    char text[256];
};

static void log_append(struct log *log, const char *text) {
    size_t used = strlen(log->text);
    snprintf(log->text + used, sizeof log->text - used, "%s;", text);
}

static ph_status add(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    (void)call;
    result->i32 = args[0].i32 + args[1].i32;
    return PH_OK;
}

static ph_status note(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)call;
    (void)result;
    log_append(context, args[0].str);
    return PH_OK;
}

static ph_status tick(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)call;
    (void)args;
    (void)result;
    log_append(context, "tick");
    return PH_OK;
}

static ph_status join(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    if (strcmp(args[0].str, "fail") == 0)
        return ph_host_fail(call, 77, "will not join %s", args[1].str);
    size_t size = strlen(args[0].str) + strlen(args[1].str) + 1;
    char *text = ph_host_alloc(call, size);
    snprintf(text, size, "%s%s", args[0].str, args[1].str);
    result->str = text;
    return PH_OK;
}

static ph_status reverse(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    char *reversed = ph_host_alloc(call, args[0].bytes.size + 1);
    for (size_t i = 0; i < args[0].bytes.size; i++)
        reversed[i] = ((const char *)args[0].bytes.data)[args[0].bytes.size - 1 - i];
    result->bytes = (ph_bytes){reversed, args[0].bytes.size};
    return PH_OK;
}

static ph_sandbox *start(ph_image *image, struct log *log) {
    const struct {
        const char *name;
        ph_signature signature;
        ph_host_fn function;
    } functions[] = {
        {"add", {PH_I32, 2, {PH_I32, PH_I32}}, add},   {"note", {PH_VOID, 1, {PH_STR}}, note},
        {"log", {PH_VOID, 1, {PH_STR}}, note},         {"tick", {PH_VOID, 0, {PH_VOID}}, tick},
        {"join", {PH_STR, 2, {PH_STR, PH_STR}}, join}, {"reverse", {PH_BYTES, 1, {PH_BYTES}}, reverse},
    };
    ph_sandbox *sandbox = test_sandbox(image, NULL);

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        test_status(sandbox,
                    ph_sandbox_register(sandbox, functions[i].name, &functions[i].signature,
                                        functions[i].function, log),
                    PH_OK);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    return sandbox;
}

static ph_value i32(int32_t x) {
    return (ph_value){.type = PH_I32, .i32 = x};
}

static ph_value i64(int64_t x) {
    return (ph_value){.type = PH_I64, .i64 = x};
}

static ph_value f64(double x) {
    return (ph_value){.type = PH_F64, .f64 = x};
}

static ph_value str(const char *x) {
    return (ph_value){.type = PH_STR, .str = x};
}

static ph_value bytes(const char *x) {
    return (ph_value){.type = PH_BYTES, .bytes = {x, strlen(x)}};
}

/* The guest under test. */
static ph_image *image;
static ph_sandbox *sandbox;

static ph_value call(const char *name, size_t count, const ph_value *args) {
    ph_value result;
    test_status(sandbox, test_call(sandbox, image, name, args, count, &result), PH_OK);
    return result;
}
#define CALL(name, ...)                                                                                      \
    call(name, sizeof((ph_value[]){__VA_ARGS__}) / sizeof(ph_value), (ph_value[]){__VA_ARGS__})
#define CALL_0(name) call(name, 0, NULL)

static void fails(const char *name, const ph_value *args, size_t count, int32_t code, const char *message) {
    ph_value result;
    test_status(sandbox, test_call(sandbox, image, name, args, count, &result), PH_E_GUEST);
    assert_int_equal(ph_sandbox_error(sandbox)->code, code);
    assert_string_equal(ph_sandbox_error(sandbox)->message, message);
}

static void c_exports_work(void **state) {
    struct log log = {""};
    ph_value all[] = {
        i32(1),
        {.type = PH_U32, .u32 = 2},
        i64(3),
        {.type = PH_U64, .u64 = 4},
        {.type = PH_F32, .f32 = 5},
        f64(6),
        {.type = PH_BOOL, .boolean = true},
        str("A"),
        bytes("12345678"),
        i32(9),
        i32(10),
        i32(11),
    };

    test_needs_kvm();
    image = test_image(*state);
    assert_int_equal(ph_image_export_count(image), 15);
    assert_int_equal(ph_image_import_count(image), 6); /* two files; the one that nobody calls is not there */
    sandbox = start(image, &log);

    assert_int_equal(CALL("plain", i32(41)).i32, 42);
    assert_int_equal(CALL("in_line", i32(1)).i32, 111);
    assert_int_equal(CALL("global", i32(5)).i32, -5);
    assert_int_equal(CALL_0("nothing").type, PH_VOID);
    assert_int_equal(CALL_0("was_constructed").i32, 42);
    assert_int_equal(CALL_0("was_initialised").i32, 43);
    assert_int_equal(call("sum", 12, all).i64, 1 + 2 + 3 + 4 + 5 + 6 + 1 + 'A' + 8 + 9 + 10 + 11);
    assert_string_equal(CALL_0("exit").str, "stayed");
    assert_int_equal(CALL("by_pointer", i32(-1)).i32, 0);
    fails("refuse", NULL, 0, 7, "refused");
    assert_string_equal(CALL("try_join", str("a"), str("b")).str, "ab");
    assert_string_equal(CALL("try_join", str("fail"), str("b")).str, "77: will not join b");
    assert_int_equal(CALL("try_note", str("tried")).i32, 0);
    assert_int_equal(CALL("more", i32(5)).i32, 7);
    assert_string_equal(log.text, "tried;more was called;in exports_more.c;tick;");
    assert_int_equal(CALL("doubled", i32(21)).i32, 42);
    ph_value mirrored = CALL("mirror", bytes("abc"));
    assert_int_equal(mirrored.bytes.size, 3);
    assert_memory_equal(mirrored.bytes.data, "cba", 3);

    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void cxx_exports_work(void **state) {
    struct log log = {""};

    test_needs_kvm();
    image = test_image(*state);
    assert_int_equal(ph_image_export_count(image), 17);
    assert_int_equal(ph_image_import_count(image), 2);
    sandbox = start(image, &log);

    assert_true(CALL_0("was_sealed").boolean);
    assert_int_equal(CALL("look_up", str("two")).i32, 2);
    fails("look_up", (ph_value[]){str("nine")}, 1, 404, "no nine here");
    assert_int_equal(CALL("caught", i32(5)).i32, 5);
    fails("caught", (ph_value[]){i32(-1)}, 1, 3, "caught: negative");
    assert_int_equal(CALL("in_line", i32(1)).i32, 111);
    assert_int_equal(CALL("sum_i32", i32(1), i32(2)).i32, 3);
    assert_true(CALL("sum_f64", f64(0.5), f64(0.25)).f64 == 0.75);
    assert_true(CALL("sum_mixed", f64(0.5), i32(2)).f64 == 2.5);
    assert_int_equal(CALL("member", i64(1LL << 40)).i64, 1LL << 41);
    assert_string_equal(CALL("overload_i32", i32(5)).str, "i32 5");
    assert_string_equal(CALL("overload_str", str("x")).str, "str x");
    assert_string_equal(CALL("lambda", str("a"), i32(3)).str, "a x 3");
    assert_memory_equal(CALL("lambda_alone", bytes("abc")).bytes.data, "abc", 3);
    assert_int_equal(CALL("from_template", i32(1)).i32, 3);
    assert_string_equal(CALL("sorted", str("hello")).str, "ehllo");
    assert_int_equal(CALL("more", i32(1)).i32, 3 + 111 + 2);
    assert_string_equal(CALL("try_join", str("fail"), str("b")).str, "77: will not join b");

    /* std::terminate calls abort(). */
    ph_value result;
    test_status(sandbox, test_call(sandbox, image, "uncaught", NULL, 0, &result), PH_E_ABORTED);

    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

/* Clang may not be there; all other compilers must. */
static bool is_built(const char *name) {
    char path[4096];
    const char *folder = getenv("PH_TEST_OWN_GUESTS");

    if (!strstr(name, "clang") || !folder)
        return true;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, R_OK) == 0;
}

static void add_tests(struct CMUnitTest *tests, size_t *count, const char *what, CMUnitTestFunction function,
                      const char *const *guests, size_t guest_count) {
    static char names[64][64];

    for (size_t i = 0; i < guest_count; i++) {
        if (!is_built(guests[i]))
            continue;
        snprintf(names[*count], sizeof names[0], "%s_in_%s", what, guests[i]);
        tests[*count] =
            (struct CMUnitTest){names[*count], function, NULL, NULL, (void *)(uintptr_t)guests[i]};
        ++*count;
    }
}

int main(void) {
    struct CMUnitTest tests[64];
    size_t count = 0;

    add_tests(tests, &count, "c_exports_work", c_exports_work, c_guests,
              sizeof c_guests / sizeof c_guests[0]);
    add_tests(tests, &count, "cxx_exports_work", cxx_exports_work, cxx_guests,
              sizeof cxx_guests / sizeof cxx_guests[0]);
    return _cmocka_run_group_tests("exports", tests, count, NULL, NULL);
}
