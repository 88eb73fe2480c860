#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs the Debian packages that a target needs and this system lacks: `packages.sh GROUP...`. The
# Makefile calls it before everything else. Silent and fast when nothing is missing. A tool that is
# already on PATH, from wherever, is never installed again. Without apt-get it says what to install and
# fails.
set -eu

# One line a package: the package, then how to see that it is there without asking the package manager:
#   cmd NAME    a program on PATH
#   lib NAME    asked of dpkg; where there is no dpkg, the pkg-config module NAME
#   file PATH   asked of dpkg; where there is no dpkg, a header below the system's include directory
list_group() {
    case $1 in
    build)
        cat <<'LIST'
gcc              cmd  gcc
g++              cmd  g++
libc6-dev        file stdio.h
binutils         cmd  ld
meson            cmd  meson
ninja-build      cmd  ninja
pkg-config       cmd  pkg-config
musl-tools       cmd  musl-gcc
util-linux       cmd  flock
libjansson-dev   lib  jansson
libmicrohttpd-dev lib libmicrohttpd
libcurl4-openssl-dev lib libcurl
libsqlite3-dev   lib  sqlite3
libunicorn-dev   lib  unicorn
zlib1g-dev       lib  zlib
LIST
        ;;
    test)
        cat <<'LIST'
libcmocka-dev    lib  cmocka
valgrind         cmd  valgrind
protobuf-compiler cmd protoc
clang            cmd  clang
libclang-rt-dev  file ../lib/clang
babeltrace2      cmd  babeltrace2
nodejs           cmd  node
npm              cmd  npm
chromium         cmd  chromium
LIST
        ;;
    demo) ;;
    bench) ;;
    lint)
        cat <<'LIST'
clang-format     cmd  clang-format
clang-tidy       cmd  clang-tidy
cppcheck         cmd  cppcheck
shellcheck       cmd  shellcheck
mandoc           cmd  mandoc
LIST
        ;;
    svm)
        cat <<'LIST'
qemu-system-x86  cmd  qemu-system-x86_64
LIST
        ;;
    *)
        echo "packages.sh: no group of packages is named '$1'" >&2
        return 1
        ;;
    esac
}

have_dpkg=false
if command -v dpkg-query >/dev/null 2>&1; then
    have_dpkg=true
fi

list=
for group in "$@"; do
    list="$list
$(list_group "$group")"
done

missing=
ask_dpkg=
while read -r package kind name; do
    case $kind in
    '') continue ;;
    cmd)
        command -v "$name" >/dev/null 2>&1 || missing="$missing $package"
        continue
        ;;
    esac
    if $have_dpkg; then
        ask_dpkg="$ask_dpkg $package"
    elif [ "$kind" = lib ]; then
        pkg-config --exists "$name" 2>/dev/null || missing="$missing $package"
    elif [ ! -e "/usr/include/$name" ]; then
        missing="$missing $package"
    fi
done <<END
$list
END

if [ -n "$ask_dpkg" ]; then
    # dpkg-query fails when it does not know one of the names; what it does know is still printed.
    # shellcheck disable=SC2086 # a list of names, split on purpose
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $ask_dpkg 2>/dev/null) || :
    for package in $ask_dpkg; do
        case "
$installed
" in
        *"
$package installed
"*) ;;
        *) missing="$missing $package" ;;
        esac
    done
fi

if [ -z "$missing" ]; then
    exit 0
fi

if ! command -v apt-get >/dev/null 2>&1; then
    {
        echo "This system has no apt-get. Install what these Debian packages hold, then try again:"
        for package in $missing; do
            echo "  $package"
        done
    } >&2
    exit 1
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "Missing, and neither root nor sudo to install it: apt-get install$missing" >&2
        exit 1
    fi
    as_root=sudo
fi

apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$@"
}

echo "Installing:$missing" >&2
apt update >&2
# shellcheck disable=SC2086 # a list of names, split on purpose
apt install --no-install-recommends $missing >&2
