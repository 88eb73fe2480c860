/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What elf.h promises about every file that was not refused, as a list that a test or a fuzzer goes through.
 * Returns the first promise that is broken, or NULL.
 */
#ifndef PH_TESTS_ELF_INVARIANTS_H
#define PH_TESTS_ELF_INVARIANTS_H

#include <stddef.h>
#include <stdint.h>

#include "abi/layout.h"
#include "vm/elf.h"

static inline int elf_range_is_inside(uint64_t offset, uint64_t size, uint64_t whole) {
    return offset <= whole && size <= whole - offset;
}

static inline const char *elf_broken_promise(const struct ph__elf *elf, uint64_t size, int allow_wx) {
    uint64_t end = 0;
    int entry_is_code = 0;

#define PROMISE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            return #condition;                                                                               \
    } while (0)
    PROMISE(elf->segment_count >= 1 && elf->segment_count <= PH__ELF_SEGMENTS_MAX);
    PROMISE(elf->start % PH__PAGE_SIZE == 0 && elf->end % PH__PAGE_SIZE == 0);
    PROMISE(elf->start >= PH__IMAGE_GVA_MIN && elf->end > elf->start && elf->end <= PH__WINDOW_GVA);
    PROMISE(elf->end - elf->start <= 64ull << 30);
    PROMISE(elf->static_pie || elf->bias == 0);
    PROMISE(elf->bias % PH__PAGE_SIZE == 0);
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        const struct ph__elf_segment *segment = &elf->segments[i];
        PROMISE(elf_range_is_inside(segment->file_offset, segment->file_size, size));
        PROMISE(segment->memory_size > 0 && segment->file_size <= segment->memory_size);
        PROMISE(segment->file_size == 0 || (segment->address - segment->file_offset) % PH__PAGE_SIZE == 0);
        PROMISE(elf_range_is_inside(segment->address, segment->memory_size, elf->end));
        PROMISE(segment->address >= elf->start);
        PROMISE((segment->address & ~(PH__PAGE_SIZE - 1)) >= end);
        PROMISE(segment->readable);
        PROMISE(allow_wx || !(segment->writable && segment->executable));
        end = (segment->address + segment->memory_size + PH__PAGE_SIZE - 1) & ~(PH__PAGE_SIZE - 1);
        if (segment->executable && elf->entry >= segment->address &&
            elf->entry - segment->address < segment->file_size)
            entry_is_code = 1;
    }
    PROMISE(end == elf->end);
    PROMISE(entry_is_code);
    PROMISE(elf->headers_address == 0 ||
            (elf->headers_address >= elf->start && elf->headers_address < elf->end));
    PROMISE(!elf->has_note || elf_range_is_inside(elf->note_offset, elf->note_size, size));
    PROMISE(!elf->has_note || ph__elf_available(elf, elf->note_address) >= elf->note_size);
    PROMISE(elf->build_id_size <= PH__BUILD_ID_MAX);
    PROMISE(elf_range_is_inside(elf->build_id_offset, elf->build_id_size, size));
    PROMISE(elf->symbol_count <= size / 24);
    PROMISE(elf_range_is_inside(elf->symbols_offset, elf->symbol_count * 24, size));
    PROMISE(elf_range_is_inside(elf->strings_offset, elf->strings_size, size));
    PROMISE(elf->symbol_count == 0 || elf->strings_size > 0);
#undef PROMISE
    return NULL;
}

#endif
