/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Encodes and decodes a snapshot's file (snapshot_format.h), and checks all of it but the pages. The order of
 * the checks is that of the messages: what it is, whether it is whole, whether it is damaged, and only then
 * what it says, since a number of a damaged file explains nothing.
 */
#include "sandbox/snapshot_format.h"

#include <string.h>

#include "abi/control.h"
#include "abi/files.h"
#include "abi/trace.h"
#include "base/error.h"
#include "vm/boot.h"

/* The first byte is no text, the last one ends a text that is typed out (as PNG's signature has it). */
static const uint8_t magic[8] = {0x89, 'p', 'i', 'n', 'h', 'o', 'l', 0x1a};

#define DIGEST_OFFSET 16u
#define XSAVE_OFFSET 4096u
_Static_assert(XSAVE_OFFSET + sizeof((struct ph__processor *)0)->xsave == PH__SNAPSHOT_HEAD_SIZE,
               "the vector state ends the head");

/* ---- the head ------------------------------------------------------------------------------------------ */

/* A walk over the head that either reads or writes: so both always agree. */
struct cursor {
    const uint8_t *from;
    uint8_t *to; /* NULL: reads */
    size_t position;
};

static void bytes_pass(struct cursor *cursor, void *bytes, size_t size) {
    if (cursor->to)
        memcpy(cursor->to + cursor->position, bytes, size);
    else
        memcpy(bytes, cursor->from + cursor->position, size);
    cursor->position += size;
}

