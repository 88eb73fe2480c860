/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reads --file (files.h). HOST may hold colons: the last one in front of a slash ends it.
 */
#include "cli/files.h"

#include <stdlib.h>
#include <string.h>

/* Splits one HOST[:GUEST] into (file), whose strings go to (*text). False when GUEST is no absolute path. */
static bool parse(const char *word, ph_file *file, char **text) {
    const char *colon = strrchr(word, ':');
    size_t host = colon ? (size_t)(colon - word) : strlen(word);

    if (host == 0 || (colon && colon[1] != '/'))
        return false;
    file->host_path = *text;
    *text = (char *)mempcpy(*text, word, host) + 1;
    const char *slash = strrchr(file->host_path, '/');
    file->guest_path = *text;
    if (colon)
        *text = stpcpy(*text, colon + 1) + 1;
    else
        *text = stpcpy(stpcpy(*text, "/"), slash ? slash + 1 : file->host_path) + 1;
    return true;
}

int ph__given_files_check(const struct ph__command *command, struct ph__given_files *files,
                          ph_config *config) {
    size_t size = 0;

    if (files->words.count == 0)
        return PH__OPTIONS_GO_ON;
    for (size_t i = 0; i < files->words.count; i++)
        size += 2 * strlen(files->words.list[i]) + sizeof "/" + 1; /* at most, when the name is all of it */
    files->list = calloc(files->words.count, sizeof *files->list);
    files->text = calloc(size, 1);
    if (!files->list || !files->text) {
        ph__complain("no memory for the options");
        return PH__COMMAND_BROKEN;
    }
    char *text = files->text;
    for (size_t i = 0; i < files->words.count; i++)
        if (!parse(files->words.list[i], &files->list[i], &text))
            return ph__usage_error(command, "--file wants HOST or HOST:/PATH, not '%s'",
                                   files->words.list[i]);
    config->files = files->list;
    config->file_count = files->words.count;
    return PH__OPTIONS_GO_ON;
}

void ph__given_files_free(struct ph__given_files *files) {
    free(files->list);
    free(files->text);
    ph__words_free(&files->words);
}
