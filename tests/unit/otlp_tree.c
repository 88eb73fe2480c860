/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Requests of OTLP as trees (otlp_tree.h).
 */
#include "unit/otlp_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct ph__otlp_settings otlp_settings(void) {
    static char name[] = "service.name", value[] = "test";
    static struct ph__otlp_pair resource[] = {{name, value}};

    return (struct ph__otlp_settings){
        .resource = {resource, 1},
        .span_attributes_max = 128,
        .span_value_bytes_max = UINT32_MAX,
        .span_events_max = 128,
        .event_attributes_max = 128,
        .log_attributes_max = 128,
        .log_value_bytes_max = UINT32_MAX,
        .span_batch_max = 512,
        .log_batch_max = 512,
        .batch_bytes = 4u << 20,
    };
}

/* ---- protocol buffers, as protoc prints them ----------------------------------------------------------- */

static bool is_one_of(const char *name, const char *const *list) {
    for (; *list; list++)
        if (strcmp(name, *list) == 0)
            return true;
    return false;
}

static bool is_repeated(const char *name) {
    static const char *const names[] = {
        "resourceSpans", "resourceLogs", "resourceMetrics", "scopeSpans",     "scopeLogs",
        "scopeMetrics",  "spans",        "logRecords",      "metrics",        "attributes",
        "events",        "dataPoints",   "bucketCounts",    "explicitBounds", NULL};
    return is_one_of(name, names);
}

static bool is_long(const char *name) {
    static const char *const names[] = {"intValue", "asInt", "count", "bucketCounts", NULL};

    return is_one_of(name, names) || strstr(name, "UnixNano");
}

static bool is_double(const char *name) {
    static const char *const names[] = {"doubleValue", "asDouble", "sum", "explicitBounds", NULL};

    return is_one_of(name, names);
}

/* The name of a field in JSON. */
static void camel_case(const char *from, size_t length, char *to) {
    for (size_t i = 0; i < length; i++)
        if (from[i] == '_' && i + 1 < length)
            *to++ = (char)(from[++i] - 'a' + 'A');
        else
            *to++ = from[i];
    *to = 0;
}

/* A quoted text of protoc's at (*at): bytes in (*bytes), which is to be freed. */
static size_t unquote(const char **at, char **bytes) {
    const char *from = *at + 1;
    size_t used = 0;

    char *to = malloc(strlen(from) + 1);
    assert_non_null(to);
    while (*from != '"') {
        if (*from != '\\') {
            to[used++] = *from++;
        } else if (from[1] >= '0' && from[1] <= '7') {
            to[used++] = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            to[used++] = (char)(from[1] == 'n'   ? '\n'
                                : from[1] == 'r' ? '\r'
                                : from[1] == 't' ? '\t'
                                                 : from[1]);
            from += 2;
        }
    }
    to[used] = 0;
    *at = from + 1;
    *bytes = to;
    return used;
}

static json_t *hex_of(const uint8_t *bytes, size_t size) {
    char text[65];

    assert_true(size <= 32);
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[2 * size] = 0;
    return json_string(text);
}

static json_t *base64_of(const uint8_t *bytes, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t used = 0;

    char *text = malloc(size / 3 * 4 + 5);
    assert_non_null(text);
    for (size_t i = 0; i < size; i += 3) {
        unsigned bits = (unsigned)bytes[i] << 16;
        bits |= i + 1 < size ? (unsigned)bytes[i + 1] << 8 : 0;
        bits |= i + 2 < size ? bytes[i + 2] : 0;
        for (unsigned j = 0; j < 4; j++)
            text[used++] = i + j > size ? '=' : digits[bits >> (18 - 6 * j) & 63];
    }
    json_t *value = json_stringn(text, used);
    free(text);
    return value;
}

