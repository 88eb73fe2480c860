/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Writes the fuzzer's first frames, well-formed ones for it to change: `make_frames FILE...` puts the first
 * sample into the first FILE and so on. Each is the number of values, their types, and the frame
 * (fuzz_frame.c).
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "abi/frame.h"

#define VALUES_MAX 12

static const struct {
    size_t count;
    ph_value values[VALUES_MAX];
} samples[] = {
    {0, {{0}}},
    {1, {{.type = PH_STR, .str = "hello"}}},
    {2, {{.type = PH_I64, .i64 = -2}, {.type = PH_I64, .i64 = 3}}},
    {3,
     {{.type = PH_BYTES, .bytes = {"\0\1\2\3", 4}},
      {.type = PH_BOOL, .boolean = true},
      {.type = PH_STR, .str = ""}}},
    {12,
     {{.type = PH_I32, .i32 = -1},
      {.type = PH_U32, .u32 = 1},
      {.type = PH_I64, .i64 = INT64_MIN},
      {.type = PH_U64, .u64 = UINT64_MAX},
      {.type = PH_F32, .f32 = -0.0f},
      {.type = PH_F64, .f64 = INFINITY},
      {.type = PH_BOOL, .boolean = false},
      {.type = PH_STR, .str = "a string of more than sixteen bytes"},
      {.type = PH_BYTES, .bytes = {"sixteen bytes !!", 16}},
      {.type = PH_STR, .str = "gr\xc3\xbc\xc3\x9f"},
      {.type = PH_BYTES, .bytes = {NULL, 0}},
      {.type = PH_I32, .i32 = 7}}},
};

static int write_sample(const char *path, size_t index) {
    const struct ph__frame head = {.kind = PH__FRAME_CALL, .index = 1};
    _Alignas(16) uint8_t box[4096];
    uint8_t types[1 + VALUES_MAX] = {(uint8_t)samples[index].count};
    size_t count = samples[index].count;
    struct ph__frame frame;
    int result = -1;

    if (ph__frame_encode(box, sizeof box, sizeof box, &head, samples[index].values, count) != PH__FRAME_OK)
        return -1;
    for (size_t i = 0; i < count; i++)
        types[1 + i] = (uint8_t)samples[index].values[i].type;
    memcpy(&frame, box, sizeof frame);

    FILE *file = fopen(path, "wb");
    if (!file)
        return -1;
    if (fwrite(types, 1 + count, 1, file) == 1 && fwrite(box, frame.size, 1, file) == 1)
        result = 0;
    if (fclose(file) != 0)
        result = -1;
    return result;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        size_t index = (size_t)i - 1;
        if (index >= sizeof samples / sizeof samples[0] || write_sample(argv[i], index) != 0) {
            fprintf(stderr, "no sample could be written to %s\n", argv[i]);
            return 1;
        }
    }
    return 0;
}
