/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Writes the fuzzer's first snapshots (fuzz_snapshot.c): `make_snapshots FILE...` puts the first sample into
 * the first FILE and so on: a whole file, one without pages, one with tracing and a file window, and a head
 * alone.
 */
#include <stdio.h>

#include "support/snapshot_bytes.h"

static struct snapshot_bytes sample;

/* Writes (size) bytes. */
static int write_sample(const char *path, uint64_t size) {
    FILE *file = fopen(path, "wb");

    if (!file)
        return -1;
    size_t written = fwrite(sample.bytes, 1, size, file);
    return fclose(file) == 0 && written == size ? 0 : -1;
}

static uint64_t make_sample(int index) {
    struct ph__snapshot_head *head = &sample.head;

    snapshot_bytes_init(&sample);
    if (index == 1)
        head->page_count = 0;
    if (index == 2) {
        head->request.trace_ring = 1 << 20;
        head->request.site_words_gva = SNAPSHOT_IMAGE_GVA;
        head->request.site_words_size = 64;
        head->request.files = 4 << 20;
    }
    head->file_size = ph__snapshot_file_size(head);
    snapshot_bytes_encode(&sample);
    uint64_t size = index == 3 ? PH__SNAPSHOT_HEAD_SIZE : ph__snapshot_file_size(head);
    snapshot_bytes_free(&sample);
    return size;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (i > 4 || write_sample(argv[i], make_sample(i - 1)) != 0) {
            fprintf(stderr, "make_snapshots: %s could not be written\n", argv[i]);
            return 1;
        }
    return 0;
}
