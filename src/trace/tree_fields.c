/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Fields of spans, between the record that brought them and the end of the span. Each record's are copied
 * into one node, texts included. All nodes of a tree together are bounded, and so are the fields of a span:
 * what is more is left out, and the span says how many.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/tree_parts.h"

/* Some nodes of this size are kept for the next span: four numbers fit, and hot spans have few fields. */
#define SMALL_SIZE 256u
#define SMALL_KEPT 64u

static const char *const argument_names[] = {"arg1", "arg2", "arg3", "arg4",  "arg5",  "arg6",
                                             "arg7", "arg8", "arg9", "arg10", "arg11", "arg12"};

ph_field ph__tree_field_number(const char *name, ph_type type, uint64_t number) {
    return (ph_field){.name = name, .value = {.type = type, .u64 = number}};
}

ph_field ph__tree_field_text(const char *name, const char *text) {
    size_t length = strlen(text);

    return (ph_field){
        .name = name, .value = {.type = PH_STR, .str = text}, .size = length, .full_size = length};
}

static struct ph__field_node *node_new(struct ph__tree *tree, size_t size) {
    struct ph__field_node *node = tree->free_nodes;

    if (size <= SMALL_SIZE) {
        size = SMALL_SIZE;
        if (node) {
            tree->free_nodes = node->next;
            tree->free_count--;
            return node;
        }
    }
    if (tree->field_bytes + size > PH__TREE_FIELD_BYTES_MAX)
        return NULL;
    node = malloc(size);
    if (!node)
        return NULL;
    tree->field_bytes += size;
    node->size = (uint32_t)size;
    return node;
}

static void node_free(struct ph__tree *tree, struct ph__field_node *node) {
    if (node->size == SMALL_SIZE && tree->free_count < SMALL_KEPT) {
        node->next = tree->free_nodes;
        tree->free_nodes = node;
        tree->free_count++;
        return;
    }
    tree->field_bytes -= node->size;
    free(node);
}

/* How many bytes a field has outside itself. */
static size_t text_size(const ph_field *field) {
    if (field->value.type == PH_STR)
        return field->size + 1;
    return field->value.type == PH_BYTES ? field->size : 0;
}

/* Copies (field)'s bytes to (text), and returns where they end. */
static char *text_copy(ph_field *field, char *text) {
    if (field->value.type == PH_STR) {
        memcpy(text, field->value.str, field->size + 1);
        field->value.str = text;
    } else if (field->value.type == PH_BYTES) {
        if (field->size > 0)
            memcpy(text, field->value.bytes.data, field->size);
        field->value.bytes.data = text;
    }
    return text + text_size(field);
}

void ph__tree_fields_add(struct ph__tree *tree, struct ph__fields *list, const ph_field *fields,
                         uint32_t count) {
    uint32_t kept = count;
    size_t texts = 0;

    if (kept > PH__TREE_FIELDS_MAX - list->count)
        kept = PH__TREE_FIELDS_MAX - list->count;
    for (uint32_t i = 0; i < kept; i++)
        texts += text_size(&fields[i]);
    struct ph__field_node *node =
        kept > 0 ? node_new(tree, sizeof *node + kept * sizeof *fields + texts) : NULL;
    if (!node) {
        list->dropped += count;
        return;
    }
    memcpy(node->fields, fields, kept * sizeof *fields);
    char *text = (char *)&node->fields[kept];
    if (texts > 0)
        for (uint32_t i = 0; i < kept; i++)
            text = text_copy(&node->fields[i], text);
    node->next = NULL;
    node->count = kept;
    *(list->first ? &list->last->next : &list->first) = node;
    list->last = node;
    list->count += kept;
    list->dropped += count - kept;
}

const ph_field *ph__tree_fields_join(struct ph__tree *tree, const struct ph__fields *list, size_t *count) {
    size_t joined = 0;

    *count = list->count;
    if (list->dropped == 0 && (!list->first || !list->first->next))
        return list->first ? list->first->fields : NULL;
    for (const struct ph__field_node *node = list->first; node; node = node->next) {
        memcpy(&tree->all_fields[joined], node->fields, node->count * sizeof node->fields[0]);
        joined += node->count;
    }
    if (list->dropped > 0)
        tree->all_fields[joined++] = ph__tree_field_number("fields_dropped", PH_U64, list->dropped);
    *count = joined;
    return tree->all_fields;
}

void ph__tree_fields_free(struct ph__tree *tree, struct ph__fields *list) {
    while (list->first) {
        struct ph__field_node *node = list->first;
        list->first = node->next;
        node_free(tree, node);
    }
    *list = (struct ph__fields){0};
}

void ph__tree_fields_end(struct ph__tree *tree) {
    while (tree->free_nodes) {
        struct ph__field_node *node = tree->free_nodes;
        tree->free_nodes = node->next;
        free(node);
    }
}

bool ph__tree_fields_read(struct ph__tree *tree, const struct ph__site *site, const uint64_t *words,
                          uint32_t count) {
    if (!ph__record_values(words, count, site->types, site->count, tree->fields, tree->text))
        return false;
    for (uint32_t i = 0; i < site->count; i++)
        tree->fields[i].name = site->fields[i];
    return true;
}

void ph__tree_arguments_name(struct ph__tree *tree, uint32_t count) {
    for (uint32_t i = 0; i < count && i < sizeof argument_names / sizeof argument_names[0]; i++)
        tree->fields[i].name = argument_names[i];
}
