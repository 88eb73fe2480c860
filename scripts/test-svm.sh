#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs the tests on hardware-virtualization semantics, whatever this machine has: boots Debian's kernel in QEMU, which
# emulates a processor with AMD's SVM, and runs the same test programs against the KVM in there: `test-svm.sh BUILD
# [TEST...]`. BUILD is built and has tests; build/cache holds busybox and kernel (fetch-data.sh). No network, no disk.
# Shows each test as it ends, and the output of those that failed; BUILD/svm keeps all. The last line counts the test
# cases, which .ci/run adds up. Exits non-zero when one failed, or when the machine did not get through all of them.
#
#   PH_TEST_SCALE   divides the counts of tests that repeat something (default 20)
#   PH_SVM_LIMIT    seconds after which the machine is switched off (default 2700)
set -euo pipefail

cd "$(dirname "$0")/.."
build=$1
shift
cache=build/cache
out=$build/svm
scale=${PH_TEST_SCALE:-20}
limit=${PH_SVM_LIMIT:-2700}

kernels=("$cache"/kernel/boot/vmlinuz-*)
if [ ! -e "${kernels[0]}" ]; then
    echo "test-svm.sh: no kernel: run scripts/fetch-data.sh busybox kernel" >&2
    exit 1
fi

rm -rf "$out"
mkdir -p "$out"
touch "$out/console.log" "$out/lane-1.log" "$out/lane-2.log"
scripts/svm-initramfs.py "$build" "$cache" "$out/initramfs" "$@" >"$out/tests"
echo "svm: $(wc -l <"$out/tests") test programs, $(($(stat -c %s "$out/initramfs") >> 20)) MiB, counts divided by $scale"

# No output of a test can look like a line that svm-init.sh says.
word=svm-$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')

# A kernel that panics reboots, and QEMU then ends. There is nothing to protect in there, and each mitigation costs
# emulated instructions; so do waiting for grace periods and files in debugfs, for each VM. tsc=reliable: the emulated
# counters are one and the same, but Linux compares them while a processor's thread may not be running, and then gives
# them up.
append="console=ttyS0 quiet loglevel=4 panic=-1 oops=panic mitigations=off rcupdate.rcu_expedited=1 debugfs=off"
append+=" tsc=reliable svm.word=$word svm.scale=$scale svm.limit=240"

# In the background, so that a signal to this script is served at once. svm-run.py takes QEMU along.
scripts/svm-run.py "$word" "$limit" "$out" qemu-system-x86_64 \
    -accel tcg,thread=multi -cpu max -smp 2 -m 4096 -nodefaults -no-user-config -no-reboot -display none \
    -serial "file:$out/console.log" -serial "file:$out/lane-1.log" -serial "file:$out/lane-2.log" \
    -kernel "${kernels[0]}" -initrd "$out/initramfs" -append "$append" &
machine=$!
trap 'kill "$machine" 2>/dev/null; wait "$machine"; exit 130' INT
trap 'kill "$machine" 2>/dev/null; wait "$machine"; exit 143' TERM
status=0
wait "$machine" || status=1
trap - INT TERM

# Now and then the emulated SVM resets a nested processor for no reason that a second run shows again. So programs that
# failed run once more, said aloud, in a machine of their own; what fails twice has failed.
failed=()
if [ -s "$out/testlog.json" ]; then
    mapfile -t failed < <(python3 - "$out/testlog.json" <<'PYTHON'
import json
import sys

for line in open(sys.argv[1]):
    test = json.loads(line)
    if test["result"] not in ("OK", "SKIP"):
        print(test["name"].split("/")[-1])
PYTHON
    )
fi
if [ "${#failed[@]}" -ne 0 ] && [ "${#failed[@]}" -le 3 ] && [ -z "${PH_SVM_AGAIN:-}" ]; then
    echo "svm: once more: ${failed[*]}"
    cp "$out/testlog.json" "$build/svm-first.json"
    again=0
    PH_SVM_AGAIN=1 PH_SVM_LIMIT=400 "$0" "$build" "${failed[@]}" || again=1
    grep -E '"result": ?"(OK|SKIP)"' "$build/svm-first.json" >"$build/svm-both.json" || true
    cat "$out/testlog.json" >>"$build/svm-both.json"
    scripts/count-tests.py "$build/svm-both.json" || again=1
    exit "$again"
fi

scripts/count-tests.py "$out/testlog.json" || status=1
exit "$status"
