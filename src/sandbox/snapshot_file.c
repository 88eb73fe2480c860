/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Opens a snapshot's file, and reads what is in it (snapshot_file.h). All of it is read and nothing mapped: a
 * file that becomes shorter meanwhile is a shorter file, and not a SIGBUS.
 */
#include "sandbox/snapshot_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/system.h"

/* Bytes of a path in a message, so that it leaves room for what is wrong. */
#define SHOWN_PATH_MAX 160u

ph_status ph__snapshot_file_name(const char *path, ph_error *error) {
    size_t length = strlen(path);
    const char *cut = "";

    if (length > SHOWN_PATH_MAX) {
        cut = "...";
        path += length - SHOWN_PATH_MAX;
        while ((*path & 0xc0) == 0x80)
            path++;
    }
    const int system_error = error->system_error;
    ph__error_set(error, error->status, "%s%s: %s", cut, path, error->message);
    error->system_error = system_error;
    return error->status;
}

ssize_t ph__snapshot_read(int file, uint8_t *bytes, size_t size, uint64_t offset) {
    size_t done = 0;

    while (done < size) {
        ssize_t got = ph__system.pread(file, bytes + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static ph_status read_failed(ph_error *error) {
    return ph__error_set_system(error, PH_E_FILE, errno, "reading failed");
}

static ph_status open_file(struct ph__snapshot_file *opened, ph_error *error) {
    struct stat information;

    /* O_NONBLOCK: a pipe that nobody writes to must not hold the caller up before it is seen to be one. */
    opened->file = ph__system.open(opened->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (opened->file < 0 || ph__system.fstat(opened->file, &information) != 0)
        return ph__error_set_system(error, PH_E_FILE, errno, "%s", "");
    if (!S_ISREG(information.st_mode))
        return ph__error_set(error, PH_E_FILE, "only a regular file can be a snapshot's");
    opened->size = (uint64_t)information.st_size;
    return PH_OK;
}

/* Reads the tables behind the (head), and checks all. The head's counts are no more than the file has room
 * for, which may be holes for the most part. */
static ph_status read_tables(struct ph__snapshot_file *opened, const uint8_t *head,
                             const struct ph__snapshot_wanted *wanted, ph_error *error) {
    if (!ph__snapshot_tables_fit(&opened->head))
        return ph__error_set(
            error, PH_E_SNAPSHOT,
            "the file is damaged: its tables are larger than those of any guest of its sizes");
    const uint64_t room = ph__snapshot_tables_room(&opened->head);
    uint8_t *tables = malloc(room + 1);
    uint64_t *words = malloc(ph__snapshot_tables_size(&opened->head) + 1);
    ph_status status;

    if (!tables || !words) {
        status = ph__error_set(error, PH_E_MEMORY, "no memory for the tables of a snapshot's file");
        goto free_both;
    }
    ssize_t got = ph__snapshot_read(opened->file, tables, room, PH__SNAPSHOT_HEAD_SIZE);
    if (got < 0)
        status = read_failed(error);
    else if ((uint64_t)got < room)
        status = ph__error_set(error, PH_E_SNAPSHOT, "the file is cut off within its tables");
    else
        status =
            ph__snapshot_format_check(head, &opened->head, tables, wanted, &opened->layout, words, error);
    if (status == PH_OK) {
        opened->words = words;
        words = NULL;
    }
free_both:
    free(words);
    free(tables);
    return status;
}

ph_status ph__snapshot_file_open(struct ph__snapshot_file *opened, const char *path,
                                 const struct ph__snapshot_wanted *wanted, ph_error *error) {
    uint8_t head[PH__SNAPSHOT_HEAD_SIZE];

    *opened = (struct ph__snapshot_file){.path = path, .file = -1};
    ph_status status = open_file(opened, error);
    if (status == PH_OK) {
        ssize_t got = ph__snapshot_read(opened->file, head, sizeof head, 0);
        status = got < 0 ? read_failed(error)
                         : ph__snapshot_head_decode(head, (size_t)got, opened->size, &opened->head, error);
    }
    opened->decoded = status == PH_OK;
    if (status == PH_OK)
        status = read_tables(opened, head, wanted, error);
    return status;
}

void ph__snapshot_file_close(struct ph__snapshot_file *opened) {
    if (opened->file >= 0)
        ph__system.close(opened->file);
    opened->file = -1;
    free(opened->words);
    opened->words = NULL;
}

/* Pages that are read at once. */
#define RUN 16u

ph_status ph__snapshot_pages_read(int file, uint64_t start, uint64_t count,
                                  const uint8_t digest[PH__SHA256_SIZE], ph__snapshot_take_fn take,
                                  void *context, ph_error *error) {
    uint8_t pages[RUN * PH__PAGE_SIZE];
    uint8_t found[PH__SHA256_SIZE];
    struct ph__sha256 hash;

    ph__sha256_begin(&hash);
    for (uint64_t done = 0; done < count;) {
        uint64_t run = count - done < RUN ? count - done : RUN;
        ssize_t got = ph__snapshot_read(file, pages, run * PH__PAGE_SIZE, start + done * PH__PAGE_SIZE);
        if (got < 0)
            return read_failed(error);
        if ((uint64_t)got < run * PH__PAGE_SIZE)
            return ph__error_set(error, PH_E_SNAPSHOT, "the file is cut off within its pages");
        ph__sha256_add(&hash, pages, (size_t)got);
        ph_status status = take ? take(context, pages, run, error) : PH_OK;
        if (status != PH_OK)
            return status;
        done += run;
    }
    ph__sha256_end(&hash, found);
    if (memcmp(found, digest, sizeof found) != 0)
        return ph__error_set(error, PH_E_SNAPSHOT,
                             "the file is damaged: its pages are not what their digest says");
    return PH_OK;
}
