#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs the tests of a build directory: `run-tests.sh BUILD [SUITE...]`. Without a suite all run but `soak`: those without
# a VM, and the others on each backend that works here, or on the one that PINHOLE_BACKEND names. What a failing test
# printed is shown, and then which backend was left out and why; the last line counts the test cases, which .ci/run adds
# up.
set -eu

cd "$(dirname "$0")/.."
build=$1
shift

log=$build/meson-logs/testlog.json
rm -f "$log"

wanted=${PINHOLE_BACKEND:-auto}
case $wanted in
auto) needed=${PH_TEST_REQUIRE_KVM:+kvm} ;;
kvm | soft) needed=$wanted ;;
*)
    echo "run-tests.sh: PINHOLE_BACKEND is '$wanted'; it may be auto, kvm or soft" >&2
    exit 2
    ;;
esac
# It is for this script. Tests say themselves what they run on; those of KVM alone skip where it is unwanted.
if [ "$wanted" != soft ]; then
    unset PINHOLE_BACKEND
fi

# Why the tests on backend $1 are to be left out; nothing where they are not.
why_not() {
    if [ "$wanted" != auto ] && [ "$wanted" != "$1" ]; then
        echo "PINHOLE_BACKEND is $wanted"
    elif [ "$1" = soft ] && ! [ -e "$build/src/pinhole-soft.so" ]; then
        echo "it is not a part of $build (the option \`soft\` in meson_options.txt)"
    else
        { "$build/pinhole" doctor || true; } | sed -n "s/^backend $1 *not usable: //p"
    fi
}

status=0
left_out=
if [ $# -eq 0 ]; then
    set -- --suite unit
    for backend in kvm soft; do
        why=$(why_not "$backend")
        if [ -z "$why" ] && [ "$backend" = kvm ]; then
            set -- "$@" --suite system --suite hostile
        elif [ -z "$why" ]; then
            set -- "$@" --suite soft-system --suite soft-hostile
        elif [ "$needed" = "$backend" ]; then
            echo "run-tests.sh: the tests on $backend were asked for, but: $why" >&2
            exit 1
        else
            left_out="${left_out}left out: the tests on $backend: $why
"
        fi
    done
    # The limits in the meson.build files are for a quiet machine and no sanitizer.
    meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier 4 "$@" || status=$?
else
    # A soak has no time limit but its own.
    for suite in "$@"; do
        shift
        set -- "$@" --suite "$suite"
    done
    meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier 0 "$@" || status=$?
fi

printf %s "$left_out"
scripts/count-tests.py "$log" || status=1
exit "$status"
