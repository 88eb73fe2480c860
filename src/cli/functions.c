/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `pinhole functions`: what a guest exports and imports. Reads the file and makes no VM.
 */
#include <jansson.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/options.h"

static const char help[] =
    "usage: pinhole functions [OPTION]... FILE\n"
    "\n"
    "Lists the functions that FILE exports, and the host functions that it imports, with their types.\n"
    "\n"
    "  --json  print one JSON object: {\"exports\": [...], \"imports\": [...]}, each function with \"name\", "
    "\"result\"\n"
    "          and \"args\"\n"
    "  --help  print this\n"
    "\n"
    "Exit status: 0; 2 when the file is missing, malformed or refused.\n";

static json_t *describe(const ph_function *function) {
    const ph_signature *signature = &function->signature;
    json_t *args = json_array();

    for (uint32_t i = 0; i < signature->count; i++)
        json_array_append_new(args, json_string(ph__signature_type(signature->args[i])));
    return json_pack("{s:s, s:s, s:o}", "name", function->name, "result",
                     ph__signature_type(signature->result), "args", args);
}

static void print_json(const ph_image *image) {
    json_t *exports = json_array();
    json_t *imports = json_array();

    for (size_t i = 0; i < ph_image_export_count(image); i++)
        json_array_append_new(exports, describe(ph_image_export(image, i)));
    for (size_t i = 0; i < ph_image_import_count(image); i++)
        json_array_append_new(imports, describe(ph_image_import(image, i)));
    json_t *both = json_pack("{s:o, s:o}", "exports", exports, "imports", imports);
    json_dumpf(both, stdout, 0);
    putchar('\n');
    json_decref(both);
}

static void print_text(const ph_image *image) {
    if (ph_image_export_count(image) > 0)
        puts("exports:");
    for (size_t i = 0; i < ph_image_export_count(image); i++) {
        fputs("  ", stdout);
        ph__signature_print(ph_image_export(image, i));
    }
    if (ph_image_import_count(image) > 0)
        puts("imports:");
    for (size_t i = 0; i < ph_image_import_count(image); i++) {
        fputs("  ", stdout);
        ph__signature_print(ph_image_import(image, i));
    }
}

static int run(const struct ph__command *command, struct ph__line *line) {
    bool json = false;
    const struct ph__option options[] = {{"--json", PH__OPTION_FLAG, &json}, {0}};
    ph_image *image;
    ph_error error;
    int status = ph__options_parse(command, options, line);

    if (status != PH__OPTIONS_GO_ON)
        return status;
    if (line->count != 1)
        return ph__usage_error(command, line->count ? "one file only, options go before it" : "which file?");
    ph_status opened = ph_image_open(line->words[0], 0, &image, &error);
    if (opened != PH_OK) {
        ph__complain("%s", error.message);
        return ph__status_of_call(opened);
    }
    if (json)
        print_json(image);
    else
        print_text(image);
    ph_image_close(image);
    return ph__finish_output(PH__COMMAND_OK);
}

const struct ph__command ph__command_functions = {
    .name = "functions",
    .summary = "list what a guest exports and imports",
    .help = help,
    .usage_status = PH__COMMAND_USAGE,
    .run = run,
};
