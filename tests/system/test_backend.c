/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Which backend a sandbox gets: the one that is asked for, KVM where nothing is said, and in auto the soft
 * one with a line about it where KVM does not work. What goes from one to the other in a snapshot.
 */
#include <errno.h>
#include <linux/kvm.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <pinhole/snapshot.h>

#include "base/system.h"
#include "sandbox/sandbox.h"
#include "support/hidden_kvm.h"
#include "support/support.h"
#include "vm/backend.h"
#include "vm/plugin.h"

#define CPUID_1_ECX_AVX (1u << 28)

static char said[1024];
static unsigned lines;

static void say(void *context, const char *message) {
    (void)context;
    /* What KVM lacks here is none of this test's business. */
    if (!strstr(message, "soft backend"))
        return;
    snprintf(said, sizeof said, "%s", message);
    lines++;
}

/* A sandbox of "types" that asks for (backend), as far as it comes. */
static ph_status make(ph_backend backend, ph_sandbox **sandbox, ph_error *error) {
    ph_image *image = test_image("types");
    ph_config config = PH_CONFIG_INIT;

    config.backend = backend;
    config.diagnostics = say;
    config.timeout_ns = TEST_TIMEOUT_NS;
    lines = 0;
    ph_status status = ph_sandbox_create(image, &config, sandbox, error);
    ph_image_close(image);
    return status;
}

/* The same, started, on the backend called (name). */
static ph_sandbox *started(ph_backend backend, const char *name) {
    ph_sandbox *sandbox;
    ph_error error;

    if (make(backend, &sandbox, &error) != PH_OK)
        fail_msg("no sandbox: %s", error.message);
    assert_string_equal(ph_sandbox_backend(sandbox), name);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    return sandbox;
}

static void check_call(ph_sandbox *sandbox) {
    const ph_value minus_seven = {.type = PH_F64, .f64 = -7.25};
    ph_value result = {0};

    test_status(sandbox, test_call(sandbox, sandbox->image, "echo_f64", &minus_seven, 1, &result), PH_OK);
    assert_true(result.f64 == -7.25);
}

static int set_up(void **state) {
    (void)state;
    ph__plugin_path = getenv("PH_TEST_PLUGIN");
    return 0;
}

static int tear_down(void **state) {
    ph__system.open = open;
    return set_up(state);
}

static bool is_unicorn_here(void) {
    char line[4096];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        found = found || strstr(line, "libunicorn");
    fclose(maps);
    return found;
}

/* The first of all: the plug-in stays once it is open. */
static void kvm_opens_no_plugin(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox_destroy(started(PH_BACKEND_KVM, "kvm"));
    ph_sandbox_destroy(started(PH_BACKEND_AUTO, "kvm"));
    assert_false(is_unicorn_here());
    ph_sandbox_destroy(started(PH_BACKEND_SOFT, "soft"));
    assert_true(is_unicorn_here());
}

static void what_is_asked_for_by_name_says_nothing(void **state) {
    (void)state;
    ph_sandbox *sandbox = started(PH_BACKEND_SOFT, "soft");
    check_call(sandbox);
    assert_int_equal(lines, 0);
    ph_sandbox_destroy(sandbox);
}

static void auto_is_kvm_where_it_works(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = started(PH_BACKEND_AUTO, "kvm");
    check_call(sandbox);
    assert_int_equal(lines, 0);
    ph_sandbox_destroy(sandbox);
}

static void auto_without_kvm_is_soft_and_says_so_in_one_line(void **state) {
    (void)state;
    ph__system.open = open_without_kvm;
    ph_sandbox *sandbox = started(PH_BACKEND_AUTO, "soft");
    check_call(sandbox);
    assert_int_equal(lines, 1);
    assert_non_null(strstr(said, "isolates less"));
    assert_non_null(strstr(said, "cannot open /dev/kvm"));
    ph_sandbox_destroy(sandbox);
}

static void the_default_never_falls_back(void **state) {
    ph_sandbox *sandbox;
    ph_error error;

    (void)state;
    ph__system.open = open_without_kvm;
    assert_int_equal(make(PH_BACKEND_KVM, &sandbox, &error), PH_E_BACKEND);
    assert_non_null(strstr(error.message, "/dev/kvm"));
    assert_int_equal(lines, 0);
}

