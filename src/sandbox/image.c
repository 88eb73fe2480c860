/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Opens images (image.h) and answers what is in them. The file is read into memory once and never mapped: a
 * file that shrinks while it is read is then a shorter file, and not a SIGBUS.
 */
#include "sandbox/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/system.h"
#include "sandbox/image_parts.h"

/* The largest file that is read: an image has to fit into a sandbox's memory, and the host's, as a whole. */
#define FILE_SIZE_MAX (1ull << 30)

/* Bytes of an image's name in a message, so that it leaves room for what is wrong. */
#define SHOWN_NAME_MAX 160u

ph_status ph__image_refuse(const ph_image *image, ph_error *error, const char *format, ...) {
    char text[PH_ERROR_MESSAGE_MAX];
    const char *name = image->name;
    size_t length = strlen(name);
    const char *cut = "";
    va_list arguments;

    if (length > SHOWN_NAME_MAX) {
        cut = "...";
        name += length - SHOWN_NAME_MAX;
        while ((*name & 0xc0) == 0x80)
            name++;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return ph__error_set(error, PH_E_IMAGE, "%s%s: %s", cut, name, text);
}

static void image_destroy(ph_image *image) {
    if (image->content >= 0)
        ph__system.close(image->content);
    free(image->symbol_names);
    free(image->symbols);
    free(image->site_texts);
    free(image->sites);
    free(image->names);
    free(image->import_of_entry);
    free(image->imports);
    free(image->exports);
    free(image->name);
    free(image);
}

ph_status ph_image_open_bytes(const void *data, size_t size, const char *name, uint32_t flags,
                              ph_image **image, ph_error *error) {
    ph_status status;
    ph_image *made = NULL;
    struct ph__elf elf;
    struct ph__elf_error elf_error;

    if (!image)
        return ph__error_set(error, PH_E_ARGUMENT, "there is no place for the image");
    *image = NULL;
    if ((!data && size > 0) || !name)
        return ph__error_set(error, PH_E_ARGUMENT, "an image needs bytes and a name");
    if (flags & ~PH_IMAGE_ALLOW_WX)
        return ph__error_set(error, PH_E_ARGUMENT, "unknown image flags 0x%x", flags & ~PH_IMAGE_ALLOW_WX);

    made = calloc(1, sizeof *made);
    if (!made)
        return ph__error_set(error, PH_E_MEMORY, "no memory for an image");
    atomic_init(&made->references, 1);
    made->content = -1;
    made->flags = flags;
    made->name = strdup(name);
    if (!made->name) {
        status = ph__error_set(error, PH_E_MEMORY, "no memory for an image");
        goto fail;
    }
    if (size > FILE_SIZE_MAX) {
        status = ph__image_refuse(made, error, "the file is larger than 1 GiB, the most that pinhole loads");
        goto fail;
    }
    if (!ph__elf_parse(data, size, flags & PH_IMAGE_ALLOW_WX, &elf, &elf_error)) {
        status = ph__image_refuse(made, error, "%s", elf_error.message);
        goto fail;
    }
    made->gva = elf.start;
    made->size = elf.end - elf.start;
    made->entry = elf.entry;
    made->headers_gva = elf.headers_address;
    made->header_count = elf.header_count;
    made->asks_traceparent = elf.has_traceparent_note;
    made->build_id_size = (uint32_t)elf.build_id_size;
    memcpy(made->build_id, (const uint8_t *)data + elf.build_id_offset, elf.build_id_size);

    status = ph__image_read_tables(made, data, &elf, error);
    if (status != PH_OK)
        goto fail;
    status = ph__image_read_symbols(made, data, &elf, error);
    if (status != PH_OK)
        goto fail;
    status = ph__image_fill_content(made, data, &elf, error);
    if (status != PH_OK)
        goto fail;
    *image = made;
    return PH_OK;

fail:
    image_destroy(made);
    return status;
}

static const char *what_it_is(mode_t mode) {
    if (S_ISDIR(mode))
        return "a directory";
    if (S_ISFIFO(mode))
        return "a pipe";
    if (S_ISSOCK(mode))
        return "a socket";
    return "a device";
}

/* Reads up to (size) bytes. Returns how many there were, or -1 with errno. */
static ssize_t read_all(int fd, uint8_t *bytes, size_t size) {
    size_t taken = 0;

    while (taken < size) {
        ssize_t got = ph__system.read(fd, bytes + taken, size - taken);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        taken += (size_t)got;
    }
    return (ssize_t)taken;
}

ph_status ph_image_open(const char *path, uint32_t flags, ph_image **image, ph_error *error) {
    ph_status status;
    struct stat information;
    uint8_t *bytes = NULL;
    ssize_t size;
    int fd;

    if (!image)
        return ph__error_set(error, PH_E_ARGUMENT, "there is no place for the image");
    *image = NULL;
    if (!path)
        return ph__error_set(error, PH_E_ARGUMENT, "there is no path");

    /* O_NONBLOCK: a pipe that nobody writes to must not hold the caller up before it is seen to be one. */
    fd = ph__system.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return ph__error_set_system(error, PH_E_FILE, errno, "%s", path);
    if (ph__system.fstat(fd, &information) != 0) {
        status = ph__error_set_system(error, PH_E_FILE, errno, "%s", path);
        goto close_file;
    }
    if (!S_ISREG(information.st_mode)) {
        status = ph__error_set(error, PH_E_FILE, "%s: this is %s, not a file", path,
                               what_it_is(information.st_mode));
        goto close_file;
    }
    if ((uint64_t)information.st_size > FILE_SIZE_MAX) {
        status = ph__error_set(error, PH_E_FILE,
                               "%s: the file is larger than 1 GiB, the most that pinhole loads", path);
        goto close_file;
    }
    bytes = malloc(information.st_size ? (size_t)information.st_size : 1);
    if (!bytes) {
        status = ph__error_set(error, PH_E_MEMORY, "no memory for the bytes of an image");
        goto close_file;
    }
    size = read_all(fd, bytes, (size_t)information.st_size);
    if (size < 0) {
        status = ph__error_set_system(error, PH_E_FILE, errno, "%s", path);
        goto free_bytes;
    }
    status = ph_image_open_bytes(bytes, (size_t)size, path, flags, image, error);

free_bytes:
    free(bytes);
close_file:
    ph__system.close(fd);
    return status;
}

void ph__image_retain(ph_image *image) {
    atomic_fetch_add_explicit(&image->references, 1, memory_order_relaxed);
}

void ph_image_close(ph_image *image) {
    /* Release: what this thread did with the image is over before the last one frees it. Acquire: and the
     * last one sees that. */
    if (image && atomic_fetch_sub_explicit(&image->references, 1, memory_order_acq_rel) == 1)
        image_destroy(image);
}

size_t ph_image_export_count(const ph_image *image) {
    return image->export_count;
}

const ph_function *ph_image_export(const ph_image *image, size_t index) {
    return index < image->export_count ? &image->exports[index] : NULL;
}

const ph_function *ph_image_find_export(const ph_image *image, const char *name) {
    for (size_t i = 0; i < image->export_count; i++)
        if (strcmp(image->exports[i].name, name) == 0)
            return &image->exports[i];
    return NULL;
}

size_t ph_image_import_count(const ph_image *image) {
    return image->import_count;
}

const ph_function *ph_image_import(const ph_image *image, size_t index) {
    return index < image->import_count ? &image->imports[index] : NULL;
}
