#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Shows what pinhole is for: `demo.sh BUILD`, where BUILD is built and scripts/fetch-data.sh has fetched
# busybox. On the backend that PINHOLE_BACKEND names, or else on KVM, or where there is none on the soft one. Ends with an
# error when one of them does not do what the line before it says.
set -eu

cd "$(dirname "$0")/.."
build=$1
pinhole=$build/pinhole
guests=$build/guests
busybox=build/cache/busybox/bin/busybox

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

explain() {
    printf '\n# %s\n' "$1"
}

# Shows a command, also where its output goes elsewhere, and runs it.
exec 3>&1
show() {
    {
        printf '$'
        for word in "$@"; do
            case $word in
            *[!A-Za-z0-9_./=@-]*) printf " '%s'" "$word" ;;
            *) printf ' %s' "$word" ;;
            esac
        done
        printf '\n'
    } >&3
    "$@"
}

# Without a micro-VM there is nothing to show; this says why, and what to do.
if ! "$pinhole" doctor >"$work/doctor"; then
    cat "$work/doctor" >&2
    exit 3
fi

# Each command would say it.
no_kvm=$(sed -n 's/^backend kvm *not usable: //p' "$work/doctor")
if [ -n "$no_kvm" ] && [ "${PINHOLE_BACKEND:-auto}" = auto ]; then
    echo "All of this runs on the soft backend, which is slower and isolates less than KVM would: $no_kvm"
    export PINHOLE_BACKEND=soft
fi

explain 'A function of an untrusted program, called in a micro-VM; it asks the host which day it is.'
show "$pinhole" call --host 'weekday="Friday"' "$guests/hello" greet '"World"'

explain 'SQLite, in a micro-VM, answers a query that the host asks.'
show "$pinhole" call --raw "$guests/sqlite" query \
    '"CREATE TABLE planets (name, moons); INSERT INTO planets VALUES (\"Mars\", 2), (\"Jupiter\", 95); SELECT * FROM planets ORDER BY moons DESC"'
echo

explain 'Where the time of a query goes: the spans of the host, of SQLite and its system calls, in nanoseconds.'
show "$pinhole" call --trace text "$guests/sqlite" query \
    '"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT sum(i) FROM n"' 2>&1

# The guest sees no file system: the command reads the file, and the bytes are the argument.
file=$guests/sqlite
explain "zlib, in a micro-VM, compresses a file of $(wc -c <"$file") bytes; the host's own zlib expands it again."
show "$pinhole" call --raw "$guests/deflate" compress "@$file" 6 >"$work/compressed"
python3 - "$file" "$work/compressed" <<'PYTHON'
import sys
import zlib

original = open(sys.argv[1], "rb").read()
compressed = open(sys.argv[2], "rb").read()
if zlib.decompress(compressed) != original:
    sys.exit("the host's zlib expands it to something else")
print(f"{len(compressed)} bytes, which the host's zlib {zlib.ZLIB_RUNTIME_VERSION} expands to the same file")
PYTHON

explain "Debian's busybox, which knows nothing of pinhole, runs in a micro-VM as it is."
# shellcheck disable=SC2016 # the shell in the micro-VM expands it
show "$pinhole" run "$busybox" sh -c 'for i in 1 2 3; do echo "busybox counts to $i"; done'
printf 'b\na\nc\n' >"$work/letters"
show "$pinhole" run --stdin "$busybox" sort -r <"$work/letters"
