/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `pinhole snapshot`, with `info` and `verify`: what a snapshot's file says, and whether it is whole. Both
 * read the file alone: neither image nor KVM is needed, and nothing is written. A file may come from
 * anywhere, so its texts are made printable.
 */
#include <inttypes.h>
#include <pinhole/snapshot.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/value.h"

/* The one file that is left on the command line; NULL after a usage error. */
static const char *take_file(const struct ph__command *command, const struct ph__line *line) {
    if (line->count == 1)
        return line->words[0];
    ph__usage_error(command, line->count ? "one file only, options go before it" : "which file?");
    return NULL;
}

/* ---- info ---------------------------------------------------------------------------------------------- */

static const char info_help[] =
    "usage: pinhole snapshot info [OPTION]... SNAP\n"
    "\n"
    "Prints what the file SNAP says about the snapshot in it: of which image it is, and the sizes that a "
    "sandbox has\n"
    "to have. `pinhole snapshot verify` looks at the content too.\n"
    "\n"
    "  --json  print one JSON object: \"format\", \"abi\", \"image\", \"build_id\" or \"sha256\", "
    "\"saved_ns\" since 1970,\n"
    "          \"features\" (names of what the guest's processor had), \"xcr0\", and in bytes \"memory\", "
    "\"stack\",\n"
    "          \"max_message\", \"trace_ring\", \"files\", \"pages\" (a count) of \"page_size\", and "
    "\"file_size\"\n"
    "  --help  print this\n"
    "\n"
    "Exit status: 0; 2 when the file is missing or is no snapshot that this version can read.\n";

#define ID_KIND(info) ((info)->image_id_is_build_id ? "build-id" : "sha256")

/* The image's identity in hexadecimal digits. */
static void write_id(const ph_snapshot_info *info, char text[2 * sizeof info->image_id + 1]) {
    size_t size = info->image_id_size < sizeof info->image_id ? info->image_id_size : sizeof info->image_id;

    text[0] = 0;
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", info->image_id[i]);
}

/* A size as the options take it. */
static void print_size(const char *name, uint64_t size) {
    static const char units[] = "KMG";
    const char *unit = NULL;

    for (const char *next = units; *next && size && size % 1024 == 0; next++, size /= 1024)
        unit = next;
    printf("%-13s%" PRIu64 "%.*s\n", name, size, unit ? 1 : 0, unit ? unit : "");
}

static void print_time(uint64_t ns) {
    const time_t seconds = (time_t)(ns / 1000000000u);
    struct tm parts;
    char text[64];

    if (gmtime_r(&seconds, &parts) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts))
        printf("%-13s%s\n", "saved", text);
}

/* Where the next name is, or the end. */
static const char *behind_name(const char *name) {
    name += strcspn(name, " ");
    return name + (*name == ' ');
}

/* Names with spaces between them, in lines that fit a page. */
static void print_features(const char *names) {
    int column = printf("%-13s", "features");

    for (const char *name = names; *name; name = behind_name(name)) {
        const int length = (int)strcspn(name, " ");
        if (column + length >= 100)
            column = printf("\n%-13s", "") - 1;
        else if (name != names)
            column += printf(" ");
        column += printf("%.*s", length, name);
    }
    putchar('\n');
}

static void print_text(const ph_snapshot_info *info) {
    char id[2 * sizeof info->image_id + 1];
    char name[sizeof info->image_name];

    write_id(info, id);
    ph__text_copy_printable(name, sizeof name, info->image_name,
                            strnlen(info->image_name, sizeof info->image_name));
    printf("%-13s%" PRIu32 ", ABI %" PRIu32 "\n", "format", info->format, info->abi);
    printf("%-13s%s\n", "image", name);
    printf("%-13s%s\n", ID_KIND(info), id);
    print_time(info->saved_ns);
    print_features(info->features);
    printf("%-13s0x%" PRIx64 "\n", "xcr0", info->xcr0);
    print_size("memory", info->memory);
    print_size("stack", info->stack);
    print_size("max-message", info->max_message);
    if (info->trace_ring)
        print_size("trace-ring", info->trace_ring);
    else
        printf("%-13snot traced\n", "trace-ring");
    print_size("files", info->files);
    printf("%-13s%" PRIu64 " of %" PRIu64 " bytes\n", "pages", info->pages, info->page_size);
    printf("%-13s%" PRIu64 " bytes\n", "file", info->file_size);
}

/* The same as an array. None of the names has to be escaped. */
static void print_list(const char *names) {
    putchar('[');
    for (const char *name = names; *name; name = behind_name(name))
        printf("%s\"%.*s\"", name == names ? "" : ", ", (int)strcspn(name, " "), name);
    putchar(']');
}

