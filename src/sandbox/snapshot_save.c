/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Writes a snapshot to a file (snapshot_format.h): to a temporary one beside it, which takes its name when
 * all of it is on the disk. So there is the old file or the new one, whatever happens, and never a part of
 * one. Pages of zeroes are not written: they are holes of the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "abi/control.h"
#include "base/error.h"
#include "base/process.h"
#include "base/system.h"
#include "base/time.h"
#include "sandbox/snapshot.h"
#include "sandbox/snapshot_file.h"
#include "vm/boot.h"

/* ---- content ------------------------------------------------------------------------------------------- */

/* A file under way. */
struct saving {
    const ph_snapshot *snapshot;
    const char *path;
    struct ph__snapshot_head head;
    uint8_t *tables;
    uint64_t *words; /* the tables, in the host's byte order */
    int file;
    ph_error *error;
};

static ph_status file_failed(const struct saving *saving) {
    ph__error_set_system(saving->error, PH_E_FILE, errno, "%s", "");
    return ph__snapshot_file_name(saving->path, saving->error);
}

static ph_status no_memory(ph_error *error) {
    return ph__error_set(error, PH_E_MEMORY, "no memory for saving a snapshot");
}

/* The name without its folders, or as much of its end as there is room for. */
static void name_copy(const char *path, char name[PH__SNAPSHOT_NAME_SIZE]) {
    const char *slash = strrchr(path, '/');
    const char *last = slash && slash[1] ? slash + 1 : path;
    size_t length = strlen(last);

    if (length >= PH__SNAPSHOT_NAME_SIZE)
        last += length - (PH__SNAPSHOT_NAME_SIZE - 1);
    memset(name, 0, PH__SNAPSHOT_NAME_SIZE);
    snprintf(name, PH__SNAPSHOT_NAME_SIZE, "%s", last);
}

/* What KVM leaves in the registers of ring 3 and is not ring 3's, or means nothing, is the same in every
 * file. */
static struct ph__processor processor_of(const ph_snapshot *snapshot) {
    struct ph__processor processor = snapshot->processor;

    if (processor.xsave_size < sizeof processor.xsave)
        memset(processor.xsave + processor.xsave_size, 0, sizeof processor.xsave - processor.xsave_size);
    processor.reserved = 0;
    return processor;
}

/* Everything but the digests. */
static ph_status head_fill(struct saving *saving) {
    const ph_snapshot *snapshot = saving->snapshot;
    struct ph__snapshot_head *head = &saving->head;

    *head = (struct ph__snapshot_head){
        .format = PH__SNAPSHOT_FORMAT,
        .head_size = PH__SNAPSHOT_HEAD_SIZE,
        .abi = PH__ABI_VERSION,
        .page_size = PH__PAGE_SIZE,
        .protection_count = snapshot->protections.count,
        .features = snapshot->features,
        .files = snapshot->files,
        .request = ph__snapshot_request(snapshot->image, &snapshot->layout),
        .seed_generation = snapshot->seed_generation,
        .trace_position = snapshot->trace_position,
        .input_taken = snapshot->input_taken,
        .saved_ns = ph__time_ns(CLOCK_REALTIME),
        .processor = processor_of(snapshot),
    };
    name_copy(snapshot->image->name, head->image_name);
    ph__boot_digest(head->monitor);
    return ph__image_identify(snapshot->image, &head->image, saving->error);
}

/* Page numbers and protections. */
static ph_status tables_fill(struct saving *saving) {
    const ph_snapshot *snapshot = saving->snapshot;
    const struct ph__page_list *pages = &snapshot->pages;
    struct ph__snapshot_head *head = &saving->head;

    saving->words = calloc(pages->count + snapshot->protections.count + 1, sizeof *saving->words);
    if (!saving->words)
        return no_memory(saving->error);
    for (size_t i = 0; i < pages->count; i++)
        if (ph__snapshot_page_is_kept(&snapshot->layout, pages->pages[i]))
            saving->words[head->page_count++] = pages->pages[i];
    memcpy(saving->words + head->page_count, snapshot->protections.entries,
           snapshot->protections.count * sizeof *saving->words);
    head->file_size = ph__snapshot_file_size(head);
    saving->tables = calloc(1, ph__snapshot_tables_room(head) + 1);
    if (!saving->tables)
        return no_memory(saving->error);
    ph__snapshot_words_encode(saving->words, head->page_count + head->protection_count, saving->tables);
    return PH_OK;
}

static ph_status pages_write(struct saving *saving) {
    const ph_snapshot *snapshot = saving->snapshot;
    uint64_t offset = ph__snapshot_data_offset(&saving->head);
    uint8_t buffer[PH__PAGE_SIZE];
    struct ph__sha256 hash;

    ph__sha256_begin(&hash);
    for (size_t i = 0; i < snapshot->pages.count; i++) {
        if (!ph__snapshot_page_is_kept(&snapshot->layout, snapshot->pages.pages[i]))
            continue;
        const uint8_t *page = ph__snapshot_page(snapshot, i, buffer, saving->error);
        if (!page)
            return saving->error->status;
        ph__sha256_add(&hash, page, PH__PAGE_SIZE);
        if (!ph__content_is_zero(page, PH__PAGE_SIZE) &&
            ph__content_write(saving->file, page, PH__PAGE_SIZE, offset) != 0)
            return file_failed(saving);
        offset += PH__PAGE_SIZE;
    }
    ph__sha256_end(&hash, saving->head.data_digest);
    return PH_OK;
}

