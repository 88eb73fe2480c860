/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Counting (counts.h): a few additions at the end of each call.
 */
#include "metrics/counts.h"

#include "abi/hot.h"
#include "metrics/table.h"

__extension__ typedef unsigned __int128 wide;

PH__HOT void ph__count_cycles(struct ph__counts *counts, enum ph__cell histogram, uint64_t cycles) {
    unsigned bucket = 0;

    if (!counts)
        return;
    const uint64_t ns = (uint64_t)((wide)cycles * counts->cycle_ns >> 32);
    while (bucket < PH_METRIC_BUCKETS - 1 && ns > ph__metric_bounds_ns[bucket])
        bucket++;
    ph__count(counts, histogram + bucket, 1);
    ph__count(counts, histogram + PH__HISTOGRAM_SUM, ns);
}

PH__HOT void ph__count_since(struct ph__counts *counts, enum ph__cell histogram, uint64_t begin) {
    if (!counts)
        return;
    const uint64_t now = __rdtsc();
    /* The counters of two processors may differ by a little. */
    ph__count_cycles(counts, histogram, now > begin ? now - begin : 0);
}

PH__COLD unsigned ph__count_error_cell(ph_status status) {
    switch (status) {
#define PH__CASE(name, number, kind, message)                                                                \
    case PH_##name:                                                                                          \
        return PH__CELL_ERRORS + PH__STATUS_##name;
        PH_STATUS_MAP(PH__CASE)
#undef PH__CASE
    }
    return PH__CELL_ERRORS + PH__STATUS_E_SYSTEM; /* there is no other status */
}

PH__COLD void ph__count_error(struct ph__counts *counts, ph_status status) {
    ph__count(counts, ph__count_error_cell(status), 1);
}

PH__HOT void ph__count_end(struct ph__counts *counts, enum ph__cell histogram, uint64_t begin, uint64_t guest,
                           ph_status status) {
    if (!counts)
        return;
    if (status != PH_OK)
        ph__count_error(counts, status);
    /* The caller's arguments: the guest was not entered. */
    if (status == PH_E_TOO_LARGE)
        return;
    ph__count_cycles(counts, PH__CELL_GUEST, guest);
    ph__count_since(counts, histogram, begin);
}
