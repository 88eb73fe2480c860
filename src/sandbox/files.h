/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The files of a sandbox: opened and checked when it is made, mapped into its file window (abi/files.h), and
 * from then on the guest's alone to read. The host keeps them open only to say why a guest could not read on.
 */
#ifndef PH_SANDBOX_FILES_H
#define PH_SANDBOX_FILES_H

#include "abi/files.h"
#include "vm/memory.h"

struct ph__file {
    struct ph__file_entry entry;
    int file; /* -1: none */
};

/* Zeroed to begin with. */
struct ph__files {
    struct ph__file *list;
    size_t count;
    uint64_t size;   /* bytes of the file window */
    uint64_t number; /* for which path has which place, as a guest's descriptors and mappings know; 0: none */
};

/* Opens the (count) files of (wanted) and gives each its place. PH_E_ARGUMENT, PH_E_FILE, PH_E_MEMORY or
 * PH_E_SYSTEM; ph__files_close is due in any case. */
ph_status ph__files_open(struct ph__files *files, const ph_file *wanted, size_t count, ph_error *error);

/* Puts table and files into the file window of (memory), which was laid out for them. */
ph_status ph__files_map(const struct ph__files *files, const struct ph__memory *memory, ph_error *error);

/* The guest's path of a file that is shorter by now than it was, or NULL. */
const char *ph__files_shrunk(const struct ph__files *files);

void ph__files_close(struct ph__files *files);

#endif