/* By hand: JSON libraries have no room for all of 64 bits. */
static void print_json(const ph_snapshot_info *info) {
    const struct {
        const char *name;
        uint64_t number;
    } numbers[] = {
        {"memory", info->memory},
        {"stack", info->stack},
        {"max_message", info->max_message},
        {"trace_ring", info->trace_ring},
        {"files", info->files},
        {"pages", info->pages},
        {"page_size", info->page_size},
        {"file_size", info->file_size},
        {"saved_ns", info->saved_ns},
        {"xcr0", info->xcr0},
    };
    char id[2 * sizeof info->image_id + 1];
    char name[sizeof info->image_name + 1] = {0};
    const ph_value image = {.type = PH_STR, .str = name};

    write_id(info, id);
    memcpy(name, info->image_name, sizeof info->image_name);
    printf("{\"format\": %" PRIu32 ", \"abi\": %" PRIu32 ", \"image\": ", info->format, info->abi);
    ph__value_print(stdout, &image);
    printf(", \"%s\": \"%s\", \"features\": ", info->image_id_is_build_id ? "build_id" : "sha256", id);
    print_list(info->features);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        printf(", \"%s\": %" PRIu64, numbers[i].name, numbers[i].number);
    puts("}");
}

static int run_info(const struct ph__command *command, struct ph__line *line) {
    ph_snapshot_info info = PH_SNAPSHOT_INFO_INIT;
    bool json = false;
    const struct ph__option options[] = {{"--json", PH__OPTION_FLAG, &json}, {0}};
    ph_error error;
    int status = ph__options_parse(command, options, line);

    if (status != PH__OPTIONS_GO_ON)
        return status;
    const char *path = take_file(command, line);
    if (!path)
        return PH__COMMAND_USAGE;
    ph_status examined = ph_snapshot_examine(path, false, &info, &error);
    if (examined != PH_OK) {
        ph__complain("%s", error.message);
        return ph__status_of_call(examined);
    }
    if (json)
        print_json(&info);
    else
        print_text(&info);
    return ph__finish_output(PH__COMMAND_OK);
}

const struct ph__command ph__command_snapshot_info = {
    .name = "snapshot info",
    .summary = "say what is in a snapshot's file",
    .help = info_help,
    .usage_status = PH__COMMAND_USAGE,
    .run = run_info,
};

/* ---- verify -------------------------------------------------------------------------------------------- */

static const char verify_help[] =
    "usage: pinhole snapshot verify [OPTION]... SNAP\n"
    "\n"
    "Reads all of the file SNAP, and says on standard error what is wrong with it. It prints nothing when "
    "all "
    "is as it\n"
    "was saved. This finds accidents: who can write the file can also make its digest fit.\n"
    "\n"
    "  --help  print this\n"
    "\n"
    "Exit status: 0; 1 when the file is damaged, of another version or no snapshot; 2 when it cannot be "
    "read.\n";

static int run_verify(const struct ph__command *command, struct ph__line *line) {
    ph_snapshot_info info = PH_SNAPSHOT_INFO_INIT;
    const struct ph__option options[] = {{0}};
    ph_error error;
    int status = ph__options_parse(command, options, line);

    if (status != PH__OPTIONS_GO_ON)
        return status;
    const char *path = take_file(command, line);
    if (!path)
        return PH__COMMAND_USAGE;
    ph_status examined = ph_snapshot_examine(path, true, &info, &error);
    if (examined == PH_OK)
        return ph__finish_output(PH__COMMAND_OK);
    ph__complain("%s", error.message);
    return examined == PH_E_SNAPSHOT ? PH__COMMAND_FAILED : ph__status_of_call(examined);
}

const struct ph__command ph__command_snapshot_verify = {
    .name = "snapshot verify",
    .summary = "say whether a snapshot's file is as it was saved",
    .help = verify_help,
    .usage_status = PH__COMMAND_USAGE,
    .run = run_verify,
};

/* ---- the group ----------------------------------------------------------------------------------------- */

static const struct ph__command *const parts[] = {
    &ph__command_snapshot_save,
    &ph__command_snapshot_info,
    &ph__command_snapshot_verify,
    NULL,
};

static int print_help(const struct ph__command *command) {
    puts("usage: pinhole snapshot COMMAND [OPTION]... [ARG...]\n"
         "\n"
         "Started guests in files, for `pinhole call --snapshot`.\n");
    ph__parts_print(command);
    puts("\n"
         "  --help  print this; after COMMAND, its own options");
    return ph__finish_output(PH__COMMAND_OK);
}

static int run(const struct ph__command *command, struct ph__line *line) {
    const struct ph__option options[] = {{0}};

    if (line->count > 0 && ph__option_is_help(line->words[0]))
        return print_help(command);
    int status = ph__options_parse(command, options, line);
    if (status != PH__OPTIONS_GO_ON)
        return status;
    const struct ph__command *part = ph__part_take(command, line);
    return part ? part->run(part, line) : PH__COMMAND_USAGE;
}

const struct ph__command ph__command_snapshot = {
    .name = "snapshot",
    .summary = "keep a started guest in a file",
    .help = "",
    .parts = parts,
    .usage_status = PH__COMMAND_USAGE,
    .run = run,
};