static uint64_t number_pass(struct cursor *cursor, uint64_t value, size_t size) {
    uint8_t bytes[8];

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    bytes_pass(cursor, bytes, size);
    value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

#define NUMBER(field) ((field) = (__typeof__(field))number_pass(cursor, (uint64_t)(field), sizeof(field)))
#define BYTES(field) bytes_pass(cursor, (field), sizeof(field))

static void processor_pass(struct cursor *cursor, struct ph__processor *processor) {
    struct ph__regs *regs = &processor->regs;
    uint64_t *const registers[] = {
        &regs->rax, &regs->rbx, &regs->rcx, &regs->rdx, &regs->rsi, &regs->rdi,
        &regs->rsp, &regs->rbp, &regs->r8,  &regs->r9,  &regs->r10, &regs->r11,
        &regs->r12, &regs->r13, &regs->r14, &regs->r15, &regs->rip, &regs->rflags,
    };

    for (size_t i = 0; i < sizeof registers / sizeof registers[0]; i++)
        NUMBER(*registers[i]);
    NUMBER(processor->fs_base);
    NUMBER(processor->gs_base);
    NUMBER(processor->ds);
    NUMBER(processor->es);
    NUMBER(processor->fs);
    NUMBER(processor->gs);
    NUMBER(processor->xsave_size);
    NUMBER(processor->reserved);
}

/* All but XCR0. */
static void features_pass(struct cursor *cursor, struct ph__features *features) {
    for (size_t i = 0; i < PH__FEATURE_WORDS; i++)
        NUMBER(features->words[i]);
    for (size_t i = 0; i < PH__FEATURE_COMPONENTS; i++)
        NUMBER(features->components[i]);
}

static void request_pass(struct cursor *cursor, struct ph__layout_request *request) {
    NUMBER(request->memory);
    NUMBER(request->stack);
    NUMBER(request->max_message);
    NUMBER(request->image_gva);
    NUMBER(request->image_size);
    NUMBER(request->trace_ring);
    NUMBER(request->site_words_gva);
    NUMBER(request->site_words_size);
    NUMBER(request->files);
}

static void head_pass(struct cursor *cursor, struct ph__snapshot_head *head) {
    uint32_t image_kind = head->image.is_build_id ? 1 : 2;
    uint8_t signature[sizeof magic];

    memcpy(signature, magic, sizeof signature);
    BYTES(signature);
    NUMBER(head->format);
    NUMBER(head->head_size);
    BYTES(head->digest);
    BYTES(head->data_digest);
    BYTES(head->monitor);
    NUMBER(head->abi);
    NUMBER(image_kind);
    head->image.is_build_id = image_kind == 1;
    NUMBER(head->page_size);
    NUMBER(head->file_size);
    NUMBER(head->page_count);
    NUMBER(head->protection_count);
    NUMBER(head->features.xcr0);
    NUMBER(head->saved_ns);
    NUMBER(head->seed_generation);
    NUMBER(head->trace_position);
    NUMBER(head->input_taken);
    request_pass(cursor, &head->request);
    NUMBER(head->image.size);
    BYTES(head->image.bytes);
    BYTES(head->image_name);
    processor_pass(cursor, &head->processor);
    NUMBER(head->files);
    features_pass(cursor, &head->features);
    cursor->position = XSAVE_OFFSET;
    BYTES(head->processor.xsave);
}

void ph__snapshot_head_encode(const struct ph__snapshot_head *head, uint8_t bytes[PH__SNAPSHOT_HEAD_SIZE]) {
    struct ph__snapshot_head copy = *head;
    struct cursor cursor = {.to = bytes};

    memset(bytes, 0, PH__SNAPSHOT_HEAD_SIZE);
    head_pass(&cursor, &copy);
}

void ph__snapshot_digest(const uint8_t head[PH__SNAPSHOT_HEAD_SIZE], const uint8_t *tables, size_t size,
                         uint8_t digest[PH__SHA256_SIZE]) {
    static const uint8_t nothing[PH__SHA256_SIZE];
    const size_t behind = DIGEST_OFFSET + PH__SHA256_SIZE;
    struct ph__sha256 hash;

    ph__sha256_begin(&hash);
    ph__sha256_add(&hash, head, DIGEST_OFFSET);
    ph__sha256_add(&hash, nothing, sizeof nothing);
    ph__sha256_add(&hash, head + behind, PH__SNAPSHOT_HEAD_SIZE - behind);
    ph__sha256_add(&hash, tables, size);
    ph__sha256_end(&hash, digest);
}

/* More pages, and more entries, than any layout has: so that no sum of sizes overflows. */
#define COUNT_MAX (1ull << 40)

ph_status ph__snapshot_head_decode(const uint8_t *untrusted_bytes, size_t size, uint64_t file_size,
                                   struct ph__snapshot_head *untrusted_head, ph_error *error) {
    struct cursor cursor = {.from = untrusted_bytes};

    *untrusted_head = (struct ph__snapshot_head){0};
    if (size < sizeof magic || memcmp(untrusted_bytes, magic, sizeof magic) != 0)
        return ph__error_set(error, PH_E_SNAPSHOT, "this is no file of a snapshot");
    if (size < PH__SNAPSHOT_HEAD_SIZE)
        return ph__error_set(error, PH_E_SNAPSHOT, "the file is cut off within its head");
    head_pass(&cursor, untrusted_head);
    if (untrusted_head->format != PH__SNAPSHOT_FORMAT)
        return ph__error_set(error, PH_E_SNAPSHOT,
                             "the file is of version %u of the format, and this library knows version %u",
                             untrusted_head->format, PH__SNAPSHOT_FORMAT);
    if (untrusted_head->page_size != PH__PAGE_SIZE)
        return ph__error_set(error, PH_E_SNAPSHOT,
                             "the file is of pages of %llu bytes, and this machine has pages of %llu",
                             (unsigned long long)untrusted_head->page_size, PH__PAGE_SIZE);
    if (untrusted_head->head_size != PH__SNAPSHOT_HEAD_SIZE || untrusted_head->page_count > COUNT_MAX ||
        untrusted_head->protection_count > COUNT_MAX ||
        untrusted_head->file_size != ph__snapshot_file_size(untrusted_head))
        return ph__error_set(error, PH_E_SNAPSHOT, "the file is damaged: its sizes do not fit together");
    if (file_size < untrusted_head->file_size)
        return ph__error_set(error, PH_E_SNAPSHOT, "the file is cut off: of %llu bytes there are %llu",
                             (unsigned long long)untrusted_head->file_size, (unsigned long long)file_size);
    if (file_size > untrusted_head->file_size)
        return ph__error_set(error, PH_E_SNAPSHOT, "the file is damaged: it has bytes behind its end");
    return PH_OK;
}

/* ---- tables -------------------------------------------------------------------------------------------- */

void ph__snapshot_words_encode(const uint64_t *words, size_t count, uint8_t *bytes) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sizeof words[i]; j++)
            bytes[i * sizeof words[i] + j] = (uint8_t)(words[i] >> 8 * j);
}

