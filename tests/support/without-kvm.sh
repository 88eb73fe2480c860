#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs a command where there is no /dev/kvm, as in a container: `without-kvm.sh COMMAND [ARG...]`, in a mount namespace
# of its own whose /dev has what every container's has, and no more. Nothing outside is changed. Ends with 77, and says
# why, where that is not permitted.
set -eu

if [ "${1:-}" != --inside ]; then
    # Whoever may not make one can often make one in a user namespace.
    for map in "" --map-root-user; do
        # shellcheck disable=SC2086 # no word, or one
        if why=$(unshare --mount $map mount -t tmpfs none /tmp 2>&1); then
            exec unshare --mount $map "$0" --inside "$@"
        fi
    done
    echo "without-kvm.sh: no mount namespace can be made here: $why" >&2
    exit 77
fi
shift

trap 'echo "without-kvm.sh: /dev cannot be replaced here" >&2; exit 77' EXIT
# The nodes are the machine's own: in a user namespace none can be made.
new=$(mktemp -d)
mount -t tmpfs -o mode=755 none "$new"
for node in null zero full random urandom tty; do
    [ -e "/dev/$node" ] || continue
    : >"$new/$node"
    mount --bind "/dev/$node" "$new/$node"
done
mkdir "$new/shm" "$new/pts"
mount -t tmpfs none "$new/shm"
mount -t devpts -o newinstance,ptmxmode=0666 none "$new/pts"
ln -s pts/ptmx "$new/ptmx"
ln -s /proc/self/fd "$new/fd"
for stream in in:0 out:1 err:2; do
    ln -s "/proc/self/fd/${stream#*:}" "$new/std${stream%:*}"
done
mount --rbind "$new" /dev
umount -l "$new"
rmdir "$new"
trap - EXIT
exec "$@"
