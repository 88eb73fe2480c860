/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the tests of hostile guests share: a guest in a sandbox of its own, one lie, and the proof that the
 * host is none the worse for it. After each lie the status, the state and the error must agree, a poisoned
 * sandbox must refuse the next call, nothing that only ring 0 or the host may write has changed, and a fresh
 * sandbox of the same image answers an honest call.
 *
 * Every call has a time-out, so no guest can hang the suite.
 */
#ifndef PH_TESTS_HOSTILE_H
#define PH_TESTS_HOSTILE_H

#include "support/support.h"

#include "abi/doorbell.h"
#include "abi/frame.h"
#include "abi/layout.h"
#include "abi/monitor.h"
#include "sandbox/sandbox.h"
#include "vm/boot.h"

struct hostile;

/* One import's host function: its context. */
struct hostile_import {
    struct hostile *hostile;
    const ph_function *function;
};
#define HOSTILE_IMPORTS_MAX 8u

/* A hostile guest. */
struct hostile {
    ph_image *image;
    ph_sandbox *sandbox;
    ph_status last;         /* what the last call or start returned */
    unsigned host_calls;    /* how often a host function ran */
    bool may_change_tables; /* the test asks for changes of protection */
    const char *honest; /* an export bool(void) that is true when all is well: `honest` in hostile guests */
    bool brief;         /* one of very many: without the fresh sandbox afterwards */
    uint8_t *before;    /* memory that only ring 0 and the host may write, as it was */
    size_t page_tables_size; /* at the end of (before) */
    struct hostile_import imports[HOSTILE_IMPORTS_MAX];
};

/* Makes and starts a sandbox of (guest), with a host function for each import. (config) may be NULL. */
void hostile_begin(struct hostile *hostile, const char *guest, const ph_config *config);

/* The same up to the start, whose status is returned. */
ph_status hostile_begin_start(struct hostile *hostile, const char *guest, const ph_config *config);

/* Calls an export by name and returns the status. */
ph_status hostile_call(struct hostile *hostile, const char *name, const ph_value *args, size_t count,
                       ph_value *result);

/* Checks that the host is none the worse, and destroys the sandbox. (what) is shown on failure. */
void hostile_end(struct hostile *hostile, const char *what);

/* One lie in a sandbox of its own: calls (name) of (guest) and expects (wanted). With (error) not NULL it
 * gets the sandbox's error. */
void hostile_lie(const char *guest, const char *name, const ph_value *args, size_t count, ph_status wanted,
                 ph_error *error);

/* Whether to leave out this row of a long table: never, but on machines so slow that PH_TEST_SCALE is set. */
bool hostile_skip(void);

/* Fails the test unless (got) is (wanted), naming (what) and giving the sandbox's message. */
void hostile_expect(const struct hostile *hostile, ph_status got, ph_status wanted, const char *what);

/* Whether (status) is one of those in which the guest came to an end: the only ones that a hostile guest may
 * bring about besides success and an error of its own. */
bool hostile_is_end(ph_status status);

/* The host address of a GPA of the sandbox. */
uint8_t *hostile_memory(const struct hostile *hostile, uint64_t gpa);

/* A random number generator, as in the guests (hostile.h there). (state) is never 0. */
uint64_t hostile_random(uint64_t *state);

/* Values. */
#define I32(x) ((ph_value){.type = PH_I32, .i32 = (x)})
#define U32(x) ((ph_value){.type = PH_U32, .u32 = (x)})
#define U64(x) ((ph_value){.type = PH_U64, .u64 = (x)})
#define BYTES(d, n) ((ph_value){.type = PH_BYTES, .bytes = {(d), (n)}})
#define ARGS(...) (const ph_value[]){__VA_ARGS__}, sizeof((const ph_value[]){__VA_ARGS__}) / sizeof(ph_value)
#define NO_ARGS NULL, 0

#endif