void ph__snapshot_words_decode(const uint8_t *bytes, size_t count, uint64_t *words) {
    for (size_t i = 0; i < count; i++) {
        words[i] = 0;
        for (size_t j = 0; j < sizeof words[i]; j++)
            words[i] |= (uint64_t)bytes[i * sizeof words[i] + j] << 8 * j;
    }
}

static bool is_in(const struct ph__region *region, uint64_t offset) {
    return offset - region->offset < region->size;
}

/* The monitor's data and its stack: all that ring 3 can write in the system region, but for the bytes of
 * system calls under way, which are nobody's between calls. */
static bool is_system_kept(uint64_t offset) {
    const struct ph__monitor_header *monitor = ph__monitor();

    return offset - (PH__MONITOR_GPA + monitor->data) < monitor->bss_end - monitor->data ||
           offset - PH__MONITOR_STACK_GPA < PH__MONITOR_STACK_SIZE;
}

bool ph__snapshot_page_is_kept(const struct ph__layout *layout, uint64_t page) {
    const uint64_t offset = page * PH__PAGE_SIZE;

    if (page >= layout->size / PH__PAGE_SIZE)
        return false;
    if (is_in(&layout->system, offset))
        return is_system_kept(offset);
    return (is_in(&layout->image, offset) && !is_in(&layout->site_words, offset)) ||
           is_in(&layout->bookkeeping, offset) || is_in(&layout->arena, offset) ||
           is_in(&layout->stack, offset);
}

/* ---- checks -------------------------------------------------------------------------------------------- */

/* The components that XCR0 can have in a guest of any machine: x87, SSE, AVX and AVX-512. */
#define XCR0_EVER 0xe7ull

/* Positions and generations that no sandbox lives long enough for, so that adding to them is safe. */
#define POSITION_MAX (1ull << 62)

static ph_status damaged(ph_error *error, const char *what) {
    return ph__error_set(error, PH_E_SNAPSHOT, "the file is damaged: %s", what);
}

/* Bytes that mean nothing are zero, so that a later version can give them a meaning. */
static bool is_canonical(const uint8_t *bytes, const struct ph__snapshot_head *head) {
    uint8_t again[PH__SNAPSHOT_HEAD_SIZE];
    const struct ph__processor *processor = &head->processor;

    ph__snapshot_head_encode(head, again);
    return memcmp(bytes, again, sizeof again) == 0 && head->image.size >= 1 &&
           head->image.size <= sizeof head->image.bytes &&
           ph__content_is_zero(head->image.bytes + head->image.size,
                               sizeof head->image.bytes - head->image.size) &&
           memchr(head->image_name, 0, sizeof head->image_name) != NULL && processor->reserved == 0 &&
           processor->xsave_size <= sizeof processor->xsave &&
           ph__content_is_zero(processor->xsave + processor->xsave_size,
                               sizeof processor->xsave - processor->xsave_size);
}

