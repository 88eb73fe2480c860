/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Takes options off a command line (options.h).
 */
#include "cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm/backend.h"

static ph_backend chosen = PH_BACKEND_AUTO;

bool ph__backend_parse(const char *name) {
    static const struct {
        const char *name;
        ph_backend backend;
    } backends[] = {{"auto", PH_BACKEND_AUTO}, {"kvm", PH_BACKEND_KVM}, {"soft", PH_BACKEND_SOFT}};

    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++)
        if (strcmp(name, backends[i].name) == 0) {
            chosen = backends[i].backend;
            return true;
        }
    return false;
}

static void say(void *context, const char *message) {
    (void)context;
    ph__complain("%s", message);
}

ph_backend ph__command_backend(void) {
    const struct ph__backend *found;

    if (chosen != PH_BACKEND_AUTO || ph__backend_find(PH_BACKEND_AUTO, say, NULL, &found, NULL) != PH_OK)
        return chosen; /* making the sandbox says what is wrong */
    return found == &ph__backend_kvm ? PH_BACKEND_KVM : PH_BACKEND_SOFT;
}

void ph__words_free(struct ph__words *words) {
    free(words->list);
    *words = (struct ph__words){0};
}

static bool add_word(struct ph__words *words, const char *word) {
    const char **list = realloc(words->list, (words->count + 2) * sizeof *list);

    if (!list)
        return false;
    list[words->count++] = word;
    list[words->count] = NULL;
    words->list = list;
    return true;
}

/* Stores (text) where (option) wants it. Returns PH__OPTIONS_GO_ON or an exit status. */
static int store(const struct ph__command *command, const struct ph__option *option, const char *text) {
    switch (option->kind) {
    case PH__OPTION_SIZE:
        if (ph__size_parse(text, option->value))
            return PH__OPTIONS_GO_ON;
        return ph__usage_error(command, "%s wants a size such as 512K, 64M or 2G, not '%s'", option->name,
                               text);
    case PH__OPTION_DURATION:
        if (ph__duration_parse(text, option->value))
            return PH__OPTIONS_GO_ON;
        return ph__usage_error(command,
                               "%s wants a number with its unit, such as 500us, 20ms, 1.5s or 2m, not '%s'",
                               option->name, text);
    case PH__OPTION_COUNT:
        if (ph__count_parse(text, option->value))
            return PH__OPTIONS_GO_ON;
        return ph__usage_error(command, "%s wants a whole number of at least 1, not '%s'", option->name,
                               text);
    case PH__OPTION_WORD:
        *(const char **)option->value = text;
        return PH__OPTIONS_GO_ON;
    case PH__OPTION_WORDS:
        if (add_word(option->value, text))
            return PH__OPTIONS_GO_ON;
        ph__complain("no memory for the options");
        return PH__COMMAND_BROKEN;
    default:
        *(bool *)option->value = true;
        return PH__OPTIONS_GO_ON;
    }
}

static int store_backend(const struct ph__command *command, const char *text) {
    if (ph__backend_parse(text))
        return PH__OPTIONS_GO_ON;
    return ph__usage_error(command, "there is no backend '%s'; --backend takes auto, kvm or soft", text);
}

/* Whether (word) is the option (name), alone or with "=VALUE", to which (*value) then points. */
static bool is_option(const char *word, const char *name, const char **value) {
    size_t length = strlen(name);

    if (strncmp(word, name, length) != 0 || (word[length] && word[length] != '='))
        return false;
    *value = word[length] ? word + length + 1 : NULL;
    return true;
}

static const char *take_word(struct ph__line *line) {
    line->count--;
    return *line->words++;
}

/* Of an option that has no value of one word: (value) is what stood behind its sign, by mistake. */
static int take_alone(const struct ph__command *command, struct ph__line *line,
                      const struct ph__option *option, const char *value) {
    if (value)
        return ph__usage_error(command, "%s takes no value", option->name);
    if (option->kind == PH__OPTION_FLAG)
        return store(command, option, NULL);
    if (line->count == 0)
        return ph__usage_error(command, "%s needs a value", option->name);
    *(struct ph__line *)option->value = *line;
    *line = (struct ph__line){line->words + line->count, 0};
    return PH__OPTIONS_GO_ON;
}

static int take_value(const struct ph__command *command, struct ph__line *line,
                      const struct ph__option *option, const char *value) {
    bool is_backend = !option->value;

    if (!is_backend && (option->kind == PH__OPTION_FLAG || option->kind == PH__OPTION_REST))
        return take_alone(command, line, option, value);
    if (!value) {
        if (line->count == 0)
            return ph__usage_error(command, "%s needs a value", option->name);
        value = take_word(line);
    }
    return is_backend ? store_backend(command, value) : store(command, option, value);
}

static const struct ph__option *find(const struct ph__option *options, const char *word, const char **value) {
    static const struct ph__option backend = {"--backend", PH__OPTION_WORDS, NULL};

    for (const struct ph__option *option = options; option->name; option++)
        if (is_option(word, option->name, value))
            return option;
    return is_option(word, backend.name, value) ? &backend : NULL;
}

bool ph__option_is_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int print_help(const struct ph__command *command) {
    fputs(command->help, stdout);
    return ph__finish_output(PH__COMMAND_OK);
}

int ph__options_parse(const struct ph__command *command, const struct ph__option *options,
                      struct ph__line *line) {
    /* A lone "-" is no option. */
    while (line->count > 0 && line->words[0][0] == '-' && line->words[0][1]) {
        const char *word = take_word(line);
        const char *value = NULL;
        if (strcmp(word, "--") == 0)
            break;
        if (ph__option_is_help(word))
            return print_help(command);
        const struct ph__option *option = find(options, word, &value);
        if (!option)
            return ph__usage_error(command, "unknown option %s", word);
        int status = take_value(command, line, option, value);
        if (status != PH__OPTIONS_GO_ON)
            return status;
    }
    return PH__OPTIONS_GO_ON;
}
