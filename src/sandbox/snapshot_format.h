/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The bytes of a snapshot's file (docs/snapshots.md has the table): a head of fixed size, the numbers of the
 * pages, the protections, and behind the next page's start the pages themselves. Pure: bytes come in and go
 * out, nothing here reads or writes a file. snapshot_save.c and snapshot_load.c do.
 *
 * A file is anybody's: every number is hostile until ph__snapshot_format_check has said PH_OK.
 */
#ifndef PH_SANDBOX_SNAPSHOT_FORMAT_H
#define PH_SANDBOX_SNAPSHOT_FORMAT_H

#include "base/sha256.h"
#include "sandbox/image.h"
#include "vm/memory.h"
#include "vm/paging_snapshot.h"
#include "vm/vcpu.h"

#define PH__SNAPSHOT_FORMAT 2u
#define PH__SNAPSHOT_HEAD_SIZE 8192u
#define PH__SNAPSHOT_NAME_SIZE 256u

/* What the head says, all but what follows from the counts. */
struct ph__snapshot_head {
    uint8_t digest[PH__SHA256_SIZE];      /* of head and tables, this field taken as zeroes */
    uint8_t data_digest[PH__SHA256_SIZE]; /* of all pages */
    uint8_t monitor[PH__SHA256_SIZE];     /* of the monitor that the guest ran on */
    uint32_t format, head_size;
    uint32_t abi;
    uint64_t page_size;
    uint64_t file_size;
    uint64_t page_count;
    uint64_t protection_count;    /* entries of struct ph__protections */
    struct ph__features features; /* that the guest has seen */
    uint64_t files;               /* struct ph__files's number */
    struct ph__image_identity image;
    char image_name[PH__SNAPSHOT_NAME_SIZE];
    struct ph__layout_request request; /* with the sizes that were used, not 0 for a default */
    uint64_t seed_generation, trace_position, input_taken;
    uint64_t saved_ns;
    struct ph__processor processor;
};

/* Where the parts are in a file whose head gives these counts. Nothing overflows: the head is refused that
 * says more than there can be. */
static inline uint64_t ph__snapshot_tables_size(const struct ph__snapshot_head *head) {
    return (head->page_count + head->protection_count) * sizeof(uint64_t);
}
/* The same, up to the page's end. */
static inline uint64_t ph__snapshot_tables_room(const struct ph__snapshot_head *head) {
    return (ph__snapshot_tables_size(head) + PH__PAGE_SIZE - 1) / PH__PAGE_SIZE * PH__PAGE_SIZE;
}
static inline uint64_t ph__snapshot_data_offset(const struct ph__snapshot_head *head) {
    return PH__SNAPSHOT_HEAD_SIZE + ph__snapshot_tables_room(head);
}
static inline uint64_t ph__snapshot_file_size(const struct ph__snapshot_head *head) {
    return ph__snapshot_data_offset(head) + head->page_count * PH__PAGE_SIZE;
}

/* The request that leads to (layout) again, with no default left in it. */
struct ph__layout_request ph__snapshot_request(const ph_image *image, const struct ph__layout *layout);

/* Whether a snapshot's file holds page (page) of a sandbox with (layout). It does not hold what the host
 * alone writes, what is shared with it, page tables, files, the stacks of ring 0, nor the monitor's constant
 * part with the descriptor tables: those are always this library's own. */
bool ph__snapshot_page_is_kept(const struct ph__layout *layout, uint64_t page);

/* The words of a table in the file's byte order, to and from the host's. */
void ph__snapshot_words_encode(const uint64_t *words, size_t count, uint8_t *bytes);
void ph__snapshot_words_decode(const uint8_t *bytes, size_t count, uint64_t *words);

/* Writes (head). */
void ph__snapshot_head_encode(const struct ph__snapshot_head *head, uint8_t bytes[PH__SNAPSHOT_HEAD_SIZE]);

/* What the digest of the head at (head) with the tables behind it, (size) bytes at (tables), has to be. */
void ph__snapshot_digest(const uint8_t head[PH__SNAPSHOT_HEAD_SIZE], const uint8_t *tables, size_t size,
                         uint8_t digest[PH__SHA256_SIZE]);

/* Reads the first (size) bytes of a file of (file_size), PH__SNAPSHOT_HEAD_SIZE or all that there are, into
 * (head). PH_OK means that this is a snapshot of a format that is known here, and that the parts fit into the
 * file; (head) is hostile still, and is filled also when the file is only cut off. PH_E_SNAPSHOT. */
ph_status ph__snapshot_head_decode(const uint8_t *untrusted_bytes, size_t size, uint64_t file_size,
                                   struct ph__snapshot_head *untrusted_head, ph_error *error);

/* Whether the tables that (untrusted_head) announces can be those of a guest of its sizes. To be asked before
 * they are read: a file with holes is as long as anybody likes, and costs its maker nothing. */
bool ph__snapshot_tables_fit(const struct ph__snapshot_head *untrusted_head);

/* What a file is to fit; a part that is NULL fits whatever it is. */
struct ph__snapshot_wanted {
    const uint8_t *monitor; /* the digest of this library's */
    const ph_image *image;
    const struct ph__image_identity *identity; /* of (image) */
};

/* Checks all of the head at (untrusted_bytes), which was decoded to (untrusted_head), with the tables behind
 * it at (untrusted_tables), and fills (layout) and (words): first the numbers of the pages, then the
 * protections. Both have to have the size that the head says, which is no more than the file's. PH_E_SNAPSHOT
 * says what is wrong; (layout) and (words) mean nothing then. */
ph_status ph__snapshot_format_check(const uint8_t untrusted_bytes[PH__SNAPSHOT_HEAD_SIZE],
                                    const struct ph__snapshot_head *untrusted_head,
                                    const uint8_t *untrusted_tables, const struct ph__snapshot_wanted *wanted,
                                    struct ph__layout *layout, uint64_t *words, ph_error *error);

#endif
