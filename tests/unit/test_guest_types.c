/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What pinhole/guest.h lets through the compiler, and what not: an export or import with another C type than
 * it says does not compile, in C and in C++, and one that is right compiles without a warning. So with
 * traces.
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

static void traces_of_the_wrong_type_do_not_compile(void **state) {
#define BODY(text)                                                                                           \
    "void f(const char *s, int64_t n); void f(const char *s, int64_t n) { (void)s; (void)n; " text "}"
#define FIELD "ph_i64(\"n\", n)"
#define FOUR FIELD ", " FIELD ", " FIELD ", " FIELD
#define FOUR_INTS "%d %d %d %d"
    static const struct source sources[] = {
        {BODY("PH_SPAN(\"a\"); PH_SPAN(\"b\", " FIELD "); PH_EVENT(\"c\", ph_str(\"s\", s));"), true},
        {BODY("PH_SPAN_AS(a, PH_LEVEL_WARN, \"a\"); PH_SPAN_FIELDS(a, ph_bytes(\"b\", s, 1));"), true},
        {BODY("ph_span a = PH_SPAN_BEGIN(\"a\", ph_f64(\"x\", 1.5)); PH_SPAN_END(a);"), true},
        {BODY("if (n) PH_EVENT(\"a\"); else PH_LOG_INFO(\"b\");"), true},
        {BODY("PH_LOG_INFO(\"plain\"); PH_LOG_AT(PH_LEVEL_WARN, \"%s %d\", s, 1);"), true},
        {BODY("PH_COUNTER(\"a\", n); PH_COUNTER_F64(\"b\", 0.5);"), true},
        {BODY("PH_ASYNC_BEGIN(\"a\", 1); PH_ASYNC_END(\"a\", 1, ph_bool(\"b\", true));"), true},
        {BODY("PH_EVENT(\"a\", " FOUR ", " FOUR ", " FOUR ");"), true},
        {BODY("PH_EVENT(\"a\", " FOUR ", " FOUR ", " FOUR ", " FIELD ");"), false},
        {BODY("PH_EVENT(\"a\", ph_i32(\"n\", 1));"), false},
        {BODY("PH_EVENT(\"a\", n);"), false},
        {BODY("PH_EVENT(\"a\", ph_i64(\"n\", s));"), false},
        {BODY("PH_EVENT(\"a\", ph_str(\"s\", n));"), false},
        {BODY("PH_EVENT(\"a\", ph_bytes(\"s\", s));"), false},
        {BODY("PH_EVENT(s);"), false},
        {BODY("PH_LOG_INFO(\"%d\", s);"), false},
        {BODY("PH_LOG_INFO(\"%s\");"), false},
        {BODY("PH_LOG_INFO(\"%d\", 1, 2);"), false},
        {BODY("PH_LOG_INFO(s);"), false},
        {BODY("PH_COUNTER(\"a\", s);"), false},
        {BODY("PH_LOG_INFO(\"" FOUR_INTS FOUR_INTS FOUR_INTS "\", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);"),
         true},
        {BODY("PH_LOG_INFO(\"" FOUR_INTS FOUR_INTS FOUR_INTS
              "%d\", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13);"),
         false},
        {BODY("PH_LOG_INFO(\"" FOUR_INTS FOUR_INTS FOUR_INTS FOUR_INTS
              "\", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);"),
         false},
        {BODY("PH_SPAN_AT(PH_LEVEL_ERROR, \"a\"); PH_EVENT_AT(PH_LEVEL_TRACE, \"a\");"), true},
        {BODY("PH_SPAN_AT(PH_LEVEL_OFF, \"a\");"), false},
        {BODY("PH_SPAN_AS(a, PH_LEVEL_OFF, \"a\"); (void)a;"), false},
        {BODY("PH_SPAN_END(PH_SPAN_BEGIN_AT(6, \"a\"));"), false},
        {BODY("PH_EVENT_AT(PH_LEVEL_OFF, \"a\");"), false},
        {BODY("PH_LOG_AT(PH_LEVEL_OFF, \"a\");"), false},
        {BODY("PH_ASYNC_BEGIN_AT(PH_LEVEL_OFF, \"a\", 1);"), false},
        {BODY("PH_SPAN_END(n);"), false},
        {BODY("PH_SPAN_FIELDS(n, " FIELD ");"), false},
    };
    (void)state;
    CHECK(c_compilers, "c", sources);
    CHECK(cxx_compilers, "c++", sources);
}

