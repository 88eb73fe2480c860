/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reading a snapshot's file: what loading one and looking at one have in common. snapshot_file.c opens and
 * checks, snapshot_load.c makes a snapshot of it, snapshot_examine.c says what is in it.
 */
#ifndef PH_SANDBOX_SNAPSHOT_FILE_H
#define PH_SANDBOX_SNAPSHOT_FILE_H

#include "sandbox/snapshot_format.h"

/* A file that was opened. */
struct ph__snapshot_file {
    const char *path; /* the caller's */
    int file;
    uint64_t size;
    bool decoded;                  /* (head) is filled */
    struct ph__snapshot_head head; /* hostile until (words) is there */
    struct ph__layout layout;
    uint64_t *words; /* page numbers, then protections: checked. NULL before */
};

/* Opens (path), reads and checks head and tables. (wanted) is what the file is to fit. Whatever is returned,
 * (opened) is to be closed with ph__snapshot_file_close. PH_E_FILE, PH_E_SNAPSHOT, PH_E_MEMORY. */
ph_status ph__snapshot_file_open(struct ph__snapshot_file *opened, const char *path,
                                 const struct ph__snapshot_wanted *wanted, ph_error *error);
void ph__snapshot_file_close(struct ph__snapshot_file *opened);

/* Reads the pages of a file, (count) of them from (start) on, and compares them with (digest). (take), unless
 * NULL, gets each run of pages with (context), and ends the reading when it fails. PH_E_SNAPSHOT when they
 * differ or are missing, PH_E_FILE. */
typedef ph_status (*ph__snapshot_take_fn)(void *context, const uint8_t *pages, uint64_t count,
                                          ph_error *error);
ph_status ph__snapshot_pages_read(int file, uint64_t start, uint64_t count,
                                  const uint8_t digest[PH__SHA256_SIZE], ph__snapshot_take_fn take,
                                  void *context, ph_error *error);

/* Reads (size) bytes at (offset). The number of bytes that there are, or -1 with errno. */
ssize_t ph__snapshot_read(int file, uint8_t *bytes, size_t size, uint64_t offset);

/* Puts the end of (path), as long as it leaves room for the reason, in front of the message in (error), and
 * returns its status. */
ph_status ph__snapshot_file_name(const char *path, ph_error *error);

#endif
