/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A guest that traces where C++ has places that C does not: inline functions, templates, lambdas, members,
 * static constructors, and blocks that an exception leaves.
 */
#include <stdexcept>
#include <string>
#include <vector>

#include <pinhole/guest.h>

namespace {

inline int64_t in_line(int64_t n) {
    PH_SPAN("inline", ph_i64("n", n));
    return n + 1;
}

template <class T> T twice(T value) {
    PH_SPAN("template", ph_f64("value", static_cast<double>(value)));
    PH_LOG_INFO("twice %g", static_cast<double>(value));
    return value + value;
}

struct counted {
    int64_t value;

    counted(int64_t initial) : value(initial) {
        PH_EVENT("constructed", ph_i64("value", value));
    }
    ~counted() {
        PH_EVENT("destroyed", ph_i64("value", value));
    }
    int64_t add(int64_t by) {
        PH_SPAN_AS(span, PH_LEVEL_INFO, "member", ph_i64("by", by));
        value += by;
        PH_SPAN_FIELDS(span, ph_i64("value", value));
        return value;
    }
};

/* In a static constructor. */
counted global(100);

int64_t shapes() {
    PH_SPAN("shapes");
    auto lambda = [](int64_t x) {
        PH_SPAN("lambda", ph_i64("x", x));
        return 3 * x;
    };
    auto generic = [](auto x) {
        PH_EVENT("generic", ph_i64("x", x));
        return x;
    };
    std::string text = "from a string";
    PH_EVENT("text", ph_str("text", text.c_str()), ph_bytes("bytes", text.data(), text.size()));
    return in_line(1) + twice<int32_t>(2) + static_cast<int64_t>(twice(1.5)) + lambda(3) +
           generic(int64_t{4}) + global.add(5);
}
PH_EXPORT(shapes, PH_I64);

void throw_level(int64_t depth) {
    PH_SPAN("level", ph_i64("depth", depth));
    counted local(depth);
    if (depth == 0)
        throw std::runtime_error("thrown");
    throw_level(depth - 1);
}

/* The spans that the exception leaves end on its way. */
int64_t throws(int64_t depth) {
    PH_SPAN("throws");
    try {
        throw_level(depth);
    } catch (const std::exception &exception) {
        PH_LOG_WARN("caught: %s", exception.what());
        return depth;
    }
    return -1;
}
PH_EXPORT(throws, PH_I64, PH_I64);

/* A span that changes hands. */
int64_t handed() {
    std::vector<ph_span> open;
    for (int64_t i = 0; i < 3; i++)
        open.push_back(PH_SPAN_BEGIN("handed", ph_i64("i", i)));
    for (size_t i = open.size(); i > 0; i--)
        PH_SPAN_END(open[i - 1]);
    PH_COUNTER("handed", static_cast<int64_t>(open.size()));
    PH_COUNTER_F64("half", 0.5);
    PH_ASYNC_BEGIN("async", 1, ph_bool("cxx", true));
    PH_ASYNC_END("async", 1);
    return static_cast<int64_t>(open.size());
}
PH_EXPORT(handed, PH_I64);

} // namespace

int main() {
    if (!ph_running_in_pinhole())
        return shapes() == 1 + 1 + 4 + 3 + 9 + 4 + 105 && throws(5) == 5 && handed() == 3 ? 0 : 1;
    return ph_serve();
}
