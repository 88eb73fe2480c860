#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The first process of the machine that test-svm.sh boots (busybox's applets): makes /dev/kvm, runs the tests that
# svm-initramfs.py packed, and switches off. Tests that Meson runs beside others share a lane, all others another; in a
# lane, tests run one after the other. Lane N talks on serial port N, where it puts what tests print and, in between,
# lines that begin with a word that nobody can know beforehand (svm-run.py reads them):
#
#     WORD start CONTEXT           the KVM in here is up, this is it
#     WORD begin NAME
#     WORD end NAME STATUS         as the shell has it; 137: it ran into its time limit
#     WORD finish
#     WORD broken REASON           no test can be run
set -u

/bin/busybox mkdir -p /svm/bin
/bin/busybox --install -s /svm/bin
export PATH=/svm/bin HOME=/root

mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts none /dev/pts
mount -t tmpfs none /dev/shm
ln -sf /proc/self/fd /dev/fd
ln -sf /proc/self/fd/0 /dev/stdin
ln -sf /proc/self/fd/1 /dev/stdout
ln -sf /proc/self/fd/2 /dev/stderr

word=none
scale=1
limit=120
# shellcheck disable=SC2013 # words, not lines
for argument in $(cat /proc/cmdline); do
    case $argument in
    svm.word=*) word=${argument#*=} ;;
    svm.scale=*) scale=${argument#*=} ;;
    svm.limit=*) limit=${argument#*=} ;;
    esac
done
export PH_TEST_SCALE="$scale" PH_TEST_REQUIRE_KVM=1

# A line for the reader of a lane. The newline before it ends what a test may have left open.
say() {
    lane=$1
    shift
    printf '\n%s %s\n' "$word" "$*" >"/dev/ttyS$lane"
}

# `poweroff` alone would ask an init that there is none of.
off() {
    sync
    poweroff -f
    sleep 60
}

broken() {
    say 1 "broken $*"
    off
}

for lane in 1 2; do
    if ! stty -F "/dev/ttyS$lane" raw -echo; then
        echo "svm-init: no serial port $lane" >&2
        off
    fi
done

for module in /svm/modules/*.ko; do
    insmod "$module" || broken "the module ${module##*/} does not load"
done
# The node comes with the module, but it must also open.
if ! [ -c /dev/kvm ] || ! true 2>/dev/null <>/dev/kvm; then
    broken "there is no /dev/kvm"
fi
grep -qw svm /proc/cpuinfo || broken "the processor is not one with SVM"

# While the first VM comes or the last one goes, QEMU can go astray (tests/support/hold_vm.c).
mkfifo /svm/ready
/svm/hold_vm >/svm/ready 2>/svm/hold.log &
read -r held </svm/ready
[ "$held" = ready ] || broken "no VM can be made: $(cat /svm/hold.log)"

# Runs the tests that are listed for lane $1.
run_lane() {
    while read -r number name; do
        say "$1" "begin $name"
        # Not the port itself: a terminal would change what the programs do.
        {
            timeout -s KILL "$limit" "/svm/tests/$number" </dev/null
            echo $? >"/svm/status-$1"
        } 2>&1 | cat >"/dev/ttyS$1"
        read -r status <"/svm/status-$1"
        say "$1" "end $name $status"
    done <"/svm/lane-$1"
    say "$1" finish
}

say 1 "start Linux $(uname -r), nested paging $(cat /sys/module/kvm_amd/parameters/npt)"
# Side by side as a pipeline, through which nothing flows: what a shell runs in the background ignores SIGINT.
run_lane 1 | run_lane 2
off
