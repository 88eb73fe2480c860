#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Passes each man page, written or made from a header, through the formatter that is there and fails when it warns:
# `check-man.sh BUILD`. mandoc is the strict one; man stands in for it.
set -eu

cd "$(dirname "$0")/.."
build=$1
status=0
for page in docs/man/*.[1-8] "$build"/docs/*.[1-8]; do
    [ -e "$page" ] || continue
    if command -v mandoc >/dev/null 2>&1; then
        # No date is meant: the version stands in for it.
        warnings=$(mandoc -T lint -W warning "$page" | sed '/missing date, using ""/d')
        if [ -n "$warnings" ]; then
            printf '%s\n' "$warnings" >&2
            status=1
        fi
    elif command -v man >/dev/null 2>&1; then
        warnings=$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null) || status=1
        if [ -n "$warnings" ]; then
            printf '%s\n' "$page: $warnings" >&2
            status=1
        fi
    fi
done
exit "$status"
