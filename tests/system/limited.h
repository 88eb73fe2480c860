/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A sandbox with limits and a host function `visit`: what tests of limits begin with.
 */
#ifndef PH_TESTS_LIMITED_H
#define PH_TESTS_LIMITED_H

#include "support/support.h"

#define MS 1000000ull

/* A host function that takes its time. */
struct visitor {
    ph_sandbox *sandbox;
    unsigned visits;
    unsigned sleep_ms;
    bool marks;      /* sets the timer's mark, as if it had come too late for the guest */
    bool interrupts; /* and ph_interrupt, before all else */
};

struct limited {
    struct visitor visitor;
    ph_image *image;
    ph_sandbox *sandbox;
    uint64_t output; /* bytes taken */
    uint64_t most;   /* bytes that one write takes; 0 is all */
};

#define U32(x) ((ph_value){.type = PH_U32, .u32 = (x)})
#define ARGS(...) (const ph_value[]){__VA_ARGS__}, sizeof((const ph_value[]){__VA_ARGS__}) / sizeof(ph_value)

/* Makes a sandbox of (guest) with (config), which has the limits and is given an output function
 * unless it keeps output. */
void limited_create(struct limited *limited, const char *guest, ph_config *config);

/* The same, of the guest `limits`, and starts it. */
void limited_begin(struct limited *limited, ph_config *config);

void limited_end(struct limited *limited);

ph_status limited_call(struct limited *limited, const char *name, const ph_value *args, size_t count);

/* Fails the test unless a call returned (wanted), and the sandbox is as it should be after that. */
void limited_expect(struct limited *limited, ph_status got, ph_status wanted);

/* The same for a guest that is at its end, says why in (message), and serves nothing more. */
void limited_expect_ended(struct limited *limited, ph_status got, ph_status status, const char *message);

ph_call_stats limited_stats(const struct limited *limited);

void limited_sleep_ms(unsigned ms);

/* Sets the timer's mark. */
void limited_mark(ph_sandbox *sandbox);

#endif
