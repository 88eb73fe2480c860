/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The resource of OTLP (otlp_parts.h): of what all spans, logs and metrics come. Nothing of a guest's is in
 * it, nor a command line, in which there may be secrets. What the user says goes before what is found out.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/system.h"
#include "export/otlp_environment.h"
#include "export/otlp_fields.h"
#include "export/otlp_parts.h"
#include "export/uuid.h"

#define INSTANCE_SIZE 37u

/* A random one for the process, so that traces, logs and metrics agree; a child of fork() has another one.
 * Empty without random bytes. */
static void instance_id(char id[INSTANCE_SIZE]) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint8_t made[16];
    static pid_t owner;

    *id = 0;
    pthread_mutex_lock(&lock);
    if (owner != ph__system.getpid() && ph__uuid_make(made))
        owner = ph__system.getpid();
    for (size_t i = 0; i < sizeof made && owner == ph__system.getpid(); i++)
        id += snprintf(id, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", made[i]);
    pthread_mutex_unlock(&lock);
}

/* What the conventions call a processor (host.arch). */
static const char *arch_name(const char *machine) {
    return strcmp(machine, "x86_64") == 0 ? "amd64" : strcmp(machine, "aarch64") == 0 ? "arm64" : machine;
}

/* An attribute that the user has not set. Nothing for a NULL or empty (text). */
static void add(struct ph__otlp_attributes *attributes, const struct ph__otlp_settings *settings,
                const char *name, const char *text) {
    if (text && *text && !ph__otlp_pairs_get(&settings->resource, name))
        ph__otlp_attribute_text(attributes, name, text);
}

static void add_process(struct ph__otlp_attributes *attributes, const struct ph__otlp_settings *settings) {
    char path[4096];

    if (!ph__otlp_pairs_get(&settings->resource, "process.pid"))
        ph__otlp_attribute_i64(attributes, "process.pid", ph__system.getpid());
    ssize_t length = ph__system.readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return;
    path[length] = 0;
    const char *slash = strrchr(path, '/');
    add(attributes, settings, "process.executable.name", slash ? slash + 1 : path);
    add(attributes, settings, "process.executable.path", path);
}

static void add_host(struct ph__otlp_attributes *attributes, const struct ph__otlp_settings *settings) {
    struct utsname system;

    add(attributes, settings, "os.type", "linux");
    if (ph__system.uname(&system) != 0)
        return;
    add(attributes, settings, "host.name", system.nodename);
    add(attributes, settings, "host.arch", arch_name(system.machine));
}

void ph__otlp_put_resource(struct ph__otlp_writer *writer, const struct ph__otlp_settings *settings) {
    size_t resource = ph__otlp_begin(writer, OF_RESOURCE_RESOURCE);
    struct ph__otlp_attributes attributes =
        ph__otlp_attributes_begin(writer, RESOURCE_ATTRIBUTES, UINT32_MAX, UINT32_MAX);
    char instance[INSTANCE_SIZE];

    for (size_t i = 0; i < settings->resource.count; i++) {
        const struct ph__otlp_pair *pair = &settings->resource.list[i];
        ph__otlp_attribute_text(&attributes, pair->name, pair->value);
    }
    instance_id(instance);
    add(&attributes, settings, "service.instance.id", instance);
    /* The conventions have a name for C++ and none for C; one that they do not have may be made up. */
    add(&attributes, settings, "telemetry.sdk.language", "c");
    add(&attributes, settings, "telemetry.sdk.name", "pinhole");
    add(&attributes, settings, "telemetry.sdk.version", ph_version());
    add_host(&attributes, settings);
    add_process(&attributes, settings);
    ph__otlp_attributes_end(&attributes);
    ph__otlp_end(writer, resource);
}