static json_t *scalar_of(const char *name, const char **at) {
    json_t *value = NULL;

    if (**at == '"') {
        char *bytes;
        size_t size = unquote(at, &bytes);
        if (strcmp(name, "bytesValue") == 0)
            value = base64_of((uint8_t *)bytes, size);
        else if (strstr(name, "traceId") || strstr(name, "spanId") || strstr(name, "SpanId"))
            value = hex_of((uint8_t *)bytes, size);
        else
            value = json_stringn(bytes, size);
        free(bytes);
        assert_non_null(value); /* it is UTF-8 */
        return value;
    }
    const size_t length = strcspn(*at, "\n");
    char *word = strndup(*at, length);
    assert_non_null(word);
    *at += length;
    if (is_double(name) && strspn(word, "-0123456789.e+") < length)
        value = json_string(strcmp(word, "nan") == 0 ? "NaN" : *word == '-' ? "-Infinity" : "Infinity");
    else if (is_double(name))
        value = json_real(strtod(word, NULL));
    else if (is_long(name))
        value = json_string(word);
    else if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
        value = json_boolean(*word == 't');
    else
        value = json_integer(strtoll(word, NULL, 10));
    free(word);
    return value;
}

/* The fields at (*at), up to the end of their message. What the schema does not have has a number for its
 * name. */
static json_t *message_of(const char **at) {
    json_t *message = json_object();

    while (*(*at += strspn(*at, " \n")) && **at != '}') {
        const size_t length = strcspn(*at, ": ");
        char name[64];
        assert_true(length < sizeof name && **at >= 'a' && **at <= 'z');
        camel_case(*at, length, name);
        *at += length;
        *at += strspn(*at, ": ");
        json_t *value = NULL;
        if (**at == '{') {
            (*at)++;
            value = message_of(at);
            assert_int_equal(**at, '}');
            (*at)++;
        } else {
            value = scalar_of(name, at);
        }
        if (is_repeated(name)) {
            if (!json_object_get(message, name))
                json_object_set_new(message, name, json_array());
            json_array_append_new(json_object_get(message, name), value);
        } else {
            assert_null(json_object_get(message, name));
            json_object_set_new(message, name, value);
        }
    }
    return message;
}

json_t *otlp_tree_of_protobuf(ph_export_signal signal, const uint8_t *bytes, size_t size) {
    static const char *const types[] = {"TracesData", "LogsData", "MetricsData"};
    char path[] = "/tmp/pinhole-otlp-XXXXXX", command[512];
    char *text = NULL;
    size_t capacity = 0;

    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (size_t done = 0; done < size;) {
        ssize_t written = write(fd, bytes + done, size - done);
        assert_true(written > 0);
        done += (size_t)written;
    }
    close(fd);
    snprintf(command, sizeof command, "protoc -I '%s' --decode=otlp.%s otlp.proto <'%s'",
             getenv("PH_TEST_PROTOS"), types[signal], path);
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): of paths of our own */
    assert_non_null(pipe);
    ssize_t length = getdelim(&text, &capacity, 0, pipe);
    assert_int_equal(pclose(pipe), 0);
    unlink(path);
    const char *at = length > 0 ? text : "";
    json_t *tree = message_of(&at);
    assert_int_equal(*at, 0);
    free(text);
    return tree;
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

/* A list without elements is the same as none. */
static void drop_empty_lists(json_t *value) {
    const char *key;
    json_t *each;
    size_t i;
    void *next;

    json_array_foreach(value, i, each) {
        drop_empty_lists(each);
    }
    json_object_foreach_safe(value, next, key, each) {
        if (json_is_array(each) && !json_array_size(each))
            json_object_del(value, key);
        else
            drop_empty_lists(each);
    }
}

json_t *otlp_tree_of_json(const uint8_t *bytes, size_t size) {
    json_error_t error;

    json_t *tree = json_loadb((const char *)bytes, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!tree)
        fail_msg("%d: %s in %.*s", error.position, error.text, (int)size, (const char *)bytes);
    assert_int_equal(bytes[size - 1], '\n');
    assert_null(memchr(bytes, '\n', size - 1));
    drop_empty_lists(tree);
    return tree;
}

void assert_same_tree(const json_t *tree, const json_t *expected) {
    if (json_equal(tree, expected))
        return;
    char *first = json_dumps(tree, JSON_INDENT(1) | JSON_SORT_KEYS);
    char *second = json_dumps(expected, JSON_INDENT(1) | JSON_SORT_KEYS);
    fail_msg("%s\nis not\n%s", first, second);
}

/* ---- batches ------------------------------------------------------------------------------------------- */

