/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a record that guest-trace.h writes inline comes to when the ring has no room for it. Called by
 * room_call.S, which keeps no vector registers, so none are used here.
 */
#pragma GCC target("general-regs-only")

#include "internal.h"

#include "abi/recorder.h"

bool ph__trace_room(uint64_t bytes, uint64_t limit) {
    return ph__ring_room(bytes, limit == offsetof(struct ph__ring, end_limit));
}
