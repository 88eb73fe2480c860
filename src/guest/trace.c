/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The part of tracing that guest-trace.h does not have inline: room in the ring, records with strings, logs,
 * and the spans of calls. Runs in signal handlers too, on whatever stack these have: no buffer here is larger
 * than its record, nothing is static, and nothing of libc is called but memcpy and strlen.
 *
 * A site is only ever on in a sandbox with a ring, so ring and control page are where they always are.
 */
#include "internal.h"

#include "abi/recorder.h"

_Static_assert(PH__TRACE_RING == PH__TRACE_GVA &&
                   PH__TRACE_RING_BYTES == PH__TRACE_RING_GVA - PH__TRACE_GVA &&
                   PH__TRACE_RING_HEAD == offsetof(struct ph__ring, head) &&
                   PH__TRACE_RING_LIMIT == offsetof(struct ph__ring, limit) &&
                   PH__TRACE_RING_END_LIMIT == offsetof(struct ph__ring, end_limit) &&
                   PH__TRACE_RING_MASK == offsetof(struct ph__ring, mask) &&
                   PH__TRACE_RING_CRITICAL == offsetof(struct ph__ring, critical),
               "guest-trace.h");
_Static_assert(PH__TRACE_HEAD_SIZE == 8 * PH__RECORD_WORDS_MIN &&
                   PH__TRACE_END_WORD == PH__RECORD_WORD(PH__RECORD_SPAN_END, 0, 2) &&
                   PH__RECORD_SITE_SHIFT - 3 == 9,
               "guest-trace.h");
_Static_assert(PH__SITE_CODE_SPAN == PH__SITE_SPAN && PH__SITE_CODE_EVENT == PH__SITE_EVENT &&
                   PH__SITE_CODE_LOG == PH__SITE_LOG && PH__SITE_CODE_FIELDS == PH__SITE_FIELDS &&
                   PH__SITE_CODE_COUNTER == PH__SITE_COUNTER &&
                   PH__SITE_CODE_ASYNC_BEGIN == PH__SITE_ASYNC_BEGIN &&
                   PH__SITE_CODE_ASYNC_END == PH__SITE_ASYNC_END,
               "guest-trace.h");
_Static_assert(PH_I64 == 3 && PH_U64 == 4 && PH_F64 == 6 && PH_BOOL == 7 && PH_STR == 8 && PH_BYTES == 9 &&
                   PH_POINTER == 10,
               "guest-trace.h");

/* A value on its way into a record: a (word), or (size) bytes at (data). */
struct item {
    ph_type type;
    uint32_t words; /* that the bytes get */
    uint64_t word;
    const char *data;
    size_t size;
};

static bool is_bytes(const struct item *item) {
    return item->type == PH_STR || item->type == PH_BYTES;
}

static void item_set_word(struct item *item, ph_type type, uint64_t word) {
    *item = (struct item){.type = type, .word = word};
}

static void item_set_bytes(struct item *item, ph_type type, const void *data, size_t size) {
    static const char null[] = "(null)";

    if (!data) {
        size = type == PH_STR ? sizeof null - 1 : 0;
        data = null;
    }
    *item = (struct item){.type = type, .data = data, .size = size};
}

/* ----------------------------------------------------------------- records -- */

static size_t kept_size(const struct item *item) {
    size_t most = item->words * 8ul < PH__TRACE_STRING_MAX ? item->words * 8ul : PH__TRACE_STRING_MAX;
    return item->size < most ? item->size : most;
}

/* Gives each string and all bytes their words, of (room) together. When that is too little, the long ones
 * share what the short ones leave. Returns the words given. */
static uint32_t words_share(struct item *items, unsigned count, uint32_t room) {
    uint32_t total = 0;
    unsigned left = 0;

    for (unsigned i = 0; i < count; i++) {
        size_t size = items[i].size < PH__TRACE_STRING_MAX ? items[i].size : PH__TRACE_STRING_MAX;
        items[i].words = (uint32_t)(size + 7) / 8;
        total += items[i].words;
        left += items[i].words != 0;
    }
    if (total <= room)
        return total;
    /* Each round settles at least one, or is the last. */
    uint32_t share = room / left;
    uint32_t most = 0;
    while (share != most) {
        uint32_t short_words = 0;
        unsigned long_count = 0;
        most = share;
        for (unsigned i = 0; i < count; i++) {
            if (items[i].words <= most)
                short_words += items[i].words;
            else
                long_count++;
        }
        /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): all short would have been no more than (room) */
        share = (room - short_words) / long_count;
    }
    total = 0;
    for (unsigned i = 0; i < count; i++) {
        if (items[i].words > share)
            items[i].words = share;
        total += items[i].words;
    }
    return total;
}

