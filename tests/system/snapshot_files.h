/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What tests of snapshots' files share: a folder of their own, files as bytes, and guests whose state can be
 * asked for.
 */
#ifndef PH_TESTS_SNAPSHOT_FILES_H
#define PH_TESTS_SNAPSHOT_FILES_H

#include "sandbox/snapshot.h"
#include "sandbox/snapshot_format.h"
#include "support/traced.h"

/* Small, so that files are. */
extern const ph_config small_config;

/* Group set-up and its end: the folder, and nothing left in it. */
int folder_make(void **state);
int folder_remove(void **state);

/* The path of (name) in the folder. One at a time. */
const char *in_folder(const char *name);

/* How many files there are in it. */
size_t folder_count(void);

/* All of a file; to be freed. */
uint8_t *file_take(const char *from, size_t *size);
void file_put(const char *to, const uint8_t *bytes, size_t size);

/* Makes the digest of head and tables at (bytes) right again, after a change of (head). */
void file_seal(uint8_t *bytes, const struct ph__snapshot_head *head);
struct ph__snapshot_head file_head(const uint8_t *bytes);

/* A file (name) of the guest (guest) that has counted to (count) and changed something of every kind. */
void snapshot_file_make(ph_image *image, const char *name, uint32_t count);

ph_snapshot *snapshot_load(ph_image *image, const char *name, ph_snapshot_mode mode);
ph_sandbox *sandbox_from(ph_snapshot *snapshot, const ph_config *config);
ph_value called(ph_sandbox *sandbox, const char *name, const ph_value *args, size_t count);
uint32_t counted(ph_sandbox *sandbox);

/* The load of (name) fails with PH_E_SNAPSHOT, in both modes, and the message has (why) in it. */
void assert_load_refused(ph_image *image, const char *name, const char *why);

#endif
