/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Exports of every shape that C++ has: inline functions, templates, namespaces, overloads, lambdas, static
 * members, noexcept, and objects that static constructors make. exports_cxx_more.cpp is the second file.
 */
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "exports_cxx.h"

namespace {

/* Filled by a static constructor, sealed by PH_INIT. */
std::map<std::string, int32_t> registry = {{"one", 1}, {"two", 2}};
bool sealed;

void seal() {
    sealed = registry.size() == 2;
}
PH_INIT(seal);

bool was_sealed() noexcept {
    return sealed;
}
PH_EXPORT(was_sealed, PH_BOOL);

int32_t look_up(const char *name) {
    auto found = registry.find(name);
    if (found == registry.end())
        ph_fail(404, "no %s here", name);
    return found->second;
}
PH_EXPORT(look_up, PH_I32, PH_STR);

/* A C++ exception may fly as long as it lands inside the export. */
int32_t caught(int32_t x) {
    try {
        if (x < 0)
            throw std::runtime_error("negative");
        return x;
    } catch (const std::exception &exception) {
        ph_fail(3, "caught: %s", exception.what());
    }
}
PH_EXPORT(caught, PH_I32, PH_I32);

void uncaught() {
    throw std::runtime_error("nobody lands this");
}
PH_EXPORT(uncaught, PH_VOID);

} // namespace

PH_EXPORT(in_line, PH_I32, PH_I32);
PH_EXPORT_AS(sum_i32, math::sum<int32_t>, PH_I32, PH_I32, PH_I32);
PH_EXPORT_AS(sum_f64, math::sum<double>, PH_F64, PH_F64, PH_F64);
PH_EXPORT_AS(sum_mixed, (math::mixed<double, int32_t>), PH_F64, PH_F64, PH_I32);
PH_EXPORT_AS(member, math::box::twice, PH_I64, PH_I64);
PH_EXPORT_AS(overload_i32, math::overloaded, PH_STR, PH_I32);
PH_EXPORT_AS(overload_str, math::overloaded, PH_STR, PH_STR);
PH_EXPORT_AS(
    lambda, [](const char *a, int32_t n) -> const char * { return ph_strf("%s x %d", a, n); }, PH_STR, PH_STR,
    PH_I32);
PH_EXPORT_AS(lambda_alone, ([](ph_bytes b) { return ph_bytes_copy(b.data, b.size); }), PH_BYTES, PH_BYTES);
PH_EXPORT_AS(from_template, math::through_import<int32_t>, PH_I32, PH_I32);

static const char *sorted(const char *text) {
    std::vector<char> letters(text, text + std::char_traits<char>::length(text));
    std::map<char, int> counts;
    for (char letter : letters)
        counts[letter]++;
    std::string result;
    for (auto &entry : counts)
        result.append(static_cast<size_t>(entry.second), entry.first);
    return ph_str_copy(result.c_str());
}
PH_EXPORT(sorted, PH_STR, PH_STR);
