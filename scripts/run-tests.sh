#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs the tests of a build directory: `run-tests.sh BUILD [SUITE...]`. Without a suite all run but `soak`. What a
# failing test printed is shown; the last line counts the test cases, which .ci/run adds up.
set -eu

cd "$(dirname "$0")/.."
build=$1
shift

set -- "$@"
log=$build/meson-logs/testlog.json
rm -f "$log"

status=0
if [ $# -eq 0 ]; then
    # The limits in the meson.build files are for a quiet machine and no sanitizer.
    meson test -C "$build" --no-rebuild --print-errorlogs --no-suite soak --timeout-multiplier 4 || status=$?
else
    # A soak has no time limit but its own.
    for suite in "$@"; do
        shift
        set -- "$@" --suite "$suite"
    done
    meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier 0 "$@" || status=$?
fi

scripts/count-tests.py "$log" || status=1
exit "$status"
