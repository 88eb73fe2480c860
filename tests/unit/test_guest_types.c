/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What pinhole/guest.h lets through the compiler, and what not: an export or import with another C type than
 * it says does not compile, in C and in C++, and one that is right compiles without a warning.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const c_compilers[] = {"gcc", "clang"};
static const char *const cxx_compilers[] = {"g++", "clang++"};

struct source {
    const char *text;
    bool is_right;
};

/* The compiler's exit status for guest.h and (text); 127 when there is no such compiler. */
static int compile(const char *compiler, const char *language, const char *text) {
    const char *include = getenv("PH_TEST_INCLUDE");
    const bool cxx = strcmp(language, "c++") == 0;
    char source[2048];
    int ends[2];
    int status;

    assert_non_null(include);
    int size = snprintf(source, sizeof source, "#include <pinhole/guest.h>\n%s\n", text);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], source, (size_t)size), size); /* a pipe holds as much */
    close(ends[1]);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[0], STDIN_FILENO);
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nowhere, STDERR_FILENO);
        execlp(compiler, compiler, cxx ? "-std=c++17" : "-std=c11", "-Wall", "-Wextra", "-Wpedantic",
               "-Werror", "-Wno-unused-function", "-fsyntax-only", "-I", include, "-x", language, "-",
               (char *)NULL);
        _exit(127);
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void check(const char *const *compilers, const char *language, const struct source *sources,
                  size_t count) {
    for (size_t compiler = 0; compiler < 2; compiler++) {
        for (size_t i = 0; i < count; i++) {
            int status = compile(compilers[compiler], language, sources[i].text);
            if (status == 127 && compiler > 0) /* only GCC must be there */
                break;
            if ((status == 0) != sources[i].is_right)
                fail_msg("%s: %s: %s", compilers[compiler], status == 0 ? "compiles" : "does not compile",
                         sources[i].text);
        }
    }
}
#define CHECK(compilers, language, sources)                                                                  \
    check(compilers, language, sources, sizeof(sources) / sizeof((sources)[0]))

static void exports_of_the_wrong_type_do_not_compile_in_c(void **state) {
    static const struct source sources[] = {
        {"static int32_t f(int32_t x) { return x; } PH_EXPORT(f, PH_I32, PH_I32);", true},
        {"static int32_t f(const int32_t x) { return x; } PH_EXPORT(f, PH_I32, PH_I32);", true},
        {"static void f(void) {} PH_EXPORT(f, PH_VOID);", true},
        {"static const char *f(ph_bytes b) { return b.data; } PH_EXPORT(f, PH_STR, PH_BYTES);", true},
        {"static int32_t f(int32_t x) { return x; } PH_EXPORT(f, PH_I64, PH_I32);", false},
        {"static int32_t f(int32_t x) { return x; } PH_EXPORT(f, PH_U32, PH_I32);", false},
        {"static int32_t f(int32_t x) { return x; } PH_EXPORT(f, PH_I32, PH_U32);", false},
        {"static int32_t f(int32_t x) { return x; } PH_EXPORT(f, PH_I32);", false},
        {"static int32_t f(int32_t x) { return x; } PH_EXPORT(f, PH_I32, PH_I32, PH_I32);", false},
        {"static int32_t f(void) { return 1; } PH_EXPORT(f, PH_VOID);", false},
        {"static void f(void) {} PH_EXPORT(f, PH_I32);", false},
        {"static void f(void) {} PH_EXPORT(f, PH_VOID, PH_VOID);", false},
        {"static void f(long long x) { (void)x; } PH_EXPORT(f, PH_VOID, PH_I64);", false},
        {"static void f(float x) { (void)x; } PH_EXPORT(f, PH_VOID, PH_F64);", false},
        {"static void f(int x) { (void)x; } PH_EXPORT(f, PH_VOID, PH_BOOL);", false},
        {"static char *f(void) { return 0; } PH_EXPORT(f, PH_STR);", false},
        {"static void f(char *x) { (void)x; } PH_EXPORT(f, PH_VOID, PH_STR);", false},
        {"static void f(const ph_bytes *x) { (void)x; } PH_EXPORT(f, PH_VOID, PH_BYTES);", false},
        {"static void f(int32_t x) { (void)x; } PH_EXPORT(f, PH_VOID, int32_t);", false},
    };
    (void)state;
    CHECK(c_compilers, "c", sources);
}

