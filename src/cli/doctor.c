/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `pinhole doctor`: says what works on this machine, and what to do about the rest.
 */
#include "cli/doctor.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/options.h"

static const char help[] =
    "usage: pinhole doctor [OPTION]...\n"
    "\n"
    "Says what works on this machine, measures what it costs, and says what to do about what does not.\n"
    "\n"
    "  --json  print one JSON object\n"
    "  --help  print this\n"
    "\n"
    "Exit status: 0; 3 without a usable backend.\n";

/* More than this for a move is the kernel's doing, not noise. */
#define MOVE_NOTICEABLE_NS 1000000u

#define ADVICE_MAX 8

/* What to do, in sentences. */
struct advice {
    char text[ADVICE_MAX][384];
    size_t count;
};

static void add(struct advice *advice, const char *format, ...) PH_PRINTF(2, 3);

static void add(struct advice *advice, const char *format, ...) {
    va_list arguments;

    if (advice->count == ADVICE_MAX)
        return;
    va_start(arguments, format);
    vsnprintf(advice->text[advice->count++], sizeof advice->text[0], format, arguments);
    va_end(arguments);
}

/* ---- advice -------------------------------------------------------------------------------------------- */

static void advise_backend(const struct ph__doctor *doctor, struct advice *advice) {
    static const char how_to_open[] =
        "as a user, join the group that owns it (often kvm) and log in again; in a "
        "container, pass --device /dev/kvm";

    if (doctor->usable || doctor->open)
        return;
    if (doctor->module)
        add(advice, "This kernel has KVM (%s). Let this process open /dev/kvm: %s.", doctor->module,
            how_to_open);
    else if (doctor->has_vmx || doctor->has_svm)
        add(advice,
            "The processor has hardware virtualization. Load its KVM module (modprobe %s), and let this "
            "process "
            "open /dev/kvm: %s.",
            doctor->has_vmx ? "kvm_intel" : "kvm_amd", how_to_open);
    else if (doctor->is_virtual)
        add(advice, "This machine is a virtual one that shows no hardware virtualization. Turn on nested "
                    "virtualization "
                    "where it is hosted, or take a kind of machine that has /dev/kvm.");
    else
        add(advice,
            "The processor shows no hardware virtualization. Turn on VT-x or SVM in the firmware's set-up.");
}

static void advise_capabilities(const struct ph__doctor *doctor, struct advice *advice) {
    for (size_t i = 0; i < doctor->capability_count; i++)
        if (doctor->capabilities[i].needed && doctor->capabilities[i].value <= 0)
            add(advice, "%s is missing: Linux 4.17 or newer has it.", doctor->capabilities[i].name);
}

static void advise_measured(const struct ph__doctor *doctor, struct advice *advice) {
    if (!doctor->measured)
        return;
    if (!doctor->ring0_native)
        add(advice,
            "Ring 0 is interpreted here. Guests run in ring 3, at full speed; exceptions and the start of a "
            "guest cost more than on a KVM with VMX or SVM. Nothing needs to be done.");
    if (doctor->moved_run_ns > doctor->run_ns + MOVE_NOTICEABLE_NS)
        add(advice, "A vCPU that changes threads waits for the kernel. Use each sandbox from one thread, or "
                    "take a newer "
                    "kernel.");
    if (!doctor->tsc_khz)
        add(advice,
            "KVM does not say how fast the time-stamp counter is; clocks in guests are then less exact.");
    if (!doctor->tsc_offset_settable)
        add(advice, "The counter's offset cannot be set (Linux 5.16 and newer can). It is measured instead, "
                    "to within a "
                    "few microseconds.");
    if (!doctor->tsc_invariant)
        add(advice,
            "The time-stamp counter may change its speed. Clocks in guests then drift within a call.");
}

static void advise(const struct ph__doctor *doctor, struct advice *advice) {
    advise_backend(doctor, advice);
    advise_capabilities(doctor, advice);
    advise_measured(doctor, advice);
}

/* ---- text ---------------------------------------------------------------------------------------------- */

static bool is_usable(const struct ph__doctor *doctor) {
    return doctor->usable || doctor->soft.usable;
}

static const char *yes_or_no(bool yes) {
    return yes ? "yes" : "no";
}

/* Nanoseconds as people read them. */
static void print_time(const char *name, double ns) {
    if (ns < 1000)
        printf("%-24s%.3g ns\n", name, ns);
    else if (ns < 1000000)
        printf("%-24s%.3g us\n", name, ns / 1000);
    else
        printf("%-24s%.3g ms\n", name, ns / 1000000);
}

static uint64_t move_ns(const struct ph__doctor *doctor) {
    return doctor->moved_run_ns > doctor->run_ns ? doctor->moved_run_ns - doctor->run_ns : 0;
}

static void print_measured(const struct ph__doctor *doctor) {
    printf("%-24s%s\n", "ring 0", doctor->ring0_native ? "native" : "interpreted");
    print_time("  an instruction", doctor->ring0_instruction_ns);
    print_time("moving a vCPU", (double)move_ns(doctor));
    printf("%-24s%" PRIu64 " kHz\n", "time-stamp counter", doctor->tsc_khz);
    printf("%-24s%s\n", "  offset can be set", yes_or_no(doctor->tsc_offset_settable));
}