void otlp_open(struct otlp_pair *pair, ph_export_signal signal, const struct ph__otlp_settings *settings) {
    *pair = (struct otlp_pair){.settings = settings ? *settings : otlp_settings(), .signal = signal};
    for (enum ph__otlp_encoding each = PH__OTLP_PROTOBUF; each <= PH__OTLP_JSON; each++) {
        pair->batches[each] = ph__otlp_batch_create(signal, each, &pair->settings);
        assert_non_null(pair->batches[each]);
    }
}

void otlp_span(struct otlp_pair *pair, const ph_trace_span *span) {
    for (unsigned i = 0; i < 2; i++)
        assert_true(ph__otlp_batch_span(pair->batches[i], span));
}

void otlp_event(struct otlp_pair *pair, const ph_trace_event *event) {
    for (unsigned i = 0; i < 2; i++)
        assert_true(ph__otlp_batch_event(pair->batches[i], event));
}

void otlp_counter(struct otlp_pair *pair, const ph_trace_counter *counter) {
    for (unsigned i = 0; i < 2; i++)
        assert_true(ph__otlp_batch_counter(pair->batches[i], counter));
}

void otlp_metric(struct otlp_pair *pair, const ph_metric *metric, uint64_t time_ns) {
    for (unsigned i = 0; i < 2; i++)
        assert_true(ph__otlp_batch_metric(pair->batches[i], metric, time_ns));
}

json_t *otlp_take(struct otlp_pair *pair) {
    json_t *trees[2];

    assert_int_equal(ph__otlp_batch_items(pair->batches[0]), ph__otlp_batch_items(pair->batches[1]));
    for (unsigned i = 0; i < 2; i++) {
        size_t size = 0;
        uint8_t *bytes = ph__otlp_batch_take(pair->batches[i], &size);
        assert_non_null(bytes);
        assert_int_equal(ph__otlp_batch_items(pair->batches[i]), 0);
        trees[i] = i == PH__OTLP_JSON ? otlp_tree_of_json(bytes, size)
                                      : otlp_tree_of_protobuf(pair->signal, bytes, size);
        free(bytes);
    }
    assert_same_tree(trees[PH__OTLP_JSON], trees[PH__OTLP_PROTOBUF]);
    json_decref(trees[PH__OTLP_PROTOBUF]);
    return trees[PH__OTLP_JSON];
}

void otlp_close(struct otlp_pair *pair) {
    for (unsigned i = 0; i < 2; i++)
        ph__otlp_batch_destroy(pair->batches[i]);
}

json_t *otlp_finish(struct otlp_pair *pair) {
    json_t *tree = otlp_take(pair);

    otlp_close(pair);
    return tree;
}

/* ---- looking ------------------------------------------------------------------------------------------- */

/* The first member of (object) that is a list. */
static json_t *list_of(const json_t *object) {
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value) {
        if (json_is_array(value))
            return value;
    }
    return NULL;
}

json_t *otlp_items(const json_t *tree, const char *scope) {
    json_t *each;
    size_t i;

    json_t *resources = list_of(tree);
    assert_int_equal(json_array_size(resources), 1);
    json_array_foreach(list_of(json_array_get(resources, 0)), i, each) {
        const json_t *name = json_object_get(json_object_get(each, "scope"), "name");
        if (strcmp(json_string_value(name), scope) == 0)
            return list_of(each);
    }
    return NULL;
}

json_t *otlp_attribute(const json_t *item, const char *name) {
    json_t *each, *found = NULL;
    size_t i;

    json_array_foreach(json_object_get(item, "attributes"), i, each) {
        if (strcmp(json_string_value(json_object_get(each, "key")), name) == 0) {
            assert_null(found);
            found = json_object_get(each, "value");
        }
    }
    return found;
}

void assert_attribute(const json_t *item, const char *name, const char *expected) {
    const json_t *value = otlp_attribute(item, name);

    if (!value)
        fail_msg("there is no attribute %s in %s", name, json_dumps(item, JSON_INDENT(1)));
    json_t *tree = json_loads(expected, 0, NULL);
    assert_non_null(tree);
    assert_same_tree(value, tree);
    json_decref(tree);
}
