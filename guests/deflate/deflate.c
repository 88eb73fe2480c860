/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A library that knows nothing of pinhole, called from outside: the system's zlib. What is handed over is in
 * zlib's own format (RFC 1950).
 */
#include <limits.h>
#include <string.h>

#include <pinhole/guest.h>
#include <zlib.h>

/* zlib's codes for errors are negative; a guest's are positive. Z_NEED_DICT is positive and an error here. */
static _Noreturn void fail(int code, const char *why) {
    ph_fail(code < 0 ? -code : code, "%s", why ? why : zError(code));
}

static ph_bytes compress_bytes(ph_bytes data, int32_t level) {
    if (level < Z_DEFAULT_COMPRESSION || level > Z_BEST_COMPRESSION)
        fail(Z_STREAM_ERROR, ph_strf("no level %d: it is 0 to 9, or -1 for zlib's own choice", level));

    uLongf size = compressBound(data.size);
    Bytef *output = ph_alloc(size);
    int code = compress2(output, &size, data.data, data.size, level);
    if (code != Z_OK)
        fail(code, NULL);
    return (ph_bytes){output, size};
}
PH_EXPORT_AS(compress, compress_bytes, PH_BYTES, PH_BYTES, PH_I32);

/* zlib's own memory is the call's too: a call that fails halfway leaves nothing behind. */
static voidpf state_alloc(voidpf context, uInt count, uInt size) {
    (void)context;
    return ph_alloc((size_t)count * size);
}

static void state_free(voidpf context, voidpf memory) {
    (void)context;
    (void)memory;
}

/* zlib takes and gives at most UINT_MAX bytes at a time. */
static uInt at_most(size_t size) {
    return size < UINT_MAX ? (uInt)size : UINT_MAX;
}

static ph_bytes expand(ph_bytes data) {
    z_stream stream = {.zalloc = state_alloc, .zfree = state_free};
    size_t taken = 0; /* bytes of (data) */
    size_t given = 0; /* bytes of (output), which has (capacity) */
    size_t capacity = 4 * data.size + 64;
    char *output = ph_alloc(capacity);
    int code = inflateInit(&stream);

    while (code == Z_OK) {
        if (given == capacity) {
            char *larger = ph_alloc(2 * capacity);
            memcpy(larger, output, given);
            output = larger;
            capacity *= 2;
        }
        uInt input = at_most(data.size - taken);
        uInt room = at_most(capacity - given);
        stream.next_in = (z_const Bytef *)data.data + taken;
        stream.avail_in = input;
        stream.next_out = (Bytef *)output + given;
        stream.avail_out = room;
        code = inflate(&stream, Z_NO_FLUSH);
        taken += input - stream.avail_in;
        given += room - stream.avail_out;
    }
    if (code == Z_BUF_ERROR)
        fail(code, "the data ends too early");
    if (code != Z_STREAM_END)
        fail(code, stream.msg);
    if (taken != data.size)
        fail(Z_DATA_ERROR, ph_strf("%zu bytes follow the end of the data", data.size - taken));
    return (ph_bytes){output, given};
}
PH_EXPORT(expand, PH_BYTES, PH_BYTES);
