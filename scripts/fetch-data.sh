#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Gets what tests only read or run, and nobody installs: `fetch-data.sh NAME...`. Each is unpacked in build/cache/NAME;
# what is there already is left alone. All but npm are Debian packages.
#
#   busybox    build/cache/busybox/bin/busybox, a static program that knows nothing of pinhole
#   prometheus build/cache/prometheus/usr/bin/promtool alone, which reads metrics as Prometheus does
#   kernel     build/cache/kernel/boot/vmlinuz-VERSION and build/cache/kernel/lib/modules/VERSION
#   npm        build/cache/npm/node_modules, the packages of tests/npm
set -eu

cd "$(dirname "$0")/.."
cache=$PWD/build/cache
npm=$PWD/tests/npm

# Which package holds NAME. The kernel's is the one that the package without a version depends on.
find_package() {
    case $1 in
    busybox)
        echo busybox-static
        ;;
    prometheus)
        echo prometheus
        ;;
    kernel)
        apt-cache depends --important linux-image-amd64 |
            sed -n 's/^ *|\{0,1\}Depends: \(linux-image-[0-9][^ ]*\).*/\1/p' | head -n 1
        ;;
    esac
}

update_lists() {
    if [ "$(id -u)" -eq 0 ]; then
        apt-get -q -o DPkg::Lock::Timeout=120 update >&2
    elif command -v sudo >/dev/null 2>&1; then
        sudo apt-get -q -o DPkg::Lock::Timeout=120 update >&2
    else
        echo "fetch-data.sh: apt's lists lack this package, and neither root nor sudo to update them" >&2
        return 1
    fi
}

# As the caller: apt's own user cannot write below here.
download() {
    package=$(find_package "$1")
    [ -n "$package" ] && apt-get -q -o APT::Sandbox::User=root download "$package" >&2
}

# The versions and the hashes are those of the lock file; when that changes, so does what is there.
fetch_npm() {
    if cmp -s "$npm/package-lock.json" "$cache/npm/package-lock.json"; then
        return 0
    fi
    if ! command -v npm >/dev/null 2>&1; then
        echo "fetch-data.sh: this system has no npm, so tests that read exports with other programs are skipped" >&2
        return 1
    fi
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/.npm.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    chmod 755 "$work"
    cp "$npm/package.json" "$npm/package-lock.json" "$npm/.npmrc" "$work"
    npm --prefix "$work" ci >&2
    rm -rf "$cache/npm"
    mv -T "$work" "$cache/npm"
    trap - EXIT
}

# unpack NAME DEB FOLDER. Of Prometheus, 100 MB, one program is enough.
unpack() {
    case $1 in
    prometheus) dpkg-deb --fsys-tarfile "$2" | tar -x -C "$3" ./usr/bin/promtool ;;
    *) dpkg-deb -x "$2" "$3" ;;
    esac
}

fetch() {
    name=$1
    case $name in
    busybox | kernel | prometheus) ;;
    npm)
        fetch_npm
        return
        ;;
    *)
        echo "fetch-data.sh: nothing is known by the name '$name'" >&2
        return 1
        ;;
    esac
    if [ -d "$cache/$name" ]; then
        return 0
    fi
    for tool in apt-get dpkg-deb; do
        if ! command -v "$tool" >/dev/null 2>&1; then
            echo "This system has no $tool. Unpack Debian 12's $name package below build/cache/$name." >&2
            return 1
        fi
    done

    # Unpacked beside its place and moved there at the end, so that what is there is whole.
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/.$name.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/download" "$work/root"
    chmod 755 "$work/root"
    cd "$work/download"
    if ! download "$name"; then
        update_lists
        download "$name"
    fi
    unpack "$name" ./*.deb "$work/root"
    # Another call may have been faster.
    if [ ! -d "$cache/$name" ]; then
        mv -T "$work/root" "$cache/$name"
    fi
    cd "$cache"
    rm -rf "$work"
    trap - EXIT
}

for name in "$@"; do
    fetch "$name"
done
