#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The first process of the machine that test-svm.sh boots (busybox's shell): makes /dev/kvm, runs the tests that
# svm-initramfs.py packed, one after the other, and switches off. Everything that is to be counted goes to the
# second serial port, between lines that begin with a word that nobody can know beforehand (svm-log.py reads them):
#
#     WORD start CONTEXT           the KVM in here is up, this is it
#     WORD begin NAME
#     WORD end NAME STATUS         126 and above as the shell has it; 124: it ran into its time limit
#     WORD finish
#     WORD broken REASON           no test could be run, or not all
set -u

/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root

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

port=/dev/ttyS1
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

# A line for the reader. The newline before it ends what a test may have left open.
say() {
    printf '\n%s %s\n' "$word" "$*" >"$port"
}

# `poweroff` would ask an init that there is none of.
off() {
    sync
    poweroff -f
    sleep 60
}

if ! stty -F "$port" raw -echo; then
    echo "svm-init: no second serial port" >&2
    off
fi

for module in /svm/modules/*.ko; do
    if ! insmod "$module"; then
        say "broken the module ${module##*/} does not load"
        off
    fi
done
# The node comes with the module, but it must also open.
if ! [ -c /dev/kvm ] || ! true 2>/dev/null <>/dev/kvm; then
    say "broken there is no /dev/kvm"
    off
fi
if ! grep -qw svm /proc/cpuinfo; then
    say "broken the processor is not one with SVM"
    off
fi
# While the first VM comes or the last one goes, QEMU can go astray (tests/support/hold_vm.c).
mkfifo /svm/ready
/svm/hold_vm >/svm/ready 2>/svm/hold.log &
read -r held </svm/ready
if [ "$held" != ready ]; then
    say "broken no VM can be made: $(cat /svm/hold.log)"
    off
fi

say "start Linux $(uname -r), nested paging $(cat /sys/module/kvm_amd/parameters/npt)"
while read -r number name; do
    say "begin $name"
    # Not the port itself: a terminal would change what the programs do.
    {
        timeout -s KILL "$limit" "/svm/tests/$number" </dev/null
        echo $? >/svm/status
    } 2>&1 | cat >"$port"
    read -r status </svm/status
    say "end $name $status"
done </svm/list
say finish
off
