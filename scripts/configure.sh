#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Makes a Meson build directory, or changes it where what is asked for differs from what it has. Called
# by the Makefile as `configure.sh BUILD SANITIZERS [tests]`; silent when there is nothing to do. A directory
# that has tests keeps them. Concurrent calls wait for each other.
set -eu

cd "$(dirname "$0")/.."
build=$1
sanitizers=${2:-none}
tests=${3:-}
stamp=$build/.configured

mkdir -p "$build"
exec 9>"$build/.configure.lock"
flock 9

has=
if [ -f "$build/build.ninja" ] && [ -f "$stamp" ]; then
    has=$(cat "$stamp")
fi
case $has in
"$sanitizers $tests" | "$sanitizers tests") exit 0 ;;
*" tests") tests=tests ;;
esac

# A sanitizer's own symbols are left for the program to provide.
set -- --prefix=/usr/local -Db_sanitize="$sanitizers"
if [ "$sanitizers" != none ]; then
    set -- "$@" -Db_lundef=false
fi
if [ -n "$tests" ]; then
    set -- "$@" -Dtests=enabled
else
    set -- "$@" -Dtests=disabled # four fifths of all there is to build
fi
rm -f "$stamp"
if [ -z "$has" ]; then
    # What a first configuration that failed left behind would make Meson think that it is not the first.
    rm -rf "$build/meson-private" "$build/meson-info" "$build/meson-logs" "$build/build.ninja"
    meson setup "$build" "$@"
else
    shift
    meson configure "$build" "$@"
fi
echo "$sanitizers $tests" >"$stamp"
