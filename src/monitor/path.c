/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Finds out where a path of the guest leads: to the root, which is the working directory too, to a file that
 * the host has mapped, or to a folder that is there because a file is in it. Nothing else exists.
 */
#include "monitor/files.h"
#include "monitor/monitor.h"

#define PATH_SIZE 4096
#define NAME_MAX 255
_Static_assert(PATH_SIZE <= PH__IO_SIZE, "the longest path fits");

const struct ph__file_entry *ph__file_entry(uint32_t file) {
    return &((const struct ph__file_table *)PH__FILES_GVA)->entries[file];
}

/* A path as far as it was followed: "" for the root, else as in the table of files. */
struct place {
    char path[PH__FILE_PATH_SIZE];
    size_t length;
};

/* What there is at (place). False if there is nothing. */
static bool place_find(const struct place *place, struct ph__found *found) {
    *found = (struct ph__found){.is_root = true};
    if (place->length == 0)
        return true;
    for (uint32_t i = 0; i < ph__control()->file_count; i++) {
        const char *path = ph__file_entry(i)->path;
        if (memcmp(path, place->path, place->length) != 0)
            continue;
        char next = path[place->length];
        if (next == 0 || next == '/') {
            *found = (struct ph__found){.is_file = next == 0, .number = i};
            return true;
        }
    }
    return false;
}

static void place_leave(struct place *place) {
    while (place->length > 0 && place->path[--place->length] != '/')
        ;
}

/* Follows one name, which has (length) bytes. Returns 0 or -errno. */
static int64_t place_enter(struct place *place, const char *name, size_t length, struct ph__found *found) {
    if (found->is_file)
        return -ENOTDIR;
    if (length > NAME_MAX)
        return -ENAMETOOLONG;
    if (length == 1 && name[0] == '.')
        return 0;
    if (length == 2 && name[0] == '.' && name[1] == '.') {
        place_leave(place);
        return place_find(place, found) ? 0 : -ENOENT;
    }
    if (length + 1 > sizeof place->path - 1 - place->length)
        return -ENOENT;
    place->path[place->length++] = '/';
    memcpy(place->path + place->length, name, length);
    place->length += length;
    return place_find(place, found) ? 0 : -ENOENT;
}

int64_t ph__path_find(uint64_t address, struct ph__found *found) {
    /* Most paths are short. The others go where output and input do, of which there is none meanwhile. */
    char short_text[PH__FILE_PATH_SIZE];
    struct place place;
    int64_t length = ph__length_user(address, PATH_SIZE);
    if (length < 0)
        return length;
    if (length == 0)
        return -ENOENT;
    if (length == PATH_SIZE)
        return -ENAMETOOLONG;
    char *text = (size_t)length <= sizeof short_text ? short_text : (char *)PH__GVA(PH__IO_GPA);
    place.length = 0;
    if (ph__copy_from_user(text, address, (size_t)length) != 0)
        return -EFAULT;
    *found = (struct ph__found){.is_root = true};
    int64_t answer = 0;
    for (int64_t at = 0, end; at < length && answer == 0; at = end + 1) {
        for (end = at; end < length && text[end] != '/'; end++)
            ;
        if (end > at)
            answer = place_enter(&place, text + at, (size_t)(end - at), found);
        else if (found->is_file)
            answer = -ENOTDIR; /* a slash behind a file */
    }
    if (answer == 0 && found->is_file && text[length - 1] == '/')
        answer = -ENOTDIR;
    return answer;
}
