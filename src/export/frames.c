/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The names of a profile's frames (frames.h): their texts one behind the other in one piece of memory, and a
 * table of them.
 */
#include "export/frames.h"

#include <stdlib.h>
#include <string.h>

#include "export/field.h"
#include "export/stacks.h"

#define FRAMES_MAX 65536u
#define FRAMES_FIRST 1024u
#define TEXT_FIRST 16384u

/* (text) is where its text begins. (chain) is the next one in the table, PH__FRAME_OTHER behind the last:
 * that one is in no chain. */
struct frame {
    uint32_t text;
    uint32_t hash;
    uint32_t chain;
};

struct ph__frames {
    struct frame *list;
    uint32_t *table; /* of the same size */
    uint32_t size;   /* a power of two */
    uint32_t count;
    char *text;
    uint32_t text_size, text_used;
};

/* FNV-1a, as of the IETF's draft-eastlake-fnv. */
static uint32_t hash_of(const char *text) {
    uint32_t hash = 2166136261u;

    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 16777619u;
    return hash;
}

/* Puts (text) behind the (used) bytes of (name), where there is room for it; cut, it ends with a whole
 * character. Returns the bytes used then. */
static size_t append(char *name, size_t used, const char *text, size_t most) {
    const size_t length = ph__text_fit(text, strlen(text), most - used);

    memcpy(name + used, text, length);
    name[used + length] = 0;
    return used + length;
}

/* The name as the text sink has it. */
static void show_name(char name[PH__STACKS_NAME_MAX + 1], const ph_trace_span *span) {
    const char *before = span->kind == PH_SPAN_SYSTEM_CALL ? "syscall " : "";
    const char *behind = span->kind == PH_SPAN_FUNCTION ? "()" : "";
    size_t used = append(name, 0, before, PH__STACKS_NAME_MAX);

    used = append(name, used, span->name ? span->name : "", PH__STACKS_NAME_MAX - strlen(behind));
    append(name, used, behind, PH__STACKS_NAME_MAX);
}

static bool grow_list(struct ph__frames *frames) {
    uint32_t size = frames->size * 2;

    if (size > FRAMES_MAX)
        return false;
    struct frame *list = realloc(frames->list, size * sizeof *list);
    if (!list)
        return false;
    frames->list = list;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table)
        return false;
    free(frames->table);
    frames->table = table;
    frames->size = size;
    for (uint32_t i = PH__FRAME_OTHER + 1; i < frames->count; i++) {
        uint32_t *bucket = &table[list[i].hash & (size - 1)];
        list[i].chain = *bucket;
        *bucket = i;
    }
    return true;
}

/* Room for (length) bytes more. */
static bool grow_text(struct ph__frames *frames, size_t length) {
    if (frames->text_size - frames->text_used >= length)
        return true;
    char *text = realloc(frames->text, (size_t)frames->text_size * 2);
    if (!text)
        return false;
    frames->text = text;
    frames->text_size *= 2;
    return true;
}

static uint32_t add_name(struct ph__frames *frames, const char *name, uint32_t hash) {
    size_t length = strlen(name) + 1;

    if ((frames->count == frames->size && !grow_list(frames)) || !grow_text(frames, length))
        return PH__FRAME_OTHER;
    uint32_t *bucket = &frames->table[hash & (frames->size - 1)];
    uint32_t number = frames->count++;
    frames->list[number] = (struct frame){.text = frames->text_used, .hash = hash, .chain = *bucket};
    *bucket = number;
    memcpy(frames->text + frames->text_used, name, length);
    frames->text_used += (uint32_t)length;
    return number;
}

uint32_t ph__frames_find(struct ph__frames *frames, const ph_trace_span *span, bool add) {
    char name[PH__STACKS_NAME_MAX + 1];

    show_name(name, span);
    uint32_t hash = hash_of(name);
    uint32_t at = frames->table[hash & (frames->size - 1)];
    while (at != PH__FRAME_OTHER &&
           (frames->list[at].hash != hash || strcmp(frames->text + frames->list[at].text, name) != 0))
        at = frames->list[at].chain;
    if (at != PH__FRAME_OTHER || !add)
        return at;
    return add_name(frames, name, hash);
}

uint32_t ph__frames_count(const struct ph__frames *frames) {
    return frames->count;
}

const char *ph__frames_text(const struct ph__frames *frames, uint32_t frame) {
    return frames->text + frames->list[frame].text;
}

struct ph__frames *ph__frames_create(void) {
    struct ph__frames *frames = calloc(1, sizeof *frames);

    if (!frames)
        return NULL;
    frames->list = calloc(FRAMES_FIRST, sizeof *frames->list);
    frames->table = calloc(FRAMES_FIRST, sizeof *frames->table);
    frames->text = malloc(TEXT_FIRST);
    if (!frames->list || !frames->table || !frames->text) {
        ph__frames_free(frames);
        return NULL;
    }
    frames->size = FRAMES_FIRST;
    frames->text_size = TEXT_FIRST;
    static const char other[] = "[other]";
    memcpy(frames->text, other, sizeof other);
    frames->text_used = sizeof other;
    frames->count = PH__FRAME_OTHER + 1;
    return frames;
}

void ph__frames_free(struct ph__frames *frames) {
    if (!frames)
        return;
    free(frames->text);
    free(frames->table);
    free(frames->list);
    free(frames);
}
