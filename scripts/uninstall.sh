#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Removes what install.sh installed, and nothing else: `uninstall.sh PREFIX DESTDIR`. Works from the manifest that was
# left below the prefix. A directory goes only when install.sh made it and nothing else is in it.
set -eu

prefix=$1
destdir=${2:-}
case $destdir in
'' | /*) ;;
*) destdir=$(cd "$(dirname "$0")/.." && pwd)/$destdir ;;
esac
destdir=${destdir%/}
manifest=$destdir$prefix/share/pinhole/manifest

if [ ! -f "$manifest" ]; then
    echo "uninstall.sh: nothing is installed there: no $manifest" >&2
    exit 1
fi

# The manifest is itself on the list. In reverse order, what is in a directory comes before it.
list=$(LC_ALL=C sort -r "$manifest")
printf '%s\n' "$list" | while IFS= read -r path; do
    if [ -d "$destdir$path" ] && [ ! -L "$destdir$path" ]; then
        rmdir --ignore-fail-on-non-empty "$destdir$path"
    else
        rm -f "$destdir$path"
    fi
done

if [ -z "$destdir" ] && [ "$(id -u)" -eq 0 ]; then
    ldconfig
fi
