/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Opens and maps the files of a sandbox (files.h). What the host's file system says of a file is read once;
 * nothing here ever reads a file's mapping.
 */
#include "sandbox/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/system.h"

static uint64_t round_up(uint64_t size, uint64_t unit) {
    return (size + unit - 1) / unit * unit;
}

/* ---- paths --------------------------------------------------------------------------------------------- */

/* Absolute, of names that are none of "", "." and "..". */
static bool path_is_sound(const char *path) {
    if (strnlen(path, PH__FILE_PATH_SIZE) == PH__FILE_PATH_SIZE)
        return false;
    do {
        if (*path != '/')
            return false;
        path++;
        size_t length = strcspn(path, "/");
        if (length == 0 || (path[0] == '.' && (length == 1 || (length == 2 && path[1] == '.'))))
            return false;
        path += length;
    } while (*path);
    return true;
}

/* Whether (path) is (folder), or would be inside it. */
static bool is_within(const char *path, const char *folder) {
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static ph_status take_path(const struct ph__files *files, const char *path, struct ph__file *file,
                           ph_error *error) {
    if (!path || !path_is_sound(path))
        return ph__error_set(
            error, PH_E_ARGUMENT,
            "a file's path in the guest is absolute, has at most %d bytes and no '.', '..' or "
            "double slash: not '%s'",
            PH_FILE_PATH_MAX, path ? path : "");
    for (size_t i = 0; i < files->count; i++) {
        const char *other = files->list[i].entry.path;
        if (is_within(path, other) || is_within(other, path))
            return ph__error_set(error, PH_E_ARGUMENT, "%s and %s cannot both be files in the guest", other,
                                 path);
    }
    memcpy(file->entry.path, path, strlen(path) + 1); /* its length was checked above */
    return PH_OK;
}

/* ---- content ------------------------------------------------------------------------------------------- */

static ph_status open_host_file(const char *path, struct ph__file *file, ph_error *error) {
    struct stat information;

    /* O_NONBLOCK: a pipe that nobody writes to must not hold the caller up before it is seen to be one. */
    file->file = ph__system.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file->file < 0 || ph__system.fstat(file->file, &information) != 0)
        return ph__error_set_system(error, PH_E_FILE, errno, "%s", path);
    if (!S_ISREG(information.st_mode))
        return ph__error_set(error, PH_E_FILE, "%s: only a regular file can be mapped into a guest", path);
    file->entry.size = (uint64_t)information.st_size;
    file->entry.modified_seconds = information.st_mtim.tv_sec;
    file->entry.modified_nanoseconds = (uint32_t)information.st_mtim.tv_nsec;
    return PH_OK;
}

