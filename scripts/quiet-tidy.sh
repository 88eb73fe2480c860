#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs clang-tidy with the arguments given, and shows its output only when it found something: otherwise it counts, for
# each file, the warnings that it suppressed in other people's headers. Called by lint.sh.
set -u

if output=$(clang-tidy "$@" 2>&1); then
    exit 0
fi
printf '%s\n' "$output" >&2
exit 1
