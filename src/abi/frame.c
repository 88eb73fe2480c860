/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Encodes and decodes frames (frame.h). Built twice: into libpinhole, and freestanding into the guest
 * library. It never allocates, never calls out, and never trusts a number it has read.
 */
#include "frame.h"

#include "hot.h"

#define PAYLOAD_ALIGNMENT 16u

static size_t align_up(size_t position) {
    return (position + PAYLOAD_ALIGNMENT - 1) & ~(size_t)(PAYLOAD_ALIGNMENT - 1);
}

static bool has_payload(ph_type type) {
    return type == PH_STR || type == PH_BYTES;
}

static ph_bytes payload_of(const ph_value *value) {
    if (value->type == PH_BYTES)
        return value->bytes;
    const char *text = value->str ? value->str : "";
    return (ph_bytes){text, __builtin_strlen(text)};
}

/* The bits of a scalar, zero-extended. The float types go through memcpy: no conversion, no NaN quieting. */
static uint64_t scalar_bits(const ph_value *value) {
    uint32_t word32;
    uint64_t word64;

    switch (value->type) {
    case PH_I32:
    case PH_U32:
        return value->u32;
    case PH_I64:
    case PH_U64:
        return value->u64;
    case PH_F32:
        __builtin_memcpy(&word32, &value->f32, sizeof word32);
        return word32;
    case PH_F64:
        __builtin_memcpy(&word64, &value->f64, sizeof word64);
        return word64;
    case PH_BOOL:
        return value->boolean ? 1 : 0;
    default:
        return 0;
    }
}

PH__HOT enum ph__frame_status ph__frame_encode(void *box, size_t capacity, size_t max_payload,
                                               const struct ph__frame *head, const ph_value *values,
                                               size_t count) {
    uint8_t *bytes = box;
    struct ph__slot slots[PH_MAX_ARGS];
    ph_bytes payloads[PH_MAX_ARGS];
    size_t position = sizeof *head + count * sizeof slots[0];
    size_t budget = max_payload;

    if (count > PH_MAX_ARGS || position > capacity)
        return PH__FRAME_TOO_LARGE;

    for (size_t i = 0; i < count; i++) {
        slots[i] = (struct ph__slot){.type = values[i].type};
        if (!has_payload(values[i].type)) {
            slots[i].word = scalar_bits(&values[i]);
            continue;
        }
        payloads[i] = payload_of(&values[i]);
        if (payloads[i].size > budget)
            return PH__FRAME_TOO_LARGE;
        budget -= payloads[i].size;
        size_t start = align_up(position);
        size_t terminator = values[i].type == PH_STR ? 1 : 0;
        if (start > capacity || payloads[i].size + terminator > capacity - start)
            return PH__FRAME_TOO_LARGE;
        position = start + payloads[i].size + terminator;
        if (position > UINT32_MAX)
            return PH__FRAME_TOO_LARGE;
        slots[i].length = (uint32_t)payloads[i].size;
        slots[i].word = start;
    }

    struct ph__frame *out = box;
    *out = (struct ph__frame){
        .size = (uint32_t)position,
        .kind = head->kind,
        .level = head->level,
        .count = (uint8_t)count,
        .index = head->index,
        .code = head->code,
    };
    for (size_t i = 0; i < count; i++) {
        __builtin_memcpy(bytes + sizeof *head + i * sizeof slots[0], &slots[i], sizeof slots[i]);
        if (!has_payload(values[i].type))
            continue;
        if (payloads[i].size)
            __builtin_memcpy(bytes + slots[i].word, payloads[i].data, payloads[i].size);
        if (values[i].type == PH_STR)
            bytes[slots[i].word + payloads[i].size] = 0;
    }
    return PH__FRAME_OK;
}

/* Takes the scalar in (slot). False if its bits are not those of its type. */
static bool scalar_take(const struct ph__slot *slot, ph_value *value) {
    uint32_t word32 = (uint32_t)slot->word;

    if (slot->length != 0)
        return false;
    switch (value->type) {
    case PH_I64:
    case PH_U64:
        value->u64 = slot->word;
        return true;
    case PH_F64:
        __builtin_memcpy(&value->f64, &slot->word, sizeof value->f64);
        return true;
    case PH_BOOL:
        value->boolean = slot->word == 1;
        return slot->word <= 1;
    case PH_I32:
    case PH_U32:
        value->u32 = word32;
        return slot->word == word32;
    case PH_F32:
        __builtin_memcpy(&value->f32, &word32, sizeof value->f32);
        return slot->word == word32;
    default:
        return false;
    }
}

PH__HOT enum ph__frame_status ph__frame_decode(const void *bytes, size_t size, const ph_type *types,
                                               size_t count, ph_value *values) {
    const uint8_t *base = bytes;
    struct ph__frame head;

    if (size < sizeof head || count > PH_MAX_ARGS)
        return PH__FRAME_MALFORMED;
    __builtin_memcpy(&head, bytes, sizeof head);
    if (head.size > size || head.count != count || head.level != 0)
        return PH__FRAME_MALFORMED;
    size_t payload_start = sizeof head + count * sizeof(struct ph__slot);
    if (head.size < payload_start)
        return PH__FRAME_MALFORMED;

    for (size_t i = 0; i < count; i++) {
        struct ph__slot slot;
        __builtin_memcpy(&slot, base + sizeof head + i * sizeof slot, sizeof slot);
        if (slot.type != (uint32_t)types[i])
            return PH__FRAME_MALFORMED;
        values[i].type = types[i];
        if (!has_payload(types[i])) {
            if (!scalar_take(&slot, &values[i]))
                return PH__FRAME_MALFORMED;
            continue;
        }
        size_t terminator = types[i] == PH_STR ? 1 : 0;
        if (slot.word < payload_start || slot.word > head.size ||
            slot.length + terminator > head.size - slot.word)
            return PH__FRAME_MALFORMED;
        const uint8_t *start = base + slot.word;
        if (types[i] == PH_BYTES) {
            values[i].bytes = (ph_bytes){start, slot.length};
            continue;
        }
        if (start[slot.length] != 0 || (slot.length && __builtin_memchr(start, 0, slot.length)))
            return PH__FRAME_MALFORMED;
        values[i].str = (const char *)start;
    }
    return PH__FRAME_OK;
}
