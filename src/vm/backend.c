/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Chooses a backend, and opens the plug-in of the soft one when that is asked for (backend.h). The plug-in is
 * looked for beside the library or program that this code is in, and where it is installed; the environment
 * has no say, since what is opened becomes a part of the process.
 */
#include "vm/backend.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/system.h"
#include "vm/kvm_probe.h"

#define PLUGIN "pinhole-soft.so"
#define PLUGIN_SYMBOL "ph__backend_plugin"
#define PATH_SIZE 4096

/* RTLD_DEEPBIND: see soft_guard.c. AddressSanitizer ends a process that asks for it. */
#ifdef __SANITIZE_ADDRESS__
#define PLUGIN_FLAGS (RTLD_NOW | RTLD_LOCAL)
#else
#define PLUGIN_FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)
#endif

const struct ph__backend *ph__backend_instead;
const char *ph__backend_plugin_path;

/* ---- the plug-in --------------------------------------------------------------------------------------- */

/* Once for each process, and never closed: sandboxes point into it. */
static struct {
    pthread_mutex_t lock;
    const struct ph__backend *backend;
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The folder that the object with this very code is in, with its slash; "" if that is not known. */
static void own_folder(char *folder, size_t size) {
    Dl_info info;

    folder[0] = 0;
    if (!ph__system.dladdr(&plugin, &info) || !info.dli_fname || strlen(info.dli_fname) >= size)
        return;
    const char *slash = strrchr(info.dli_fname, '/');
    if (!slash)
        return;
    size_t length = (size_t)(slash - info.dli_fname) + 1;
    memcpy(folder, info.dli_fname, length);
    folder[length] = 0;
}

static void *open_plugin(void) {
    /* In a build directory: beside the library, or below the command. Installed: below the library. */
    static const char *const places[] = {"", "pinhole/", "src/"};
    char folder[PATH_SIZE], path[PATH_SIZE + 64];
    void *handle = NULL;

    if (ph__backend_plugin_path)
        return ph__system.dlopen(ph__backend_plugin_path, PLUGIN_FLAGS);
    own_folder(folder, sizeof folder);
    for (size_t i = 0; folder[0] && !handle && i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s%s" PLUGIN, folder, places[i]);
        handle = ph__system.dlopen(path, PLUGIN_FLAGS);
    }
    return handle ? handle : ph__system.dlopen(PH__PLUGIN_DIR "/" PLUGIN, PLUGIN_FLAGS);
}

static ph_status load_plugin(ph_error *error) {
    void *handle = open_plugin();

    if (!handle) {
        const char *why = ph__system.dlerror();
        return ph__error_set(error, PH_E_BACKEND,
                             "there is no soft backend here: install the package with " PLUGIN
                             ", and libunicorn2 (%s)",
                             why ? why : "no reason given");
    }
    const struct ph__backend *found = ph__system.dlsym(handle, PLUGIN_SYMBOL);
    if (!found || found->version != PH__BACKEND_VERSION) {
        ph__system.dlclose(handle);
        return ph__error_set(error, PH_E_BACKEND,
                             PLUGIN " is of another version of pinhole: install the one of this version");
    }
    plugin.backend = found;
    return PH_OK;
}

static ph_status find_soft(const struct ph__backend **backend, ph_error *error) {
    ph_status status = PH_OK;

    pthread_mutex_lock(&plugin.lock);
    if (!plugin.backend)
        status = load_plugin(error);
    *backend = plugin.backend;
    pthread_mutex_unlock(&plugin.lock);
    return status;
}

/* ---- choosing ------------------------------------------------------------------------------------------ */

static const struct ph__backend *kvm(void) {
    return ph__backend_instead ? ph__backend_instead : &ph__backend_kvm;
}

/* Whether KVM works here. What an error says of it is kept to be told. */
static ph_status try_kvm(ph_error *error) {
    uint64_t features, xcr0;
    ph_status status = kvm()->features(&features, &xcr0, error);

    return status == PH_OK && kvm() == &ph__backend_kvm ? ph__kvm_probe(error) : status;
}

static ph_status find_best(ph_diagnostics_fn diagnostics, void *context, const struct ph__backend **backend,
                           ph_error *error) {
    char line[2 * PH_ERROR_MESSAGE_MAX];
    ph_error why, ignored;

    *backend = kvm();
    if (try_kvm(&why) == PH_OK)
        return PH_OK;
    if (find_soft(backend, &ignored) != PH_OK)
        return ph__error_set(error, PH_E_BACKEND, "%s; and %s", why.message, ignored.message);
    snprintf(line, sizeof line, "running on the soft backend, which isolates less than KVM would: %s",
             why.message);
    if (diagnostics)
        diagnostics(context, line);
    return PH_OK;
}

ph_status ph__backend_find(ph_backend wanted, ph_diagnostics_fn diagnostics, void *context,
                           const struct ph__backend **backend, ph_error *error) {
    switch (wanted) {
    case PH_BACKEND_KVM:
        *backend = kvm();
        return PH_OK;
    case PH_BACKEND_AUTO:
        return find_best(diagnostics, context, backend, error);
    case PH_BACKEND_SOFT:
        return find_soft(backend, error);
    default:
        return ph__error_set(error, PH_E_ARGUMENT, "there is no backend number %d", (int)wanted);
    }
}
