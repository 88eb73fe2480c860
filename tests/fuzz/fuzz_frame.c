/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Feeds any bytes to the decoder of frames, against any signature: what it takes must lie inside the frame,
 * and be the same when it is sent once more. The input is the number of values, the type of each, and the
 * frame. libFuzzer finds the bytes; replay.c takes them from files. By hand, from the top of the source tree:
 *
 *   clang -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
 *       -Iinclude -Isrc tests/fuzz/fuzz_frame.c src/abi/frame.c -o fuzz_frame
 *   mkdir corpus && cp build/tests/fuzz/frame-* corpus && ./fuzz_frame -max_len=4096 corpus
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

static int is_inside(const uint8_t *frame, size_t size, const void *start, size_t length) {
    size_t offset = (size_t)((const uint8_t *)start - frame);

    return offset <= size && length <= size - offset;
}

static void check_values(const uint8_t *frame, size_t size, const ph_type *types, const ph_value *values,
                         size_t count) {
    for (size_t i = 0; i < count; i++) {
        expect(values[i].type == types[i], "a value has the type that was asked for");
        if (types[i] == PH_STR)
            expect(is_inside(frame, size, values[i].str, strlen(values[i].str) + 1),
                   "a string is inside the frame");
        if (types[i] == PH_BYTES)
            expect(is_inside(frame, size, values[i].bytes.data, values[i].bytes.size),
                   "bytes are inside the frame");
        if (types[i] == PH_BOOL) {
            uint8_t byte;
            memcpy(&byte, &values[i].boolean, sizeof byte);
            expect(byte <= 1, "a bool is 0 or 1");
        }
    }
}

static int is_same(const ph_value *a, const ph_value *b) {
    switch (a->type) {
    case PH_STR:
        return strcmp(a->str, b->str) == 0;
    case PH_BYTES:
        return a->bytes.size == b->bytes.size &&
               (a->bytes.size == 0 || memcmp(a->bytes.data, b->bytes.data, a->bytes.size) == 0);
    case PH_BOOL:
        return a->boolean == b->boolean;
    case PH_I64:
    case PH_U64:
    case PH_F64:
        return a->u64 == b->u64;
    default:
        return a->u32 == b->u32;
    }
}

/* Sends (values) once more, in a box that holds just as much as the limit says. */
static void check_round_trip(const ph_type *types, const ph_value *values, size_t count) {
    const struct ph__frame head = {.kind = PH__FRAME_RESULT};
    ph_value again[PH_MAX_ARGS];
    size_t payload = 0;

    for (size_t i = 0; i < count; i++)
        payload += types[i] == PH_STR     ? strlen(values[i].str)
                   : types[i] == PH_BYTES ? values[i].bytes.size
                                          : 0;
    size_t capacity = PH__FRAME_OVERHEAD + payload;
    uint8_t *box = malloc(capacity);
    if (!box)
        return;
    expect(ph__frame_encode(box, capacity, payload, &head, values, count) == PH__FRAME_OK, "what came fits");
    expect(payload == 0 ||
               ph__frame_encode(box, capacity, payload - 1, &head, values, count) == PH__FRAME_TOO_LARGE,
           "the limit holds");
    expect(ph__frame_decode(box, capacity, types, count, again) == PH__FRAME_OK,
           "what was sent is well-formed");
    for (size_t i = 0; i < count; i++)
        expect(is_same(&values[i], &again[i]), "a value passes as it is");
    free(box);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ph_type types[PH_MAX_ARGS];
    ph_value values[PH_MAX_ARGS];
    size_t count;

    if (size == 0 || data[0] > PH_MAX_ARGS || size - 1 < data[0])
        return 0;
    count = data[0];
    for (size_t i = 0; i < count; i++)
        types[i] = (ph_type)(data[1 + i] % (PH_BYTES + 1));
    data += 1 + count;
    size -= 1 + count;

    /* A copy of just this size, so that a sanitizer sees any step outside. */
    uint8_t *frame = malloc(size ? size : 1);
    if (!frame)
        return 0;
    memcpy(frame, data, size);
    if (ph__frame_decode(frame, size, types, count, values) == PH__FRAME_OK) {
        check_values(frame, size, types, values, count);
        check_round_trip(types, values, count);
    }
    free(frame);
    return 0;
}