static void imports_of_the_wrong_type_do_not_compile_in_c(void **state) {
    static const struct source sources[] = {
        {"PH_IMPORT(f, PH_I32, PH_STR); int32_t g(void); int32_t g(void) { return f(\"x\"); }", true},
        {"PH_IMPORT(f, PH_VOID); void g(void); void g(void) { f(); if (ph_try_f()) f(); }", true},
        {"PH_IMPORT(f, PH_I32); int32_t g(void); int32_t g(void) { int32_t r; return ph_try_f(&r) ? 0 : r; }",
         true},
        {"PH_IMPORT(f, PH_I32, PH_STR); int32_t g(void); int32_t g(void) { return f(1); }", false},
        {"PH_IMPORT(f, PH_STR); int32_t g(void); int32_t g(void) { return f(); }", false},
        {"PH_IMPORT(f, PH_I32, PH_BYTES); int32_t g(void); int32_t g(void) { return f(\"x\"); }", false},
        {"PH_IMPORT(f, PH_I32); int32_t g(void); int32_t g(void) { long r; return ph_try_f(&r); }", false},
        {"PH_IMPORT(f, PH_VOID, PH_VOID);", false},
        {"PH_IMPORT(f, PH_I32, int);", false},
        {"int64_t f(int32_t); PH_IMPORT(f, PH_I32, PH_I32);", false},
    };
    (void)state;
    CHECK(c_compilers, "c", sources);
}

static void exports_and_imports_of_the_wrong_type_do_not_compile_in_cxx(void **state) {
    static const struct source sources[] = {
        {"static int32_t f(int32_t x) noexcept { return x; } PH_EXPORT(f, PH_I32, PH_I32);", true},
        {"PH_EXPORT_AS(f, [](int32_t x) { return x; }, PH_I32, PH_I32);", true},
        {"template <class T> T f(T x) { return x; } PH_EXPORT_AS(f, f<int32_t>, PH_I32, PH_I32);", true},
        {"namespace n { PH_IMPORT(f, PH_STR, PH_STR); inline const char *g() { return f(\"\"); } }", true},
        {"static int32_t f(int32_t x) { return x; } PH_EXPORT(f, PH_I64, PH_I32);", false},
        {"static char *f() { return nullptr; } PH_EXPORT(f, PH_STR);", false},
        {"static void f(long long) {} PH_EXPORT(f, PH_VOID, PH_I64);", false},
        {"static void f(const int32_t &) {} PH_EXPORT(f, PH_VOID, PH_I32);", false},
        {"template <class T> T f(T x) { return x; } PH_EXPORT_AS(f, f<int32_t>, PH_I64, PH_I64);", false},
        {"PH_EXPORT_AS(f, [](int32_t x) { return x; }, PH_I64, PH_I32);", false},
        {"PH_IMPORT(f, PH_I32, PH_I32); const char *g(); const char *g() { return f(1); }", false},
        {"PH_IMPORT(f, PH_I32, PH_STR); int32_t g(); int32_t g() { return f(1); }", false},
    };
    (void)state;
    CHECK(cxx_compilers, "c++", sources);
}

static void twelve_arguments_compile_and_thirteen_do_not(void **state) {
#define EIGHT "PH_I32, PH_I32, PH_I32, PH_I32, PH_I32, PH_I32, PH_I32, PH_I32"
    static const struct source sources[] = {
        {"PH_IMPORT(f, PH_VOID, " EIGHT ", PH_I32, PH_I32, PH_I32, PH_I32);", true},
        {"PH_IMPORT(f, PH_VOID, " EIGHT ", PH_I32, PH_I32, PH_I32, PH_I32, PH_I32);", false},
        {"PH_IMPORT(f, PH_VOID, " EIGHT ", " EIGHT ");", false},
        {"PH_IMPORT(f, PH_VOID, " EIGHT ", " EIGHT ", " EIGHT ");", false},
    };
    (void)state;
    CHECK(c_compilers, "c", sources);
    CHECK(cxx_compilers, "c++", sources);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exports_of_the_wrong_type_do_not_compile_in_c),
        cmocka_unit_test(imports_of_the_wrong_type_do_not_compile_in_c),
        cmocka_unit_test(exports_and_imports_of_the_wrong_type_do_not_compile_in_cxx),
        cmocka_unit_test(twelve_arguments_compile_and_thirteen_do_not),
    };
    return cmocka_run_group_tests_name("guest_types", tests, NULL, NULL);
}
