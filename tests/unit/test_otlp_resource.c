/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The resource in requests of OTLP: what is found out of the process and its host, what the user says
 * instead, and nothing that is a secret or a guest's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system.h"
#include "unit/otlp_tree.h"

static json_t *resource_of(ph_export_signal signal, const struct ph__otlp_settings *settings) {
    struct otlp_pair pair;
    const ph_trace_span span = {.size = sizeof span, .id = 1, .kind = PH_SPAN_USER, .name = "any"};
    const ph_trace_event event = {.size = sizeof event, .level = PH_LEVEL_INFO, .name = "any"};

    otlp_open(&pair, signal, settings);
    if (signal == PH_EXPORT_TRACES)
        otlp_span(&pair, &span);
    else
        otlp_event(&pair, &event);
    json_t *tree = otlp_finish(&pair);
    const char *list = signal == PH_EXPORT_TRACES ? "resourceSpans" : "resourceLogs";
    json_t *resource =
        json_incref(json_object_get(json_array_get(json_object_get(tree, list), 0), "resource"));
    json_decref(tree);
    return resource;
}

static void assert_string_attribute(const json_t *item, const char *name, const char *text) {
    const json_t *value = otlp_attribute(item, name);

    assert_non_null(value);
    assert_string_equal(json_string_value(json_object_get(value, "stringValue")), text);
}

static void the_resource_says_who_and_where(void **state) {
    struct utsname names;
    char expected[64], path[4096];

    (void)state;
    json_t *resource = resource_of(PH_EXPORT_TRACES, NULL);
    assert_int_equal(uname(&names), 0);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    assert_true(length > 0);
    path[length] = 0;
    assert_string_attribute(resource, "service.name", "test");
    assert_string_attribute(resource, "telemetry.sdk.name", "pinhole");
    assert_string_attribute(resource, "telemetry.sdk.language", "c");
    assert_string_attribute(resource, "telemetry.sdk.version", ph_version());
    assert_string_attribute(resource, "host.name", names.nodename);
    assert_string_attribute(resource, "host.arch", "amd64");
    assert_string_attribute(resource, "os.type", "linux");
    assert_string_attribute(resource, "process.executable.path", path);
    assert_string_attribute(resource, "process.executable.name", strrchr(path, '/') + 1);
    snprintf(expected, sizeof expected, "{\"intValue\":\"%d\"}", getpid());
    assert_attribute(resource, "process.pid", expected);
    assert_null(otlp_attribute(resource, "process.command_args"));
    assert_int_equal(
        json_string_length(json_object_get(otlp_attribute(resource, "service.instance.id"), "stringValue")),
        36);

    /* It is the same for every signal. */
    json_t *other = resource_of(PH_EXPORT_LOGS, NULL);
    assert_same_tree(other, resource);
    json_decref(other);
    json_decref(resource);
}

static json_t *instance(void) {
    json_t *resource = resource_of(PH_EXPORT_TRACES, NULL);
    json_t *id = json_incref(
        json_object_get((json_t *)otlp_attribute(resource, "service.instance.id"), "stringValue"));

    json_decref(resource);
    return id;
}

static void a_child_of_fork_is_an_instance_of_its_own(void **state) {
    json_t *ours = instance();
    int status = 0;

    (void)state;
    const pid_t child = fork();
    if (child == 0)
        _exit(json_equal(instance(), ours) ? 1 : json_equal(instance(), instance()) ? 0 : 2);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    json_decref(ours);
}

static int no_uname(struct utsname *names) {
    (void)names;
    return -1;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the table has it so */
static ssize_t no_readlink(const char *path, char *target, size_t size) {
    (void)path;
    (void)target;
    (void)size;
    return -1;
}

static void what_cannot_be_found_out_is_left_out(void **state) {
    const struct ph__system real = ph__system;

    (void)state;
    ph__system.uname = no_uname;
    ph__system.readlink = no_readlink;
    json_t *resource = resource_of(PH_EXPORT_TRACES, NULL);
    ph__system = real;
    assert_null(otlp_attribute(resource, "host.name"));
    assert_null(otlp_attribute(resource, "host.arch"));
    assert_null(otlp_attribute(resource, "process.executable.name"));
    assert_null(otlp_attribute(resource, "process.executable.path"));
    assert_string_attribute(resource, "service.name", "test");
    assert_string_attribute(resource, "os.type", "linux");
    json_decref(resource);
}

static void what_the_user_says_of_the_resource_stands(void **state) {
    struct ph__otlp_pair pairs[] = {
        {(char *)"service.name", (char *)"shop"},
        {(char *)"host.name", (char *)"elsewhere"},
        {(char *)"process.pid", (char *)"1"},
        {(char *)"deployment.environment.name", (char *)"t\"est\xff"},
        {(char *)"empty", (char *)""},
    };
    struct ph__otlp_settings settings = otlp_settings();

    (void)state;
    settings.resource = (struct ph__otlp_pairs){pairs, sizeof pairs / sizeof pairs[0]};
    json_t *resource = resource_of(PH_EXPORT_TRACES, &settings);
    assert_string_attribute(resource, "service.name", "shop");
    assert_string_attribute(resource, "host.name", "elsewhere");
    assert_string_attribute(resource, "process.pid", "1");
    assert_string_attribute(resource, "deployment.environment.name", "t\"est\xef\xbf\xbd");
    assert_string_attribute(resource, "empty", "");
    assert_string_attribute(resource, "telemetry.sdk.name", "pinhole");
    json_decref(resource);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_resource_says_who_and_where),
        cmocka_unit_test(a_child_of_fork_is_an_instance_of_its_own),
        cmocka_unit_test(what_cannot_be_found_out_is_left_out),
        cmocka_unit_test(what_the_user_says_of_the_resource_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