/* With PH_TRACE_DISABLE, which compile() cannot say before guest.h: a second inclusion would be empty. */
static const char everything[] = "#define PH_TRACE_DISABLE\n"
                                 "#include <pinhole/guest.h>\n"
                                 "#ifdef __cplusplus\nextern \"C\"\n#endif\n"
                                 "int64_t f(const char *unused, int64_t n);\n"
                                 "int64_t f(const char *unused, int64_t n) {\n"
                                 "    int64_t only_traced = 1;\n"
                                 "    PH_SPAN(\"a\", ph_str(\"s\", unused), ph_i64(\"n\", n++));\n"
                                 "    PH_SPAN_AS(span, PH_LEVEL_INFO, \"b\", ph_ptr(\"p\", &n));\n"
                                 "    PH_SPAN_FIELDS(span, ph_i64(\"n\", only_traced), ph_i64(\"n\", n++));\n"
                                 "    ph_span by_hand = PH_SPAN_BEGIN(\"c\", ph_bytes(\"b\", unused, 1));\n"
                                 "    PH_EVENT(\"d\", ph_bool(\"b\", n++ > 0));\n"
                                 "    PH_LOG_WARN(\"%s %d\", unused, (int)n++);\n"
                                 "    PH_COUNTER(\"e\", n++);\n"
                                 "    PH_COUNTER_F64(\"f\", 0.5);\n"
                                 "    PH_ASYNC_BEGIN(\"g\", 1);\n"
                                 "    PH_ASYNC_END(\"g\", 1, ph_i64(\"n\", n++));\n"
                                 "    PH_SPAN_END(by_hand);\n"
                                 "    return n;\n"
                                 "}\n"
                                 "#ifdef WRONG\n"
                                 "void g(void);\n"
                                 "void g(void) { PH_LOG_INFO(\"%d\", \"text\"); }\n"
                                 "#endif\n"
                                 "#ifdef WRONG_LEVEL\n"
                                 "void g(void);\n"
                                 "void g(void) { PH_SPAN_AT(PH_LEVEL_OFF, \"a\"); }\n"
                                 "#endif\n";

/* The exit status of (compiler) with (flag) for (source), whose assembly goes to (output). */
static int assemble(const char *source, const char *compiler, const char *language, const char *level,
                    const char *flag, const char *output) {
    const size_t size = strlen(source);
    const bool cxx = strcmp(language, "c++") == 0;
    int ends[2];
    int status;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], source, size), size);
    close(ends[1]);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[0], STDIN_FILENO);
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nowhere, STDERR_FILENO);
        execlp(compiler, compiler, cxx ? "-std=c++17" : "-std=c11", "-Wall", "-Wextra", "-Wpedantic",
               "-Wshadow", "-Werror", level, flag, "-S", "-fno-asynchronous-unwind-tables", "-I",
               getenv("PH_TEST_INCLUDE"), "-x", language, "-", "-o", output, (char *)NULL);
        _exit(127);
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void disabled_traces_are_checked_and_leave_nothing(void **state) {
    static const char *const compilers[][2] = {
        {"gcc", "c"}, {"g++", "c++"}, {"clang", "c"}, {"clang++", "c++"}};
    char output[] = "/tmp/ph-guest-types-XXXXXX";
    static char assembly[64 << 10];
    int placeholder = mkstemp(output);

    (void)state;
    assert_true(placeholder >= 0);
    close(placeholder);
    for (size_t i = 0; i < 8; i++) {
        const char *compiler = compilers[i / 2][0];
        int status =
            assemble(everything, compiler, compilers[i / 2][1], i % 2 ? "-O2" : "-O0", "-DRIGHT", output);
        if (status == 127 && i >= 4)
            continue;
        if (status != 0)
            fail_msg("%s: does not compile", compiler);
        int file = open(output, O_RDONLY | O_CLOEXEC); /* the compiler has made another one of that name */
        ssize_t size = read(file, assembly, sizeof assembly - 1);
        close(file);
        assert_true(size > 0 && size < (ssize_t)sizeof assembly - 1);
        assembly[size] = 0;
        assert_null(strstr(assembly, "ph_site"));
        assert_null(strstr(assembly, "rdtsc"));
        assert_null(strstr(assembly, "ph__trace"));
        assert_null(strstr(assembly, "ph__note"));
        if (i % 2 && !strstr(assembly, "movq\t%rsi, %rax\n\tret"))
            fail_msg("%s: more than the argument comes back:\n%s", compiler, assembly);
        status = assemble(everything, compiler, compilers[i / 2][1], "-O2", "-DWRONG", output);
        if (status == 0)
            fail_msg("%s: a disabled log is not checked", compiler);
        status = assemble(everything, compiler, compilers[i / 2][1], "-O2", "-DWRONG_LEVEL", output);
        if (status == 0)
            fail_msg("%s: the level of a disabled span is not checked", compiler);
    }
    unlink(output);
}