static void print_text(const struct ph__doctor *doctor, const struct advice *advice) {
    printf("%-24s%s\n", "pinhole", ph_version());
    printf("%-24s%s %s %s\n", "kernel", doctor->kernel.sysname, doctor->kernel.release,
           doctor->kernel.machine);
    printf("%-24s%s%s\n", "backend kvm",
           doctor->usable ? "usable" : "not usable: ", doctor->usable ? "" : doctor->error.message);
    if (doctor->usable)
        print_time("  an exit and back", (double)doctor->exit_ns);
    printf("%-24s%s%s\n", "backend soft", doctor->soft.usable ? "usable, isolates less" : "not usable: ",
           doctor->soft.usable ? "" : doctor->soft.error.message);
    if (doctor->soft.usable)
        print_time("  an exit and back", (double)doctor->soft.exit_ns);
    if (doctor->open)
        printf("%-24sversion %d%s%s\n", "/dev/kvm", doctor->api_version, doctor->module ? ", " : "",
               doctor->module ? doctor->module : "");
    for (size_t i = 0; i < doctor->capability_count; i++) {
        const struct ph__capability *capability = &doctor->capabilities[i];
        printf("  %-34s%-4s%s%s\n", capability->name, yes_or_no(capability->value > 0), capability->use,
               capability->needed ? " (needed)" : "");
    }
    if (doctor->measured)
        print_measured(doctor);
    printf("%-24s%s\n", doctor->measured ? "  invariant" : "invariant counter",
           yes_or_no(doctor->tsc_invariant));
    for (size_t i = 0; i < advice->count; i++)
        printf("%s- %s\n", i ? "" : "\n", advice->text[i]);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static json_t *describe_capabilities(const struct ph__doctor *doctor) {
    json_t *list = json_array();

    for (size_t i = 0; i < doctor->capability_count; i++) {
        const struct ph__capability *capability = &doctor->capabilities[i];
        json_array_append_new(list, json_pack("{s:s, s:i, s:b, s:s}", "name", capability->name, "value",
                                              capability->value, "needed", capability->needed, "use",
                                              capability->use));
    }
    return list;
}

static json_t *describe_advice(const struct advice *advice) {
    json_t *list = json_array();

    for (size_t i = 0; i < advice->count; i++)
        json_array_append_new(list, json_string(advice->text[i]));
    return list;
}

/* What was not measured is null. */
static void describe_measured(const struct ph__doctor *doctor, json_t *object) {
    json_object_set_new(object, "ring0",
                        doctor->measured ? json_pack("{s:b, s:f}", "native", doctor->ring0_native,
                                                     "ns_per_instruction", doctor->ring0_instruction_ns)
                                         : json_null());
    json_object_set_new(object, "thread_move_ns",
                        doctor->measured ? json_integer((json_int_t)move_ns(doctor)) : json_null());
    json_object_set_new(object, "exit_ns",
                        doctor->usable ? json_integer((json_int_t)doctor->exit_ns) : json_null());
    json_t *tsc = json_pack("{s:b}", "invariant", doctor->tsc_invariant);
    json_object_set_new(tsc, "khz",
                        doctor->tsc_khz ? json_integer((json_int_t)doctor->tsc_khz) : json_null());
    json_object_set_new(tsc, "offset_settable",
                        doctor->measured ? json_boolean(doctor->tsc_offset_settable) : json_null());
    json_object_set_new(object, "tsc", tsc);
}

static json_t *describe_backend(const char *name, bool usable, const ph_error *error) {
    return json_pack("{s:s, s:b, s:s?}", "name", name, "usable", usable, "reason",
                     usable ? NULL : error->message);
}

static void print_json(const struct ph__doctor *doctor, const struct advice *advice) {
    json_t *object = json_pack("{s:s, s:b}", "version", ph_version(), "usable", is_usable(doctor));
    json_t *backends = json_pack("[o, o]", describe_backend("kvm", doctor->usable, &doctor->error),
                                 describe_backend("soft", doctor->soft.usable, &doctor->soft.error));
    json_t *kvm = json_pack("{s:b, s:s?}", "open", doctor->open, "module", doctor->module);

    json_object_set_new(object, "backends", backends);
    json_object_set_new(object, "kernel",
                        json_pack("{s:s, s:s, s:s}", "name", doctor->kernel.sysname, "release",
                                  doctor->kernel.release, "machine", doctor->kernel.machine));
    json_object_set_new(kvm, "api_version", doctor->open ? json_integer(doctor->api_version) : json_null());
    json_object_set_new(kvm, "capabilities", describe_capabilities(doctor));
    json_object_set_new(object, "kvm", kvm);
    describe_measured(doctor, object);
    json_object_set_new(object, "advice", describe_advice(advice));
    json_dumpf(object, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(object);
}

static int run(const struct ph__command *command, struct ph__line *line) {
    bool json = false;
    const struct ph__option options[] = {{"--json", PH__OPTION_FLAG, &json}, {0}};
    struct ph__doctor doctor = {0};
    struct advice advice = {.count = 0};
    int status = ph__options_parse(command, options, line);

    if (status != PH__OPTIONS_GO_ON)
        return status;
    if (line->count > 0)
        return ph__usage_error(command, "nothing but options can follow, not '%s'", line->words[0]);
    ph__doctor_facts(&doctor);
    ph__doctor_program(&doctor);
    ph__doctor_vcpu(&doctor);
    advise(&doctor, &advice);
    if (json)
        print_json(&doctor, &advice);
    else
        print_text(&doctor, &advice);
    return ph__finish_output(is_usable(&doctor) ? PH__COMMAND_OK : PH__COMMAND_NO_BACKEND);
}

const struct ph__command ph__command_doctor = {
    .name = "doctor",
    .summary = "say what works on this machine, and what to do about the rest",
    .help = help,
    .usage_status = PH__COMMAND_USAGE,
    .run = run,
};
