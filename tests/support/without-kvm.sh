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

# The nodes are the machine's own: in a user namespace none can be made.
new=$(mktemp -d)
mount -t tmpfs -o mode=755 none "$new"
for node in null zero full random urandom tty; do
    [ -e "/dev/$node" ] || continue
    : >"$new/$node"
    mount --bind "/dev/$node" "$new/$node"
done
for folder in shm pts; do
    [ -d "/dev/$folder" ] || continue
    mkdir "$new/$folder"
    mount --rbind "/dev/$folder" "$new/$folder"
done
ln -s /proc/self/fd "$new/fd"
for stream in in:0 out:1 err:2; do
    ln -s "/proc/self/fd/${stream#*:}" "$new/std${stream%:*}"
done
mount --rbind "$new" /dev
umount -l "$new"
rmdir "$new"
exec "$@"