/* The sizes are such as a config can ask for, and lead to (layout). */
static ph_status layout_check(const struct ph__layout_request *request, struct ph__layout *layout,
                              ph_error *error) {
    const uint64_t image_end = request->image_gva + request->image_size;
    ph_error reason;

    if (request->image_gva < PH__IMAGE_GVA_MIN || request->image_gva >= PH__WINDOW_GVA ||
        request->image_size == 0 || request->image_size > PH__WINDOW_GVA - request->image_gva ||
        (request->image_gva | request->image_size) % PH__PAGE_SIZE != 0)
        return damaged(error, "no image can lie where it says");
    if (request->site_words_size &&
        (request->site_words_gva < request->image_gva || request->site_words_gva >= image_end ||
         request->site_words_size > image_end - request->site_words_gva))
        return damaged(error, "no trace sites can lie where it says");
    if (request->trace_ring &&
        (request->trace_ring > PH__RING_SIZE_MAX || request->trace_ring < PH__RING_SIZE_MIN ||
         (request->trace_ring & (request->trace_ring - 1)) != 0))
        return damaged(error, "there is no trace ring of this size");
    if (request->files > PH__FILES_SIZE_MAX || request->files % PH__LARGE_PAGE_SIZE != 0)
        return damaged(error, "there is no file window of this size");
    if (!request->memory || !request->stack || !request->max_message ||
        ph__layout_compute(request, layout, &reason) != PH_OK)
        return damaged(error, "there is no memory of these sizes");
    return PH_OK;
}

/* Bytes of tables that are read whatever the sizes are, so that what is said about a small file is what is
 * wrong with it: those of another version may mean something else. */
#define TABLES_SMALL (1ull << 20)

bool ph__snapshot_tables_fit(const struct ph__snapshot_head *untrusted_head) {
    struct ph__layout layout;

    if (ph__snapshot_tables_size(untrusted_head) <= TABLES_SMALL)
        return true;
    return layout_check(&untrusted_head->request, &layout, NULL) == PH_OK &&
           untrusted_head->page_count <= layout.size / PH__PAGE_SIZE &&
           untrusted_head->protection_count <= ph__protections_count_max(&layout);
}

static ph_status pages_check(const struct ph__layout *layout, const uint64_t *untrusted_pages, uint64_t count,
                             ph_error *error) {
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0 && untrusted_pages[i] <= untrusted_pages[i - 1])
            return damaged(error, "its pages are not in order");
        if (!ph__snapshot_page_is_kept(layout, untrusted_pages[i]))
            return damaged(error, "it has a page that no snapshot holds");
    }
    return PH_OK;
}

static ph_status protections_check(const struct ph__layout *layout, const struct ph__protections *untrusted,
                                   const ph_image *image, ph_error *error) {
    struct ph__protections_range ranges[PH__ELF_SEGMENTS_MAX];
    struct ph__protections_rules rules = {.allow_wx = true};

    if (image) {
        for (uint32_t i = 0; i < image->range_count; i++)
            ranges[i] = (struct ph__protections_range){image->ranges[i].gva, image->ranges[i].size};
        rules = (struct ph__protections_rules){
            .ranges = ranges,
            .range_count = image->range_count,
            .allow_wx = image->flags & PH_IMAGE_ALLOW_WX,
        };
    }
    const char *wrong = ph__protections_check(layout, untrusted, &rules);
    return wrong ? ph__error_set(error, PH_E_SNAPSHOT,
                                 "the file is damaged: its protections are not those of a guest (%s)", wrong)
                 : PH_OK;
}

struct ph__layout_request ph__snapshot_request(const ph_image *image, const struct ph__layout *layout) {
    const uint64_t slot = layout->arena.offset - layout->image.offset; /* the image, in whole 2 MiB */
    const bool words = layout->trace_ring && image->word_count;

    return (struct ph__layout_request){
        .memory = slot + layout->arena.size + layout->stack.size,
        .stack = layout->stack.size,
        .max_message = layout->max_message,
        .image_gva = layout->image.gva,
        .image_size = layout->image.size,
        .trace_ring = layout->trace_ring,
        .site_words_gva = words ? image->words_gva : 0,
        .site_words_size = words ? image->word_count * sizeof(uint64_t) : 0,
        .files = layout->files.size,
    };
}

