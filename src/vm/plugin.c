/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Opens the plug-in with the soft backend (plugin.h). It is looked for beside the library or program that
 * this code is in, and where it is installed; the environment has no say, since what is opened becomes a part
 * of the process.
 */
#include "vm/plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system.h"

#define PLUGIN "pinhole-soft.so"
#define PLUGIN_SYMBOL "ph__backend_plugin"
#define PATH_SIZE 4096

const char *ph__plugin_path;

/* Once for each process, and never closed: sandboxes point into it. */
static struct {
    pthread_mutex_t lock;
    void *handle;
    const struct ph__backend *backend;
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The folder that the object with this very code is in, with its slash; "" if that is not known. */
static void own_folder(char *folder, size_t size) {
    Dl_info info;

    folder[0] = 0;
    if (!dladdr(&plugin, &info) || !info.dli_fname || strlen(info.dli_fname) >= size)
        return;
    const char *slash = strrchr(info.dli_fname, '/');
    if (!slash)
        return;
    size_t length = (size_t)(slash - info.dli_fname) + 1;
    memcpy(folder, info.dli_fname, length);
    folder[length] = 0;
}

/* Writes the path of the plug-in's file to (path); false when there is none, with the last place in it. */
static bool find_file(char *path, size_t size) {
    /* In a build directory: beside the library, or below the command. Installed: below the library. */
    static const char *const places[] = {"", "pinhole/", "src/"};
    char folder[PATH_SIZE];

    if (ph__plugin_path) {
        snprintf(path, size, "%s", ph__plugin_path);
        return ph__system.access(path, F_OK) == 0;
    }
    own_folder(folder, sizeof folder);
    for (size_t i = 0; folder[0] && i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, size, "%s%s" PLUGIN, folder, places[i]);
        if (ph__system.access(path, F_OK) == 0)
            return true;
    }
    snprintf(path, size, "%s", PH__PLUGIN_DIR "/" PLUGIN);
    return ph__system.access(path, F_OK) == 0;
}

/* Why the file at (path) is none that can be opened. What it needs of others is Unicorn alone. */
static ph_status refuse(const char *path, ph_error *error) {
    const char *why = dlerror();

    why = why ? why : "no reason given";
    if (strstr(why, "libunicorn"))
        return ph__error_set(
            error, PH_E_BACKEND,
            "the soft backend needs the Unicorn Engine: install the package libunicorn2 (%s)", why);
    return ph__error_set(error, PH_E_BACKEND, "the soft backend's plug-in %s does not open: %s", path, why);
}

/* RTLD_DEEPBIND: see soft_guard.c. A process with AddressSanitizer in it, ours or not, is ended for that. */
static int flags(void) {
    return RTLD_NOW | RTLD_LOCAL | (dlsym(RTLD_DEFAULT, "__asan_init") ? 0 : RTLD_DEEPBIND);
}

static ph_status load(ph_error *error) {
    char path[PATH_SIZE + 64];

    if (!find_file(path, sizeof path))
        return ph__error_set(error, PH_E_BACKEND,
                             "there is no soft backend here, for want of its plug-in %s: build pinhole with "
                             "-Dsoft=enabled, which takes the package libunicorn-dev, and install it",
                             path);
    void *handle = dlopen(path, flags());
    if (!handle)
        return refuse(path, error);
    const struct ph__backend *found = dlsym(handle, PLUGIN_SYMBOL);
    if (!found || found->version != PH__BACKEND_VERSION) {
        dlclose(handle);
        return ph__error_set(error, PH_E_BACKEND,
                             PLUGIN " is of another version of pinhole: install the one of this version");
    }
    plugin.handle = handle;
    plugin.backend = found;
    return PH_OK;
}

ph_status ph__plugin_find(const struct ph__backend **backend, ph_error *error) {
    ph_status status = PH_OK;

    pthread_mutex_lock(&plugin.lock);
    if (!plugin.backend)
        status = load(error);
    *backend = plugin.backend;
    pthread_mutex_unlock(&plugin.lock);
    return status;
}