static void a_number_that_is_none_is_refused(void **state) {
    ph_sandbox *sandbox;
    ph_error error;

    (void)state;
    assert_int_equal(make((ph_backend)3, &sandbox, &error), PH_E_ARGUMENT);
    assert_non_null(strstr(error.message, "no backend number 3"));
}

/* What KVM is like in a child. */
enum kvm { HIDDEN, AS_IT_IS, MAKES_NO_VM, RUNS_NOTHING };

/* The tests before have opened the plug-in, which stays: so each of these is a process of its own. */
static void in_a_child(const char *plugin, enum kvm kvm, ph_backend backend, const char *what) {
    char command[8192];

    snprintf(command, sizeof command, "'%s' '%s' %d %d '%s'", getenv("PH_TEST_SELF"), plugin, kvm, backend,
             what);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): this program itself */
}

static int ioctl_without_vm(int file, unsigned long request, ...) {
    va_list arguments;

    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (request != KVM_CREATE_VM)
        return ioctl(file, request, argument);
    errno = ENOMEM;
    return -1;
}

/* KVM_RUN comes back as if something had been run. */
static int ioctl_without_run(int file, unsigned long request, ...) {
    va_list arguments;

    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return request == KVM_RUN ? 0 : ioctl(file, request, argument);
}

static void have_kvm(enum kvm kvm) {
    if (kvm == HIDDEN)
        ph__system.open = open_without_kvm;
    if (kvm == MAKES_NO_VM)
        ph__system.ioctl = ioctl_without_vm;
    if (kvm == RUNS_NOTHING)
        ph__system.ioctl = ioctl_without_run;
}

/* In the child: exit status 0 when a sandbox of (backend) is refused with (what) in the message. */
static int child(char **words) {
    ph_sandbox *sandbox;
    ph_error error;

    ph__plugin_path = words[1];
    have_kvm((enum kvm)strtol(words[2], NULL, 10));
    ph_status status = make((ph_backend)strtol(words[3], NULL, 10), &sandbox, &error);
    if (status == PH_E_BACKEND && strstr(error.message, words[4]))
        return 0;
    fprintf(stderr, "status %d, %s\n", status, status == PH_OK ? "" : error.message);
    return 1;
}

static void without_the_plugin_what_builds_it_is_named(void **state) {
    (void)state;
    in_a_child("/nonexistent.so", AS_IT_IS, PH_BACKEND_SOFT, "for want of its plug-in /nonexistent.so");
    in_a_child("/nonexistent.so", AS_IT_IS, PH_BACKEND_SOFT, "the package libunicorn-dev");
    in_a_child("/nonexistent.so", HIDDEN, PH_BACKEND_AUTO, "for want of its plug-in");
    in_a_child("/nonexistent.so", HIDDEN, PH_BACKEND_AUTO, "cannot open /dev/kvm");
}

static void auto_takes_no_kvm_that_opens_and_does_not_work(void **state) {
    (void)state;
    test_needs_kvm();
    in_a_child("/nonexistent.so", MAKES_NO_VM, PH_BACKEND_AUTO, "KVM_CREATE_VM failed");
    in_a_child("/nonexistent.so", RUNS_NOTHING, PH_BACKEND_AUTO,
               "KVM makes a virtual machine and does not run it");
}

/* The plug-in, but that it wants a Unicorn that no machine has. */
static void write_plugin_without_unicorn(const char *path) {
    static const char wanted[] = "libunicorn.so.";
    FILE *from = fopen(getenv("PH_TEST_PLUGIN"), "rb");
    FILE *to = fopen(path, "wb");
    char *bytes = malloc(16u << 20);

    assert_true(from && to && bytes);
    size_t size = fread(bytes, 1, 16u << 20, from);
    char *name = memmem(bytes, size, wanted, sizeof wanted - 1);
    assert_non_null(name);
    name[sizeof wanted - 1] = 'x';
    assert_int_equal(fwrite(bytes, 1, size, to), size);
    free(bytes);
    fclose(from);
    assert_int_equal(fclose(to), 0);
}

