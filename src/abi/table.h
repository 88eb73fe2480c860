/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The tables that a guest program carries in its ELF file: exports, imports and hooks. The guest's macros
 * write them with inline assembly; the host reads them from the file, never from guest memory. Every pointer
 * is a 32-bit distance from its own field, so that no relocation is needed, in static-PIE either.
 *
 * An ELF note (name "pinhole", type PH__NOTE_TABLES) says where the tables are: the section names do not
 * matter to the host, and `strip` keeps notes.
 */
#ifndef PH_ABI_TABLE_H
#define PH_ABI_TABLE_H

#include <stdint.h>

#include <pinhole/types.h>

#define PH__NOTE_NAME "pinhole"
#define PH__NOTE_TABLES 1u

/* The type of a second note, whose description is empty and not looked at. In a program without it the host
 * leaves the control page's traceparent empty: writing it takes about as long as three records. */
#define PH__NOTE_TRACEPARENT 2u

/* The note's description. (x_start) and (x_end) are distances from their own fields to the first byte of the
 * table and to the first byte after it, in guest-virtual addresses. */
struct ph__note {
    uint32_t abi_version;
    int32_t exports_start, exports_end;
    int32_t imports_start, imports_end;
    int32_t sites_start, sites_end; /* struct ph__site_entry (trace.h) */
    int32_t words_start, words_end; /* the sites' words, 8 bytes each, in any order */
};

/* One export or import. Index = position in its table. Two entries with one name are the same import when
 * their signatures agree; two exports with one name are refused. */
struct ph__function_entry {
    int32_t name;   /* distance to a NUL-terminated name */
    int32_t thunk;  /* exports: distance to a ph__thunk; imports: 0 */
    uint8_t result; /* ph_type */
    uint8_t count;
    uint8_t args[PH_MAX_ARGS]; /* ph_type; zero behind (count) */
    uint16_t reserved;
};
_Static_assert(sizeof(struct ph__function_entry) == 24, "entries lie side by side without padding");

#define PH__FUNCTIONS_MAX 65536u
#define PH__NAME_MAX 255u /* bytes of a function's name */

/* A thunk's symbol is this and the export's name. Reports leave it out: a function that the compiler has put
 * into its thunk is still called by its own name. */
#define PH__THUNK_PREFIX "ph__export_"

/* A thunk unpacks (args) by their types, calls the user's function and packs (result). */
typedef void ph__thunk(const ph_value *args, ph_value *result);

#endif