static bool write_all(int file, const uint8_t *bytes, size_t size) {
    off_t offset = 0;

    while (size > 0) {
        ssize_t written = ph__system.pwrite(file, bytes, size, offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        offset += written;
        size -= (size_t)written;
    }
    return true;
}

static ph_status keep_bytes(ph_bytes bytes, struct ph__file *file, ph_error *error) {
    if (bytes.size && !bytes.data)
        return ph__error_set(error, PH_E_ARGUMENT, "%s has a size and no data", file->entry.path);
    file->entry.size = bytes.size;
    file->file = ph__system.memfd_create("pinhole-file", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file->file < 0 || !write_all(file->file, bytes.data, bytes.size) ||
        ph__system.fcntl(file->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) !=
            0)
        return ph__error_set_system(error, errno == ENOMEM || errno == ENOSPC ? PH_E_MEMORY : PH_E_SYSTEM,
                                    errno, "keeping the bytes of %s failed", file->entry.path);
    return PH_OK;
}

/* Opens one file, and gives it the next place in the window. */
static ph_status add(struct ph__files *files, const ph_file *wanted, ph_error *error) {
    struct ph__file *file = &files->list[files->count];

    file->file = -1;
    ph_status status = take_path(files, wanted->guest_path, file, error);
    if (status != PH_OK)
        return status;
    files->count++; /* from here on it is closed with the others */
    if (wanted->host_path && (wanted->bytes.data || wanted->bytes.size))
        return ph__error_set(error, PH_E_ARGUMENT, "%s has a host path and bytes: one of them is too many",
                             file->entry.path);
    status = wanted->host_path ? open_host_file(wanted->host_path, file, error)
                               : keep_bytes(wanted->bytes, file, error);
    if (status != PH_OK)
        return status;
    if (file->entry.size > PH__FILES_SIZE_MAX - PH__LARGE_PAGE_SIZE - files->size)
        return ph__error_set(
            error, PH_E_FILE, "%s: a sandbox's files can have no more than %llu GiB together",
            wanted->host_path ? wanted->host_path : file->entry.path, PH__FILES_SIZE_MAX >> 30);
    file->entry.gva = PH__FILES_GVA + files->size;
    files->size += round_up(file->entry.size, PH__LARGE_PAGE_SIZE);
    return PH_OK;
}

/* FNV-1a, 64 bits: it tells a host's mistakes apart, and protects from nobody. */
static uint64_t number_add(uint64_t number, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        number = (number ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3;
    return number;
}

ph_status ph__files_open(struct ph__files *files, const ph_file *wanted, size_t count, ph_error *error) {
    ph_status status = PH_OK;

    if (count == 0)
        return PH_OK;
    if (!wanted || count > PH__FILES_MAX)
        return ph__error_set(error, PH_E_ARGUMENT, "a sandbox can have %u files, not %zu", PH__FILES_MAX,
                             count);
    files->list = calloc(count, sizeof *files->list);
    if (!files->list)
        return ph__error_set(error, PH_E_MEMORY, "no memory for the sandbox's files");
    files->size = PH__FILE_TABLE_SIZE;
    files->number = 0xcbf29ce484222325;
    for (size_t i = 0; i < count && status == PH_OK; i++) {
        const struct ph__file_entry *entry = &files->list[i].entry;
        status = add(files, &wanted[i], error);
        files->number = number_add(files->number, entry->path, strlen(entry->path) + 1);
        files->number = number_add(files->number, &entry->gva, sizeof entry->gva);
    }
    return status;
}

ph_status ph__files_map(const struct ph__files *files, const struct ph__memory *memory, ph_error *error) {
    const struct ph__region *window = &memory->layout.files;

    if (files->count == 0)
        return PH_OK;
    struct ph__file_table *table = (struct ph__file_table *)(memory->base + window->offset);
    for (size_t i = 0; i < files->count; i++)
        table->entries[i] = files->list[i].entry;
    /* Now read-only, like the zeros behind the end of each file. */
    if (ph__system.mprotect(table, window->size, PROT_READ) != 0)
        return ph__error_set_system(error, errno == ENOMEM ? PH_E_MEMORY : PH_E_SYSTEM, errno,
                                    "protecting the file window failed");
    for (size_t i = 0; i < files->count; i++) {
        const struct ph__file_entry *entry = &files->list[i].entry;
        uint64_t size = round_up(entry->size, PH__PAGE_SIZE);
        if (size && !ph__memory_map_file(memory, entry->gva - window->gva, size, files->list[i].file))
            return ph__error_set_system(error, errno == ENOMEM ? PH_E_MEMORY : PH_E_FILE, errno,
                                        "mapping %s failed", entry->path);
    }
    return PH_OK;
}

const char *ph__files_shrunk(const struct ph__files *files) {
    for (size_t i = 0; i < files->count; i++) {
        struct stat information;
        if (ph__system.fstat(files->list[i].file, &information) == 0 &&
            (uint64_t)information.st_size < files->list[i].entry.size)
            return files->list[i].entry.path;
    }
    return NULL;
}

void ph__files_close(struct ph__files *files) {
    for (size_t i = 0; i < files->count; i++)
        if (files->list[i].file >= 0)
            ph__system.close(files->list[i].file);
    free(files->list);
    *files = (struct ph__files){0};
}
