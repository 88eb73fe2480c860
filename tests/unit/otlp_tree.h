/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Requests of OTLP as trees, whichever encoding they came in: JSON as jansson has it. Protocol buffers are
 * read by protoc (protos/otlp.proto), and become what they should be as JSON, so that the two are compared.
 */
#ifndef OTLP_TREE_H
#define OTLP_TREE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "export/otlp_batch.h"

/* Settings with the defaults of OpenTelemetry, and a service of the name "test". */
struct ph__otlp_settings otlp_settings(void);

/* A batch in each encoding. */
struct otlp_pair {
    struct ph__otlp_settings settings;
    ph_export_signal signal;
    struct ph__otlp_batch *batches[2]; /* by ph__otlp_encoding */
};

void otlp_open(struct otlp_pair *pair, ph_export_signal signal, const struct ph__otlp_settings *settings);

/* To both, which have to have room. */
void otlp_span(struct otlp_pair *pair, const ph_trace_span *span);
void otlp_event(struct otlp_pair *pair, const ph_trace_event *event);
void otlp_counter(struct otlp_pair *pair, const ph_trace_counter *counter);
void otlp_metric(struct otlp_pair *pair, const ph_metric *metric, uint64_t time_ns);

/* Takes both, which have to say the same. The tree is the caller's. */
json_t *otlp_take(struct otlp_pair *pair);
void otlp_close(struct otlp_pair *pair);

/* otlp_take and otlp_close. */
json_t *otlp_finish(struct otlp_pair *pair);

/* A tree from each encoding. */
json_t *otlp_tree_of_json(const uint8_t *bytes, size_t size);
json_t *otlp_tree_of_protobuf(ph_export_signal signal, const uint8_t *bytes, size_t size);

/* Fails the test with both trees unless they are equal. */
void assert_same_tree(const json_t *tree, const json_t *expected);

/* The items of the scope with the name (scope), "pinhole.host" or "pinhole.guest": an array; NULL without. */
json_t *otlp_items(const json_t *tree, const char *scope);

/* The value of the attribute (name) in (item): an AnyValue; NULL without. Fails when there are two. */
json_t *otlp_attribute(const json_t *item, const char *name);

/* Fails unless (item) has the attribute with the value (expected), an AnyValue as JSON. */
void assert_attribute(const json_t *item, const char *name, const char *expected);

#endif