/* Writes a record of (items) behind the (extra_count) words of (extra). The length in (head) is not used. */
static uint64_t items_record(uint64_t head, unsigned extra_count, uint64_t extra, struct item *items,
                             unsigned count) {
    const uint32_t fixed = PH__RECORD_WORDS_MIN + extra_count + count;
    const uint32_t total = fixed + words_share(items, count, PH__RECORD_WORDS_MAX - fixed);
    uint64_t words[total];
    uint64_t *next = words + PH__RECORD_WORDS_MIN;

    words[0] = (head & ~PH__RECORD_LENGTH_MASK) | total;
    if (extra_count)
        *next++ = extra;
    for (unsigned i = 0; i < count; i++) {
        const struct item *item = &items[i];
        if (!is_bytes(item)) {
            *next++ = item->word;
            continue;
        }
        size_t size = kept_size(item);
        *next++ = size | (item->size < UINT32_MAX ? item->size : UINT32_MAX) << 32;
        if (item->words)
            next[item->words - 1] = 0; /* the padding */
        memcpy(next, item->data, size);
        next += item->words;
    }
    return ph__ring_write(words, total, false);
}

uint64_t ph__trace_record(uint64_t head, unsigned extra_count, uint64_t extra, const ph_value *values,
                          unsigned count) {
    struct item items[PH__TRACE_FIELDS_MAX];

    for (unsigned i = 0; i < count; i++) {
        const ph_value *value = &values[i];
        if (value->type == PH_STR)
            item_set_bytes(&items[i], PH_STR, value->str, value->str ? strlen(value->str) : 0);
        else if (value->type == PH_BYTES)
            item_set_bytes(&items[i], PH_BYTES, value->bytes.data, value->bytes.size);
        else
            item_set_word(&items[i], value->type, value->u64);
    }
    return items_record(head, extra_count, extra, items, count);
}

/* -------------------------------------------------------------------- logs -- */

/* The arguments of a log as its format names them. */
struct log {
    const char *at; /* in the format */
    va_list args;
    struct item items[PH__TRACE_FIELDS_MAX];
    unsigned count;
};

enum size {
    SIZE_INT,
    SIZE_LONG, /* also long long, intmax_t, size_t and ptrdiff_t: all have 64 bits */
    SIZE_LONG_DOUBLE,
};

/* Where the next value goes. Beyond the most, to a place that is not recorded. */
static struct item *item_next(struct log *log, struct item *beyond) {
    return log->count < PH__TRACE_FIELDS_MAX ? &log->items[log->count++] : beyond;
}

/* Reads digits or a `*`, whose argument is (*star). Returns the number; -1 for a negative one. */
static int64_t number_take(struct log *log, bool *has_star, int *star) {
    int64_t number = 0;

    *has_star = *log->at == '*';
    if (*has_star) {
        log->at++;
        *star = va_arg(log->args, int);
        return *star < 0 ? -1 : *star;
    }
    for (; *log->at >= '0' && *log->at <= '9'; log->at++)
        if (number < UINT32_MAX)
            number = number * 10 + (*log->at - '0');
    return number;
}

static enum size size_take(struct log *log) {
    enum size size = SIZE_INT;

    for (;; log->at++) {
        switch (*log->at) {
        case 'h':
            break; /* passed as int; the host cuts it */
        case 'l':
        case 'j':
        case 'z':
        case 't':
            size = SIZE_LONG;
            break;
        case 'L':
            size = SIZE_LONG_DOUBLE;
            break;
        default:
            return size;
        }
    }
}

/* Bytes of (text) up to its NUL, at most (most), and none behind them is read. */
static size_t length_within(const char *text, size_t most) {
    size_t length = 0;

    while (length < most && text[length])
        length++;
    return length;
}

