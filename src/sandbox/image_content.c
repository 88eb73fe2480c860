/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Puts an image's loaded content into a sealed memfd, which every sandbox of the image maps copy-on-write.
 * Only pages with something in them go in, packed one run behind the other: a page that is zero costs nothing
 * until a guest touches it, while a hole of a memfd costs memory as soon as it is read.
 */
#include "sandbox/image_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/layout.h"
#include "base/error.h"
#include "base/system.h"

/* Linux 6.3; older C libraries do not name it. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

static uint64_t page_down(uint64_t address) {
    return address & ~(PH__PAGE_SIZE - 1);
}

static uint64_t page_up(uint64_t address) {
    return page_down(address + PH__PAGE_SIZE - 1);
}

bool ph__content_is_zero(const uint8_t *bytes, uint64_t size) {
    /* The first byte is zero, and each is the same as the one before it. */
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* Narrows the addresses [*start, *end) of a segment's file part, whose bytes are at (content), by the whole
 * pages of zeros at both ends. */
static void trim(const uint8_t *content, uint64_t *start, uint64_t *end) {
    const uint64_t base = *start;

    while (*start < *end) {
        uint64_t next = page_down(*start) + PH__PAGE_SIZE;
        if (next > *end)
            next = *end;
        if (!ph__content_is_zero(content + (*start - base), next - *start))
            break;
        *start = next;
    }
    while (*start < *end) {
        uint64_t next = page_down(*end - 1);
        if (next < *start)
            next = *start;
        if (!ph__content_is_zero(content + (next - base), *end - next))
            break;
        *end = next;
    }
}

int ph__content_write(int file, const uint8_t *bytes, uint64_t size, uint64_t offset) {
    while (size > 0) {
        ssize_t written = ph__system.pwrite(file, bytes, size, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        bytes += written;
        offset += (uint64_t)written;
        size -= (uint64_t)written;
    }
    return 0;
}

/* Nothing in it is ever run by the host: on kernels that know how, say so. */
int ph__content_create(const char *name) {
    int fd = ph__system.memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

    if (fd < 0 && errno == EINVAL)
        fd = ph__system.memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}

ph_status ph__image_fill_content(ph_image *image, const uint8_t *bytes, const struct ph__elf *elf,
                                 ph_error *error) {
    uint64_t position = 0;

    image->content = ph__content_create("pinhole-image");
    if (image->content < 0)
        return ph__error_set_system(error, PH_E_SYSTEM, errno, "memfd_create");

    for (uint32_t i = 0; i < elf->segment_count; i++) {
        const struct ph__elf_segment *segment = &elf->segments[i];
        uint64_t gva = page_down(segment->address);
        image->ranges[image->range_count++] = (struct ph__image_range){
            .gva = gva,
            .size = page_up(segment->address + segment->memory_size) - gva,
            .writable = segment->writable,
            .executable = segment->executable,
        };

        const uint8_t *content = bytes + segment->file_offset;
        uint64_t start = segment->address;
        uint64_t end = start + segment->file_size;
        trim(content, &start, &end);
        if (start == end)
            continue;
        struct ph__image_extent extent = {
            .gva = page_down(start),
            .size = page_up(end) - page_down(start),
            .file_offset = position,
            .writable = segment->writable,
        };
        /* What the file holds around the segment stays out: the rest of the first and last page is zero. */
        if (ph__content_write(image->content, content + (start - segment->address), end - start,
                              position + (start - extent.gva)) != 0)
            return ph__error_set_system(error, PH_E_SYSTEM, errno, "writing the image's memory");
        position += extent.size;
        image->extents[image->extent_count++] = extent;
    }
    if (ph__system.ftruncate(image->content, (off_t)position) != 0)
        return ph__error_set_system(error, PH_E_SYSTEM, errno, "sizing the image's memory");
    /* All sandboxes of the image share these pages, so not even this process may change them from here on. */
    if (ph__system.fcntl(image->content, F_ADD_SEALS,
                         F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
        return ph__error_set_system(error, PH_E_SYSTEM, errno, "sealing the image's memory");
    return PH_OK;
}
