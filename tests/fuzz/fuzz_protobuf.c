/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Has the protobuf writer put any numbers, bytes and messages into a buffer of any size: nothing is written
 * outside of it, and what is not cut is as in a buffer that is large enough.
 * The input is the capacity, and then operations of two bytes each with what they put behind them. By hand,
 * from the top of the source tree:
 *
 *   clang -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
 *       -Iinclude -Isrc tests/fuzz/fuzz_protobuf.c src/export/protobuf.c src/base/error.c \
 *       src/base/system.c -o fuzz_protobuf
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/protobuf.h"

#define LARGE 65536u
#define DEPTH 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

static void put_all(struct ph__protobuf *out, const uint8_t *data, size_t size) {
    size_t open[DEPTH];
    size_t depth = 0;

    while (size >= 2) {
        const uint32_t field = 1u + data[1] * 9u;
        const uint8_t operation = data[0];
        data += 2;
        size -= 2;
        const size_t part = size < operation >> 3 ? size : operation >> 3;
        switch (operation & 7) {
        case 0:
            ph__protobuf_varint(out, field, (uint64_t)0 - operation);
            break;
        case 1:
            ph__protobuf_double(out, field, operation / 3.0);
            break;
        case 2:
            if (depth < DEPTH)
                open[depth++] = ph__protobuf_begin(out, field);
            break;
        case 3:
            if (depth)
                ph__protobuf_end(out, open[--depth]);
            break;
        case 4:
            ph__protobuf_bytes(out, field, data, part);
            data += part;
            size -= part;
            break;
        default:
            ph__protobuf_string(out, field, (const char *)data, part);
            data += part;
            size -= part;
        }
    }
    while (depth)
        ph__protobuf_end(out, open[--depth]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t large[LARGE];

    if (size < 2 || size > 2048)
        return 0;
    const size_t capacity = data[0] | (size_t)data[1] << 8;
    /* Its own allocation, so that the sanitizer sees the first byte behind it. */
    uint8_t *bytes = malloc(capacity ? capacity : 1);
    if (!bytes)
        return 0;
    struct ph__protobuf whole = {.bytes = large, .capacity = sizeof large};
    struct ph__protobuf out = {.bytes = bytes, .capacity = capacity};
    put_all(&whole, data + 2, size - 2);
    put_all(&out, data + 2, size - 2);
    expect(!whole.cut, "there is room in a large buffer");
    expect(out.used <= capacity, "no more is used than there is");
    expect(out.cut == (whole.used > capacity), "it is cut when there is no room, and only then");
    expect(out.cut || (out.used == whole.used && memcmp(bytes, large, out.used) == 0),
           "what is not cut is the same in any buffer");
    free(bytes);
    return 0;
}