/* Its identity is the same already; but a build-id is only what a file says, and proves nothing. */
static ph_status place_check(const struct ph__layout *layout, const struct ph__layout_request *untrusted,
                             const ph_image *image, ph_error *error) {
    const struct ph__layout_request wanted = ph__snapshot_request(image, layout);

    if (image->gva != layout->image.gva || image->size != layout->image.size ||
        wanted.site_words_gva != untrusted->site_words_gva ||
        wanted.site_words_size != untrusted->site_words_size)
        return ph__error_set(error, PH_E_SNAPSHOT,
                             "the snapshot is of another layout: its image does not lie where this one does");
    return PH_OK;
}

static bool is_same_image(const struct ph__image_identity *a, const struct ph__image_identity *b) {
    return a->is_build_id == b->is_build_id && a->size == b->size &&
           memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* Whether a sandbox here can run what the file holds. */
static ph_status fit_check(const struct ph__snapshot_head *head, const struct ph__snapshot_wanted *wanted,
                           ph_error *error) {
    if (wanted->monitor && memcmp(wanted->monitor, head->monitor, sizeof head->monitor) != 0)
        return ph__error_set(
            error, PH_E_SNAPSHOT,
            "the snapshot was saved by another build of this library, whose monitor differs");
    if (wanted->identity && !is_same_image(wanted->identity, &head->image))
        return ph__error_set(error, PH_E_SNAPSHOT, "the snapshot is of another image (%s)", head->image_name);
    return PH_OK;
}

/* Whether head and tables are as they were written, by a library with the same idea of their parts. */
static ph_status bytes_check(const uint8_t *untrusted_bytes, const struct ph__snapshot_head *head,
                             const uint8_t *untrusted_tables, ph_error *error) {
    const uint64_t tables = ph__snapshot_tables_size(head);
    uint8_t digest[PH__SHA256_SIZE];

    ph__snapshot_digest(untrusted_bytes, untrusted_tables, tables, digest);
    if (memcmp(digest, head->digest, sizeof digest) != 0)
        return damaged(error, "head and tables are not what their digest says");
    if (head->abi != PH__ABI_VERSION)
        return ph__error_set(
            error, PH_E_SNAPSHOT,
            "the snapshot is of version %u of the interface between host and guest, and this "
            "library has version %u",
            head->abi, PH__ABI_VERSION);
    if (!is_canonical(untrusted_bytes, head) ||
        !ph__content_is_zero(untrusted_tables + tables, ph__snapshot_tables_room(head) - tables))
        return damaged(error, "it has bytes that mean nothing");
    if (head->seed_generation > POSITION_MAX || head->trace_position > POSITION_MAX ||
        head->trace_position % sizeof(uint64_t) != 0)
        return damaged(error, "its positions are none that a sandbox comes to");
    return PH_OK;
}

ph_status ph__snapshot_format_check(const uint8_t untrusted_bytes[PH__SNAPSHOT_HEAD_SIZE],
                                    const struct ph__snapshot_head *untrusted_head,
                                    const uint8_t *untrusted_tables, const struct ph__snapshot_wanted *wanted,
                                    struct ph__layout *layout, uint64_t *words, ph_error *error) {
    const struct ph__snapshot_head *head = untrusted_head;

    ph_status status = bytes_check(untrusted_bytes, head, untrusted_tables, error);
    if (status == PH_OK)
        status = fit_check(head, wanted, error);
    if (status == PH_OK)
        status = layout_check(&head->request, layout, error);
    if (status == PH_OK && wanted->image)
        status = place_check(layout, &head->request, wanted->image, error);
    if (status != PH_OK)
        return status;
    ph__snapshot_words_decode(untrusted_tables, head->page_count + head->protection_count, words);
    const struct ph__protections protections = {.entries = words + head->page_count,
                                                .count = head->protection_count};
    status = pages_check(layout, words, head->page_count, error);
    if (status == PH_OK)
        status = protections_check(layout, &protections, wanted->image, error);
    if (status == PH_OK)
        status = ph__processor_check(&head->processor, XCR0_EVER, error);
    return status;
}
