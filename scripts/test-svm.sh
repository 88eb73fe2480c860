#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs the tests on hardware-virtualization semantics, whatever this machine has: boots Debian's kernel in QEMU, which
# emulates a processor with AMD's SVM, and runs the same test programs against the KVM in there: `test-svm.sh BUILD
# [TEST...]`. BUILD is built and has tests; build/cache holds busybox and kernel (fetch-data.sh). No network, no disk.
# Shows each test as it ends, and the output of those that failed; build/svm keeps all. The last line counts the test
# cases, which .ci/run adds up. Exits non-zero when one failed, or when the machine did not get through all of them.
#
#   PH_TEST_SCALE   divides the counts of tests that repeat something (default 20)
#   PH_SVM_LIMIT    seconds after which the machine is switched off (default 840)
set -euo pipefail

cd "$(dirname "$0")/.."
build=$1
shift
cache=build/cache
out=$build/svm
scale=${PH_TEST_SCALE:-20}
limit=${PH_SVM_LIMIT:-840}
memory=4096

kernels=("$cache"/kernel/boot/vmlinuz-*)
if [ ! -e "${kernels[0]}" ]; then
    echo "test-svm.sh: no kernel: run scripts/fetch-data.sh busybox kernel" >&2
    exit 1
fi

rm -rf "$out"
mkdir -p "$out"
scripts/svm-initramfs.py "$build" "$cache" "$out/initramfs" "$@" >"$out/tests"
echo "svm: $(wc -l <"$out/tests") test programs, $(($(stat -c %s "$out/initramfs") >> 20)) MiB, counts divided by $scale"

# No output of a test can look like a line of the protocol.
word=svm-$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')

# mitigations=off: there is nothing to protect in there, and each costs emulated instructions. tsc=reliable: the emulated
# counters are one and the same, but Linux compares them while a vCPU's thread may not be running, and then gives them up.
append="console=ttyS0 quiet loglevel=4 panic=-1 oops=panic mitigations=off tsc=reliable"
append+=" svm.word=$word svm.scale=$scale svm.limit=240"

# QEMU ends when the guest switches off, or reboots since it panicked; timeout ends this QEMU and nothing else. Both run
# in the background, so that a signal to this script is served at once and takes them along.
mkfifo "$out/port"
scripts/svm-log.py "$word" "$out/tests" "$out/log" "$out/testlog.json" <"$out/port" &
reader=$!
timeout --foreground -k 10 "$limit" qemu-system-x86_64 \
    -accel tcg,thread=multi -cpu max -smp 2 -m "$memory" -nodefaults -no-user-config -no-reboot -display none \
    -serial "file:$out/console.log" -serial stdio \
    -kernel "${kernels[0]}" -initrd "$out/initramfs" -append "$append" \
    </dev/null >"$out/port" 2>"$out/qemu.log" &
machine=$!
trap 'kill "$machine" "$reader" 2>/dev/null || :' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

status=0
wait "$reader" || status=1
machine_status=0
wait "$machine" || machine_status=$?
trap - EXIT

case $machine_status in
0) ;;
124 | 137) echo "svm: switched off after $limit seconds" >&2 ;;
*) echo "svm: qemu-system-x86_64 failed with status $machine_status" >&2 ;;
esac
if [ "$machine_status" -ne 0 ]; then
    status=1
fi
if [ "$status" -ne 0 ]; then
    cat "$out/qemu.log" >&2
    tail -n 40 "$out/console.log" >&2 || :
fi
scripts/count-tests.py "$out/testlog.json" || status=1
exit "$status"