static void without_unicorn_its_package_is_named(void **state) {
    char path[] = "/tmp/pinhole-plugin-XXXXXX";
    int file = mkstemp(path);

    (void)state;
    assert_true(file >= 0);
    close(file);
    in_a_child(path, AS_IT_IS, PH_BACKEND_SOFT, "does not open");
    write_plugin_without_unicorn(path);
    in_a_child(path, AS_IT_IS, PH_BACKEND_SOFT, "install the package libunicorn2 (libunicorn.so.x");
    in_a_child(path, HIDDEN, PH_BACKEND_AUTO, "install the package libunicorn2");
    unlink(path);
}

static void a_plugin_of_another_version_is_refused(void **state) {
    (void)state;
    in_a_child(getenv("PH_TEST_OTHER_PLUGIN"), AS_IT_IS, PH_BACKEND_SOFT, "of another version of pinhole");
}

/* Both ways to come to guest memory are needed for this: a plug-in that was built with 2.1 has both. */
static void a_plugin_built_with_an_older_unicorn_is_refused(void **state) {
    const char *newer = getenv("PH_TEST_NEWER_UNICORN");

    (void)state;
    if (!newer) {
        fprintf(stderr, "SKIPPED, this was built with a Unicorn that is no older one\n");
        skip();
    }
    in_a_child(newer, AS_IT_IS, PH_BACKEND_SOFT, "the library here is 2.1.0");
    in_a_child(newer, AS_IT_IS, PH_BACKEND_SOFT, "build pinhole again");
}

static ph_snapshot *take(ph_sandbox *sandbox) {
    ph_snapshot *snapshot = NULL;

    test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
    return snapshot;
}

static ph_status make_from(ph_snapshot *snapshot, ph_backend backend, ph_sandbox **sandbox, ph_error *error) {
    ph_config config = PH_CONFIG_INIT;

    config.backend = backend;
    config.timeout_ns = TEST_TIMEOUT_NS;
    return ph_sandbox_create_from(snapshot, &config, sandbox, error);
}

static void a_snapshot_of_kvm_needs_more_than_soft_has(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = started(PH_BACKEND_KVM, "kvm");
    ph_snapshot *snapshot = take(sandbox);
    ph_sandbox *other = NULL;
    ph_error error;

    assert_int_equal(make_from(snapshot, PH_BACKEND_SOFT, &other, &error), PH_E_SNAPSHOT);
    /* The C library has seen AVX and has taken its functions by that, where there is AVX. */
    assert_non_null(strstr(error.message, "the snapshot needs "));
    assert_non_null(strstr(error.message, ", which the soft backend's processor does not have"));
    assert_true(!(sandbox->vcpu->features->words[PH__FEATURES_1_ECX] & CPUID_1_ECX_AVX) ||
                strstr(error.message, "AVX"));
    ph_snapshot_close(snapshot);
    ph_sandbox_destroy(sandbox);
}

static void a_snapshot_of_soft_goes_on_on_kvm(void **state) {
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = started(PH_BACKEND_SOFT, "soft");
    check_call(sandbox);
    ph_snapshot *snapshot = take(sandbox);
    ph_sandbox *other = NULL;
    ph_error error;

    if (make_from(snapshot, PH_BACKEND_KVM, &other, &error) != PH_OK)
        fail_msg("a snapshot of soft on kvm: %s", error.message);
    assert_string_equal(ph_sandbox_backend(other), "kvm");
    check_call(other);
    ph_sandbox_destroy(other);
    ph_snapshot_close(snapshot);
    ph_sandbox_destroy(sandbox);
}

