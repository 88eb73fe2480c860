#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs what a build directory holds: `install.sh BUILD PREFIX DESTDIR`. Leaves a manifest below the prefix, which
# is all that uninstall.sh needs, so that the tree may be cleaned or moved in between.
set -eu

cd "$(dirname "$0")/.."
build=$1
prefix=$2
destdir=${3:-}
manifest=$prefix/share/pinhole/manifest

case $prefix in
/*) ;;
*)
    echo "install.sh: PREFIX must be an absolute path" >&2
    exit 1
    ;;
esac
case $destdir in
'' | /*) ;;
*) destdir=$PWD/$destdir ;;
esac
destdir=${destdir%/}

# The prefix is written into the pkg-config files, so a change of it configures again.
recorded=$(meson introspect "$build" --buildoptions |
    python3 -c 'import json, sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
if [ "$recorded" != "$prefix" ]; then
    meson configure "$build" --prefix="$prefix"
fi
ninja -C "$build"

old=$(mktemp)
trap 'rm -f "$old"' EXIT
if [ -f "$destdir$manifest" ]; then
    cp "$destdir$manifest" "$old"
fi

# Directories that do not exist yet are ours to remove again.
new_dirs=
dir=${manifest%/*}
while [ "$dir" != "" ] && [ ! -d "$destdir$dir" ]; do
    new_dirs="$new_dirs $dir"
    dir=${dir%/*}
done

DESTDIR=$destdir meson install -C "$build" --no-rebuild --quiet

mkdir -p "$destdir${manifest%/*}"
{
    grep -v '^#' "$build/meson-logs/install-log.txt" | while IFS= read -r path; do
        printf '%s\n' "${path#"$destdir"}"
    done
    # shellcheck disable=SC2086 # a list of paths, split on purpose
    printf '%s\n' $new_dirs "$manifest"
    cat "$old"
} | sed "/^\$/d" | LC_ALL=C sort -u >"$build/manifest"
install -m 644 "$build/manifest" "$destdir$manifest"

# The loader's cache, where this is the running system and it is ours to change.
if [ -z "$destdir" ] && [ "$(id -u)" -eq 0 ]; then
    ldconfig
fi
