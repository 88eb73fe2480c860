/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What everything in the tree is called, and whether the filter wants it. Both are looked up once and
 * remembered until the filter changes: for each site a byte, for all else a small table in which a new name
 * takes the place of an older one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "trace/tree_parts.h"

static const char *const host_names[] = {
    [PH__HOST_CREATE] = "create",   [PH__HOST_LOAD] = "load",         [PH__HOST_START] = "start",
    [PH__HOST_CALL] = "call",       [PH__HOST_RUN] = "run",           [PH__HOST_FUNCTION] = "host",
    [PH__HOST_DESTROY] = "destroy", [PH__HOST_SNAPSHOT] = "snapshot", [PH__HOST_RESTORE] = "restore",
};

const char *ph__errno_name(int number) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
    return strerrorname_np(number);
#else
    (void)number;
    return NULL;
#endif
}

/* (first), a space, and (second), cut to the room that there is. */
static const char *join(struct ph__tree *tree, const char *first, const char *second) {
    size_t length = strlen(first);

    memcpy(tree->name, first, length);
    tree->name[length++] = ' ';
    ph__text_copy_printable(tree->name + length, sizeof tree->name - length, second, strlen(second));
    return tree->name;
}

const char *ph__tree_name_text(struct ph__tree *tree, const struct ph__name *name) {
    switch (name->naming) {
    case PH__NAME_TEXT:
        return name->text;
    case PH__NAME_HOST:
        return name->text ? join(tree, host_names[name->value], name->text) : host_names[name->value];
    case PH__NAME_EXPORT:
        return join(tree, "guest", name->text);
    case PH__NAME_SYSTEM_CALL:
        if (name->text)
            return name->text;
        snprintf(tree->name, sizeof tree->name, "system call %" PRIu64, name->value);
        return tree->name;
    case PH__NAME_FUNCTION:
        if (name->text)
            return name->text;
        snprintf(tree->name, sizeof tree->name, "0x%" PRIx64, name->value);
        return tree->name;
    }
    return "";
}

/* The other form of a name, as the text sink shows it: a filter may be written after what was seen there.
 * NULL when there is none. */
static const char *other_form(const struct ph__name *name, const char *text, char *form, size_t size) {
    if (name->naming == PH__NAME_SYSTEM_CALL && name->text)
        snprintf(form, size, "syscall %s", text);
    else if (name->naming == PH__NAME_SYSTEM_CALL)
        snprintf(form, size, "syscall %" PRIu64, name->value);
    else if (name->naming == PH__NAME_FUNCTION)
        snprintf(form, size, "%s()", text);
    else
        return NULL;
    return form;
}

bool ph__tree_name_wanted(struct ph__tree *tree, const struct ph__name *name, ph_level level) {
    const char *text = ph__tree_name_text(tree, name);
    char form[sizeof tree->name + 16];

    return ph__filter_level(tree->filter, NULL, other_form(name, text, form, sizeof form), text) >= level;
}

static const char *text_find(const struct ph__tree *tree, enum ph__naming naming, uint64_t value) {
    const struct ph__tree_options *options = &tree->options;

    if (naming == PH__NAME_EXPORT)
        return options->exports[value].name;
    if (naming == PH__NAME_SYSTEM_CALL)
        return ph__system_call_name((uint32_t)value);
    return options->symbol ? options->symbol(options->symbol_context, value) : NULL;
}

const struct ph__known_name *ph__tree_name_find(struct ph__tree *tree, enum ph__naming naming,
                                                uint64_t value) {
    /* Functions lie 16 bytes apart, and a multiplication spreads them. */
    uint64_t hash = (value + (uint64_t)naming) * 0x9e3779b97f4a7c15ull;
    struct ph__known_name *known = &tree->known_names[(hash >> 32) % PH__TREE_KNOWN_NAMES];

    if (!known->used || known->name.value != value || known->name.naming != naming) {
        known->name = (struct ph__name){text_find(tree, naming, value), value, naming};
        known->wanted = ph__tree_name_wanted(tree, &known->name, PH_LEVEL_INFO);
        known->used = true;
    }
    return known;
}

bool ph__tree_site_wanted(struct ph__tree *tree, uint32_t number) {
    uint8_t *wanted = &tree->site_wanted[number];

    if (*wanted == PH__WANTED_UNKNOWN)
        *wanted =
            ph__site_wanted(&tree->options.sites[number], tree->filter) ? PH__WANTED_YES : PH__WANTED_NO;
    return *wanted == PH__WANTED_YES;
}

void ph__tree_filter_renew(struct ph__tree *tree, const struct ph__filter *filter, uint64_t version) {
    tree->filter = filter;
    if (tree->version_known && tree->version == version)
        return;
    tree->version = version;
    tree->version_known = true;
    memset(tree->known_names, 0, sizeof tree->known_names);
    if (tree->options.site_count > 0)
        memset(tree->site_wanted, PH__WANTED_UNKNOWN, tree->options.site_count);
}