static void text_take(struct log *log, struct item *item, enum size size, int64_t precision) {
    const char *text = va_arg(log->args, const char *);

    if (size == SIZE_LONG) /* wide characters stay behind */
        item_set_word(item, PH_POINTER, (uintptr_t)text);
    else if (!text)
        item_set_bytes(item, PH_STR, NULL, 0);
    else
        item_set_bytes(item, PH_STR, text,
                       precision < 0 ? strlen(text) : length_within(text, (size_t)precision));
}

static void double_take(struct log *log, struct item *item, enum size size) {
    double value =
        size == SIZE_LONG_DOUBLE ? (double)va_arg(log->args, long double) : va_arg(log->args, double);
    item_set_word(item, PH_F64, ph__word_f64(value));
}

/* Takes the arguments of one conversion, whose '%' is before log->at. False for one that is none: the
 * arguments behind it cannot be told. Widths, precisions and arguments are values in this order. */
static bool conversion_take(struct log *log) {
    bool width_has_star, precision_has_star = false;
    int width = 0, precision_star = 0;
    int64_t precision = -1;
    struct item beyond;

    while (*log->at == '-' || *log->at == '+' || *log->at == ' ' || *log->at == '#' || *log->at == '0' ||
           *log->at == '\'')
        log->at++;
    number_take(log, &width_has_star, &width);
    if (*log->at == '.') {
        log->at++;
        precision = number_take(log, &precision_has_star, &precision_star);
    }
    enum size size = size_take(log);
    char letter = *log->at;
    if (!letter)
        return false;
    log->at++;
    if (letter == '%')
        return true;
    if (letter == 'n') {
        (void)va_arg(log->args, void *);
        return true;
    }
    if (letter == 'm')
        return true;
    if (width_has_star)
        item_set_word(item_next(log, &beyond), PH_I64, (uint64_t)(int64_t)width);
    if (precision_has_star)
        item_set_word(item_next(log, &beyond), PH_I64, (uint64_t)(int64_t)precision_star);
    struct item *item = item_next(log, &beyond);
    switch (letter) {
    case 'd':
    case 'i':
    case 'c':
        item_set_word(item, PH_I64,
                      (uint64_t)(size == SIZE_INT || letter == 'c' ? va_arg(log->args, int)
                                                                   : va_arg(log->args, int64_t)));
        return true;
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        item_set_word(item, PH_U64,
                      size == SIZE_INT ? va_arg(log->args, unsigned) : va_arg(log->args, uint64_t));
        return true;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        double_take(log, item, size);
        return true;
    case 's':
        text_take(log, item, size, precision);
        return true;
    case 'p':
        item_set_word(item, PH_POINTER, (uintptr_t)va_arg(log->args, void *));
        return true;
    default:
        item_set_word(item, PH_VOID, 0); /* taken back: the host prints the conversion as it stands */
        log->count -= item != &beyond;
        return false;
    }
}

void ph__trace_log(uint64_t head, const char *format, ...) {
    struct log log; /* not all of it zeroed: that would cost as much as the rest */
    uint64_t types = 0;

    log.at = format;
    log.count = 0;
    va_start(log.args, format);
    while (*log.at) {
        if (*log.at++ == '%' && !conversion_take(&log))
            break;
    }
    va_end(log.args);
    for (unsigned i = 0; i < log.count; i++)
        types |= (uint64_t)log.items[i].type << 4 * i;
    items_record(head, 1, types, log.items, log.count);
}

/* ------------------------------------------------------------------- calls -- */

uint64_t ph__trace_call_begin(const struct ph__control *control, uint32_t index) {
    uint64_t words[PH__RECORD_WORDS_MIN] = {0};

    if (!control->trace.ring_size || !control->trace.calls)
        return 0;
    words[0] = PH__RECORD_WORD(PH__RECORD_CALL_BEGIN, index, PH__RECORD_WORDS_MIN);
    return ph__ring_write(words, PH__RECORD_WORDS_MIN, false);
}

void ph__trace_span_end(uint64_t position) {
    const uint64_t words[] = {ph__ring_end_word(position, PH__RECORD_WORDS_MIN), 0};

    if (position)
        ph__ring_write(words, PH__RECORD_WORDS_MIN, true);
}

void ph__trace_start_end(const struct ph__control *control) {
    if (control->trace.ring_size && control->trace.calls)
        ph__trace_span_end(control->trace.first);
}