/* All that the macros make, in functions that are not to be instrumented themselves. */
static const char made_by_macros[] = "#include <pinhole/guest.h>\n"
                                     "#define PLAIN __attribute__((no_instrument_function)) static\n"
                                     "PH_IMPORT(ask, PH_I32, PH_STR);\n"
                                     "PH_IMPORT_AS(tell, say, PH_VOID);\n"
                                     "PLAIN int32_t f(const char *s) {\n"
                                     "    int32_t result;\n"
                                     "    PH_SPAN(\"a\", ph_str(\"s\", s));\n"
                                     "    PH_LOG_INFO(\"%d\", 1);\n"
                                     "    say();\n"
                                     "    return ph_try_say() || ph_try_ask(s, &result) ? ask(s) : result;\n"
                                     "}\n"
                                     "PH_EXPORT(f, PH_I32, PH_STR);\n"
                                     "PLAIN void prepare(void) { PH_COUNTER(\"c\", 1); }\n"
                                     "PH_INIT(prepare);\n"
                                     "#ifdef __cplusplus\nextern \"C\"\n#endif\n"
                                     "void own(void);\n"
                                     "void own(void) {}\n";

static void only_functions_of_the_program_are_instrumented(void **state) {
    static const char *const compilers[][2] = {
        {"gcc", "c"}, {"g++", "c++"}, {"clang", "c"}, {"clang++", "c++"}};
    char output[] = "/tmp/ph-guest-types-XXXXXX";
    static char assembly[64 << 10];
    int placeholder = mkstemp(output);

    (void)state;
    assert_true(placeholder >= 0);
    close(placeholder);
    for (size_t i = 0; i < 8; i++) {
        const char *compiler = compilers[i / 2][0];
        int status = assemble(made_by_macros, compiler, compilers[i / 2][1], i % 2 ? "-O2" : "-O0",
                              "-finstrument-functions", output);
        if (status == 127 && i >= 4)
            continue;
        if (status != 0)
            fail_msg("%s: does not compile", compiler);
        int file = open(output, O_RDONLY | O_CLOEXEC);
        ssize_t size = read(file, assembly, sizeof assembly - 1);
        close(file);
        assert_true(size > 0 && size < (ssize_t)sizeof assembly - 1);
        assembly[size] = 0;
        unsigned hooked = 0;
        for (const char *at = assembly; (at = strstr(at, "\t__cyg_profile_func_enter")); at++)
            hooked++;
        if (hooked != 1)
            fail_msg("%s: %u functions are instrumented:\n%s", compiler, hooked, assembly);
    }
    unlink(output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exports_of_the_wrong_type_do_not_compile_in_c),
        cmocka_unit_test(imports_of_the_wrong_type_do_not_compile_in_c),
        cmocka_unit_test(exports_and_imports_of_the_wrong_type_do_not_compile_in_cxx),
        cmocka_unit_test(twelve_arguments_compile_and_thirteen_do_not),
        cmocka_unit_test(traces_of_the_wrong_type_do_not_compile),
        cmocka_unit_test(disabled_traces_are_checked_and_leave_nothing),
        cmocka_unit_test(only_functions_of_the_program_are_instrumented),
    };
    return cmocka_run_group_tests_name("guest_types", tests, NULL, NULL);
}
