/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The steps in which ph_image_open fills an image, each in a file of its own. Private to those files. Each
 * takes the file's (bytes) and what ph__elf_parse found in them, fills its part of (image), and fills (error)
 * when it fails. What it allocated belongs to (image) at once, so image_destroy is the clean-up of a
 * half-made one.
 */
#ifndef PH_SANDBOX_IMAGE_PARTS_H
#define PH_SANDBOX_IMAGE_PARTS_H

#include "abi/table.h"
#include "sandbox/image.h"

/* Bytes of a function's name in the symbol table that are kept. Names of C++ templates can be longer still.
 */
#define PH__SYMBOL_NAME_MAX 1023u

/* Page ranges, extents and the sealed memfd. PH_E_SYSTEM. */
ph_status ph__image_fill_content(ph_image *image, const uint8_t *bytes, const struct ph__elf *elf,
                                 ph_error *error);

/* Exports, imports and trace sites, when the program was linked with the guest library. PH_E_IMAGE or
 * PH_E_MEMORY. */
ph_status ph__image_read_tables(ph_image *image, const uint8_t *bytes, const struct ph__elf *elf,
                                ph_error *error);

/* Trace sites and their words, where (untrusted_note) says that they are. PH_E_IMAGE or PH_E_MEMORY. */
ph_status ph__image_read_sites(ph_image *image, const uint8_t *bytes, const struct ph__elf *elf,
                               const struct ph__note *untrusted_note, ph_error *error);

/* Functions of the symbol table. A table that makes no sense yields fewer names or none. PH_E_MEMORY. */
ph_status ph__image_read_symbols(ph_image *image, const uint8_t *bytes, const struct ph__elf *elf,
                                 ph_error *error);

/* PH_E_IMAGE with a message in printf's form behind the image's name, of which a long one loses its start. */
ph_status ph__image_refuse(const ph_image *image, ph_error *error, const char *format, ...) PH_PRINTF(3, 4);

#endif