static ph_status head_write(struct saving *saving) {
    const uint64_t size = ph__snapshot_tables_size(&saving->head);
    uint8_t head[PH__SNAPSHOT_HEAD_SIZE];

    ph__snapshot_head_encode(&saving->head, head);
    ph__snapshot_digest(head, saving->tables, size, saving->head.digest);
    ph__snapshot_head_encode(&saving->head, head);
    if (ph__content_write(saving->file, saving->tables, size, sizeof head) != 0 ||
        ph__content_write(saving->file, head, sizeof head, 0) != 0)
        return file_failed(saving);
    return PH_OK;
}

static ph_status content_write(struct saving *saving) {
    ph_status status = head_fill(saving);

    if (status == PH_OK)
        status = tables_fill(saving);
    if (status == PH_OK && ph__system.ftruncate(saving->file, (off_t)saving->head.file_size) != 0)
        status = file_failed(saving);
    if (status == PH_OK)
        status = pages_write(saving);
    if (status == PH_OK)
        status = head_write(saving);
    if (status == PH_OK && ph__system.fsync(saving->file) != 0)
        status = file_failed(saving);
    free(saving->tables);
    free(saving->words);
    return status;
}

/* ---- names --------------------------------------------------------------------------------------------- */

/* Makes a new file in (folder), which ends with a slash or is empty, and its name: (*temporary), to be freed.
 * -1 with errno. */
static int temporary_create(const char *folder, char **temporary) {
    uint64_t number;
    int file = -1;

    const size_t size = strlen(folder) + 32;
    *temporary = malloc(size);
    if (!*temporary)
        return -1;
    for (int turn = 0; turn < 100; turn++) {
        if (ph__system.getrandom(&number, sizeof number, 0) != sizeof number)
            break;
        snprintf(*temporary, size, "%s.pinhole-%016llx", folder, (unsigned long long)number);
        file = ph__system.open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
        if (file >= 0 || errno != EEXIST)
            break;
    }
    return file;
}

/* What takes the name of a file that is there has to be one of the same kind: a device or a pipe is never
 * replaced, nor a folder. Nor is a link, which would go in the place of what it leads to: /dev/stdout is one.
 */
static ph_status target_check(const struct saving *saving) {
    struct stat information;
    ph_status status = PH_OK;

    if (ph__system.lstat(saving->path, &information) != 0)
        return errno == ENOENT ? PH_OK : file_failed(saving);
    if (!S_ISREG(information.st_mode))
        status = ph__error_set(saving->error, PH_E_FILE, "there is something that is not a regular file");
    return status == PH_OK ? PH_OK : ph__snapshot_file_name(saving->path, saving->error);
}

/* Gives the file that is called (temporary) its name, for good: the folder, opened as (folder), is synced
 * too. Some file systems cannot do that, and say so. */
static ph_status name_give(const struct saving *saving, const char *temporary, int folder) {
    if (ph__system.rename(temporary, saving->path) != 0)
        return file_failed(saving);
    return ph__system.fsync(folder) == 0 || errno == EINVAL ? PH_OK : file_failed(saving);
}

/* The folders of (path), with the last slash, to be freed; NULL when there is no memory. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    const size_t size = slash ? (size_t)(slash + 1 - path) : 0;
    char *folder = calloc(1, size + 1);

    if (folder)
        memcpy(folder, path, size);
    return folder;
}

static ph_status save(struct saving *saving) {
    char *folder = folder_of(saving->path);
    char *temporary = NULL;
    int folder_file = -1;

    if (!folder)
        return no_memory(saving->error);
    ph_status status = target_check(saving);
    if (status != PH_OK)
        goto free_names;
    folder_file = ph__system.open(folder[0] ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_file < 0) {
        status = file_failed(saving);
        goto free_names;
    }
    saving->file = temporary_create(folder, &temporary);
    if (saving->file < 0) {
        status = temporary ? file_failed(saving) : no_memory(saving->error);
        goto close_folder;
    }
    status = content_write(saving);
    /* The last writes to a file on a network may fail only here. */
    if (ph__system.close(saving->file) != 0 && status == PH_OK)
        status = file_failed(saving);
    if (status == PH_OK)
        status = name_give(saving, temporary, folder_file);
    if (status != PH_OK)
        ph__system.unlink(temporary);
close_folder:
    ph__system.close(folder_file);
free_names:
    free(temporary);
    free(folder);
    return status;
}

ph_status ph_snapshot_save(ph_snapshot *snapshot, const char *path, ph_error *error) {
    ph_error ignored = {0};
    struct saving saving = {
        .snapshot = snapshot,
        .path = path,
        .file = -1,
        .error = error ? error : &ignored,
    };

    if (!snapshot || !path || !path[0])
        return ph__error_set(error, PH_E_ARGUMENT, "a snapshot and a path are needed");
    if (snapshot->owner != ph__process_id())
        return ph__error_set(error, PH_E_FORKED, "the snapshot was made before fork()");
    return save(&saving);
}
