/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Host functions that always give the same (constants.h).
 */
#include "cli/constants.h"

#include <stdlib.h>
#include <string.h>

/* The import with the (length) bytes of (name), or NULL. */
static const ph_function *find_import(const ph_image *image, const char *name, size_t length) {
    for (size_t i = 0; i < ph_image_import_count(image); i++) {
        const ph_function *import = ph_image_import(image, i);
        if (strlen(import->name) == length && memcmp(import->name, name, length) == 0)
            return import;
    }
    return NULL;
}

static int parse_word(const struct ph__command *command, struct ph__constants *constants,
                      const ph_image *image, const char *word) {
    const char *sign = strchr(word, '=');
    struct ph__refusal why;
    ph_value value;

    if (!sign || sign == word)
        return ph__usage_error(command, "--host wants NAME=JSON, not '%s'", word);
    const ph_function *import = find_import(image, word, (size_t)(sign - word));
    if (!import)
        return ph__usage_error(command, "the file imports no host function '%.*s'", (int)(sign - word), word);
    ph_type type = import->signature.result;
    if (!ph__value_parse(sign + 1, type, &value, &why))
        return ph__usage_error(command, "--host %s, a value of type %s: %s", import->name,
                               ph__signature_type(type), why.text);
    ph__value_free(&constants->values[import->index]);
    constants->values[import->index] = value;
    constants->given[import->index] = true;
    return PH__COMMAND_OK;
}

int ph__constants_parse(const struct ph__command *command, struct ph__constants *constants,
                        const ph_image *image, const struct ph__words *words) {
    int status = PH__COMMAND_OK;

    constants->count = ph_image_import_count(image);
    constants->values = calloc(constants->count + 1, sizeof *constants->values);
    constants->given = calloc(constants->count + 1, sizeof *constants->given);
    if (!constants->values || !constants->given) {
        ph__complain("no memory for the host functions");
        return PH__COMMAND_FAILED;
    }
    for (size_t i = 0; i < words->count && status == PH__COMMAND_OK; i++)
        status = parse_word(command, constants, image, words->list[i]);
    return status;
}

static const char *example_of(ph_type type) {
    switch (type) {
    case PH_STR:
        return "'\"text\"'";
    case PH_BYTES:
        return "@PATH";
    case PH_BOOL:
        return "true";
    case PH_VOID:
        return "null";
    default:
        return "1";
    }
}

int ph__constants_check(const struct ph__constants *constants, const ph_image *image, const char *function) {
    for (size_t i = 0; i < constants->count; i++) {
        const ph_function *import = ph_image_import(image, i);
        if (constants->given[i])
            continue;
        ph__complain("%s: %s: the guest calls the host function '%s'; answer it with --host %s=%s", function,
                     ph_status_kind(PH_E_UNREGISTERED), import->name, import->name,
                     example_of(import->signature.result));
        return PH__COMMAND_USAGE;
    }
    return PH__COMMAND_OK;
}

/* A ph_host_fn. */
static ph_status answer(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)call;
    (void)args;
    *result = *(const ph_value *)context;
    return PH_OK;
}

ph_status ph__constants_register(const struct ph__constants *constants, const ph_image *image,
                                 ph_sandbox *sandbox) {
    ph_status status = PH_OK;

    for (size_t i = 0; i < constants->count && status == PH_OK; i++) {
        const ph_function *import = ph_image_import(image, i);
        status =
            ph_sandbox_register(sandbox, import->name, &import->signature, answer, &constants->values[i]);
    }
    return status;
}

size_t ph__constants_payload(const struct ph__constants *constants) {
    size_t most = 0;

    for (size_t i = 0; i < constants->count; i++) {
        size_t payload = ph__value_payload(&constants->values[i]);
        if (payload > most)
            most = payload;
    }
    return most;
}

void ph__constants_free(struct ph__constants *constants) {
    for (size_t i = 0; constants->values && i < constants->count; i++)
        ph__value_free(&constants->values[i]);
    free(constants->values);
    free(constants->given);
    *constants = (struct ph__constants){0};
}
