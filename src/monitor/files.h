/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Files that the host has mapped, as the monitor's files see them: where a path leads, what is open, and what
 * bytes there are. A file is called by its index in the table of files (abi/files.h).
 */
#ifndef PH_MONITOR_FILES_H
#define PH_MONITOR_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/files.h"
#include "abi/monitor.h"

/* string.c */
void *memcpy(void *restrict to, const void *restrict from, size_t size);
int memcmp(const void *left, const void *right, size_t size);

/* ----------------------------------------------------------------- path.c -- */

const struct ph__file_entry *ph__file_entry(uint32_t file);

/* Where a path leads: to a file, the root or another folder. */
struct ph__found {
    bool is_file;
    bool is_root;
    uint32_t number; /* of the file, or for a folder of a file in it */
};

/* Follows the guest's path. Returns 0, or -errno if it leads nowhere. */
int64_t ph__path_find(uint64_t address, struct ph__found *found);

/* ---------------------------------------------------------- descriptors.c -- */

/* What open gives, and the descriptors that dup makes of it share. */
struct ph__open_file {
    uint64_t position; /* never above INT64_MAX */
    uint32_t flags;    /* of F_GETFL */
    uint16_t file;
    uint16_t references;
};
/* Small, so that the monitor's data that every start touches stays on few pages. */
_Static_assert(sizeof(struct ph__open_file) == 16, "an open file is 16 bytes");

/* NULL if (descriptor) is none, or stands for a stream. */
struct ph__open_file *ph__descriptor_file(uint64_t descriptor);
/* Opens (file) with the (flags) of open(). Returns a descriptor or -errno. */
int64_t ph__descriptor_open(uint32_t file, uint64_t flags);

/* -------------------------------------------------------------- file_io.c -- */

/* Serve read, readv and lseek of a file. */
int64_t ph__file_read(struct ph__open_file *open, const struct ph__regs *regs);
int64_t ph__file_readv(struct ph__open_file *open, const struct ph__regs *regs);
int64_t ph__file_seek(struct ph__open_file *open, int64_t offset, uint64_t whence);

/* ------------------------------------------------------------- file_map.c -- */

/* True if [address, address + size) lies in the file window. */
bool ph__in_file_window(uint64_t address, uint64_t size);

/* Bytes from (address), which is in the file window, to the end of what can be mapped of that file. */
uint64_t ph__file_room(uint64_t address);

/* Bytes of a file that an mmap asks for. */
struct ph__file_piece {
    uint64_t window; /* where in the file window the mapping can be, 0: nowhere */
    uint64_t gva;    /* else the bytes to copy: there may be fewer than the mapping has */
    uint64_t size;
};

/* Checks an mmap without MAP_ANONYMOUS. Returns 0 or -errno. */
int64_t ph__file_piece(const struct ph__regs *regs, struct ph__file_piece *piece);

#endif