/* Many times, so that an emulator that is not taken down as a whole is seen. */
static void a_sandbox_is_restored_after_the_emulator_gave_up(void **state) {
    ph_config config = PH_CONFIG_INIT;
    ph_sandbox *sandbox = NULL;
    ph_error error;

    (void)state;
    test_needs_soft_guard();
    ph_image *image = test_image("hostile_undefined");
    config.backend = PH_BACKEND_SOFT;
    config.timeout_ns = TEST_TIMEOUT_NS;
    if (ph_sandbox_create(image, &config, &sandbox, &error) != PH_OK)
        fail_msg("no sandbox: %s", error.message);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    ph_snapshot *snapshot = take(sandbox);
    unsigned long pages = 0;
    for (unsigned i = 0; i < 300; i++) {
        test_status(sandbox, test_call(sandbox, image, "lock_bts_register", NULL, 0, NULL), PH_E_PROTOCOL);
        assert_non_null(strstr(ph_sandbox_error(sandbox)->message, "the emulator does not translate"));
        test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
        test_status(sandbox, test_call(sandbox, image, "pause", NULL, 0, NULL), PH_OK);
        if (i == 100)
            pages = test_resident_pages();
    }
    assert_true(test_resident_pages() < pages + 1000);
    ph_snapshot_close(snapshot);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

/* The emulator's own page tables have to lie outside the guest's addresses. */
static void soft_has_as_much_memory_as_leaves_room_for_its_tables(void **state) {
    static const uint64_t sizes[] = {1ull << 36, 1ull << 38, 3ull << 38};
    ph_image *image = test_image("types");
    ph_config config = {.size = sizeof config, .backend = PH_BACKEND_SOFT, .timeout_ns = TEST_TIMEOUT_NS};
    ph_sandbox *sandbox = NULL;
    ph_error error;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        config.memory = sizes[i];
        if (ph_sandbox_create(image, &config, &sandbox, &error) != PH_OK)
            fail_msg("0x%llx bytes: %s", (unsigned long long)sizes[i], error.message);
        test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
        check_call(sandbox);
        ph_sandbox_destroy(sandbox);
    }
    config.memory = 1ull << 40;
    assert_int_equal(ph_sandbox_create(image, &config, &sandbox, &error), PH_E_ARGUMENT);
    assert_non_null(strstr(error.message, "no room for page tables"));
    ph_image_close(image);
}

static void a_saved_snapshot_of_soft_is_loaded_without_its_backend(void **state) {
    char path[] = "/tmp/pinhole-backend-XXXXXX";
    int file = mkstemp(path);
    ph_snapshot *loaded = NULL;
    ph_sandbox *other = NULL;
    ph_error error;

    (void)state;
    assert_true(file >= 0);
    close(file);
    ph_sandbox *sandbox = started(PH_BACKEND_SOFT, "soft");
    ph_snapshot *snapshot = take(sandbox);
    assert_int_equal(ph_snapshot_save(snapshot, path, &error), PH_OK);
    if (ph_snapshot_load(sandbox->image, path, PH_SNAPSHOT_COPY, &loaded, &error) != PH_OK)
        fail_msg("loading: %s", error.message);
    assert_int_equal(make_from(loaded, PH_BACKEND_SOFT, &other, &error), PH_OK);
    check_call(other);
    ph_sandbox_destroy(other);
    ph_snapshot_close(loaded);
    ph_snapshot_close(snapshot);
    ph_sandbox_destroy(sandbox);
    unlink(path);
}

int main(int count, char **words) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kvm_opens_no_plugin, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_asked_for_by_name_says_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(auto_is_kvm_where_it_works, set_up, tear_down),
        cmocka_unit_test_setup_teardown(auto_without_kvm_is_soft_and_says_so_in_one_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_default_never_falls_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_number_that_is_none_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_the_plugin_what_builds_it_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(auto_takes_no_kvm_that_opens_and_does_not_work, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_unicorn_its_package_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_plugin_of_another_version_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_plugin_built_with_an_older_unicorn_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_snapshot_of_kvm_needs_more_than_soft_has, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_snapshot_of_soft_goes_on_on_kvm, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sandbox_is_restored_after_the_emulator_gave_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(soft_has_as_much_memory_as_leaves_room_for_its_tables, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_saved_snapshot_of_soft_is_loaded_without_its_backend, set_up,
                                        tear_down),
    };

    if (count == 5)
        return child(words);
    setenv("PH_TEST_SELF", words[0], 1);
    return cmocka_run_group_tests_name("backends", tests, NULL, NULL);
}
