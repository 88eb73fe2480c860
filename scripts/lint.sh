#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Checks every file of ours without running it: `lint.sh BUILD`, where BUILD is configured and built (generated headers
# are in it). Says what each tool found and which tools failed; exits non-zero when one did.
set -euo pipefail

cd "$(dirname "$0")/.."
build=$1
jobs=$(nproc)
failed=()

# Runs a check and goes on when it fails. The function runs in its own shell, so that its `set -e` holds.
check() {
    local name=$1
    shift
    printf 'lint: %s\n' "$name"
    set +e
    (
        set -e
        "$@"
    )
    local status=$?
    set -e
    if [ "$status" -ne 0 ]; then
        failed+=("$name")
    fi
}

# Our files, whether committed or not: an unpacked release has no git.
folders=(include src guests tests bench examples)
mapfile -t headers < <(find "${folders[@]}" -name '*.h' | LC_ALL=C sort)
mapfile -t sources < <(find "${folders[@]}" -name '*.c' -o -name '*.cpp' | LC_ALL=C sort)
mapfile -t scripts < <(find scripts .ci tests -type f \( -name '*.sh' -o -path .ci/run \) | LC_ALL=C sort)

format() {
    printf '%s\0' "${headers[@]}" "${sources[@]}" | xargs -0 -P "$jobs" -n 16 clang-format --dry-run -Werror \
        --ferror-limit=5
}

# What runs in the guest is not in compile_commands.json (custom targets build it): it is checked with the flags
# below in their place.
tidy() {
    local hosted=() guest=() source database
    database=$(python3 - "$build/compile_commands.json" <<'PYTHON'
import json
import os
import sys

for entry in json.load(open(sys.argv[1])):
    print(os.path.relpath(os.path.join(entry["directory"], entry["file"])))
PYTHON
    )
    for source in "${sources[@]}"; do
        if grep -qxF -- "$source" <<<"$database"; then
            hosted+=("$source")
        else
            guest+=("$source")
        fi
    done
    # GCC's own flags are in the database, which clang does not know.
    local common=(--quiet --extra-arg=-Wno-unknown-warning-option)
    local status=0
    if [ "${#hosted[@]}" -ne 0 ]; then
        printf '%s\0' "${hosted[@]}" |
            xargs -0 -P "$jobs" -n 1 scripts/quiet-tidy.sh "${common[@]}" -p "$build" || status=1
    fi
    guest_tidy -std=gnu17 .c || status=1
    guest_tidy -std=c++17 .cpp || status=1
    return "$status"
}

# Called by tidy: clang-tidy over its `guest` files with the suffix $2, in the language $1.
guest_tidy() {
    local source
    for source in ${guest[@]+"${guest[@]}"}; do
        if [[ $source == *"$2" ]]; then
            printf '%s\0' "$source"
        fi
    done | xargs -0 -r -P "$jobs" -I '{}' scripts/quiet-tidy.sh --quiet '{}' -- "$1" -D_GNU_SOURCE -Iinclude -Isrc \
        -Itests -Wall -Wextra
}

# cppcheck does not see through inline assembly and section tables, so unused functions are not asked for; and mmap over
# what is mapped already (MAP_FIXED) allocates nothing that its result would have to be kept for.
cppcheck_all() {
    cppcheck --quiet -j "$jobs" --enable=warning,performance,portability --error-exitcode=1 --inline-suppr \
        --std=c11 --library=posix --library=gnu -D__x86_64__=1 -D__linux__=1 -D__GNUC__=12 -DPH__PROJECT_VERSION='""' \
        -Iinclude -Isrc -Ibench -Itests --suppress=missingInclude --suppress=missingIncludeSystem --suppress=unmatchedSuppression \
        --suppress=leakReturnValNotUsed \
        "${sources[@]}"
}

# First line of each file: the licence.
licences() {
    local file missing=0
    for file in "${headers[@]}" "${sources[@]}" "${scripts[@]}" scripts/*.py meson.build; do
        if ! head -n 2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception'; then
            echo "$file: no SPDX line" >&2
            missing=1
        fi
    done
    return "$missing"
}

check clang-format format
check clang-tidy tidy
check cppcheck cppcheck_all
check shellcheck shellcheck -x "${scripts[@]}"
check licences licences
check man-pages scripts/check-man.sh "$build"

if [ "${#failed[@]}" -ne 0 ]; then
    echo "lint: failed: ${failed[*]}" >&2
    exit 1
fi
