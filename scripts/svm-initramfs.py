#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Packs what test-svm.sh boots: `svm-initramfs.py BUILD CACHE ARCHIVE [TEST...]`. The archive (cpio, format newc)
# holds busybox, the modules that make /dev/kvm, svm-init.sh, and every test program of the suites unit,
# system and hostile (or those named) with all that its entry in Meson's list refers to, each file at the path that it
# has here. What runs there is therefore what `meson test` would run, and is listed nowhere else. Prints the tests'
# names, one a line.

import fnmatch
import json
import lzma
import os
import re
import shlex
import stat
import subprocess
import sys
import tempfile

SUITES = {"unit", "system", "hostile"}
# Of these, tests that need a compiler, a program that reads traces, or the soft backend beside KVM.
LEFT_OUT = {"compiler", "reader", "soft-system"}
# In the order in which they are loaded; kvm-amd needs all that is before it.
MODULES = ["irqbypass", "kvm", "ccp", "kvm-amd"]
# What lies in a folder that a test is told of and is none of its products: what the build leaves, and history.
SKIPPED = ["*.d", "*.p", ".git"]
NOT_PACKED = set()


class Archive:
    """A cpio archive, format newc (cpio(5)): everything belongs to root, and folders are made as they are needed."""

    def __init__(self, file):
        self.file = file
        self.names = set()
        self.inode = 0

    def _entry(self, name, mode, data=b"", device=(0, 0)):
        self.inode += 1
        encoded = name.encode() + b"\0"
        links = 2 if stat.S_ISDIR(mode) else 1
        fields = [self.inode, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(encoded), 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        self.file.write(head + b"\0" * (-len(head) % 4))
        self.file.write(data)
        self.file.write(b"\0" * (-len(data) % 4))

    def _claim(self, path):
        """Makes the folders above (path) and says whether the path itself is new."""
        name = path.strip("/")
        if not name or name in self.names:
            return None
        self.names.add(name)
        parent = os.path.dirname(name)
        if parent and parent not in self.names:
            self.folder(parent)
        return name

    def folder(self, path):
        name = self._claim(path)
        if name:
            self._entry(name, stat.S_IFDIR | 0o755)

    def link(self, path, target):
        name = self._claim(path)
        if name:
            self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def device(self, path, major, minor):
        name = self._claim(path)
        if name:
            self._entry(name, stat.S_IFCHR | 0o600, device=(major, minor))

    def bytes(self, path, data, executable=False):
        name = self._claim(path)
        if name:
            self._entry(name, stat.S_IFREG | (0o755 if executable else 0o644), data)

    def end(self):
        self._entry("TRAILER!!!", 0)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def is_dynamic(path):
    """Whether the file is a program of this system, not a guest: those are static."""
    head = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=False)
    return head.returncode == 0 and re.search(r"^\s+INTERP\s", head.stdout, re.M) is not None


def libraries(path):
    """The libraries that the loader would map for (path), the loader included."""
    listing = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    if "not found" in listing:
        sys.exit(f"svm-initramfs.py: {path} needs libraries that are not here:\n{listing}")
    return re.findall(r"(/\S+) \(0x", listing)


def without_debug(path):
    """The content of a program of the host without debug information, which is most of it."""
    with tempfile.NamedTemporaryFile() as small:
        subprocess.run(["objcopy", "--strip-debug", path, small.name], check=True)
        return read(small.name)


def add_file(archive, path):
    executable = os.access(path, os.X_OK)
    if executable and is_dynamic(path):
        archive.bytes(path, without_debug(path), True)
        for library in libraries(path):
            archive.bytes(library, read(library), True)
    else:
        archive.bytes(path, read(path), executable)


def is_skipped(folder, name):
    if any(fnmatch.fnmatch(name, pattern) for pattern in SKIPPED):
        return True
    # A build directory in the source tree; what a test wants of it, the test is told of.
    if os.path.isdir(os.path.join(folder, name, "meson-private")):
        return True
    return os.path.realpath(os.path.join(folder, name)) in NOT_PACKED


def add_path(archive, path):
    """Adds a file, or a folder with all that is in it."""
    if os.path.isfile(path):
        add_file(archive, path)
        return
    archive.folder(path)
    for folder, folders, files in os.walk(path):
        folders[:] = [f for f in folders if not is_skipped(folder, f)]
        for file in files:
            whole = os.path.join(folder, file)
            if os.path.isfile(whole) and not is_skipped(folder, file):
                add_file(archive, whole)


def add_system(archive, cache):
    busybox = os.path.join(cache, "busybox/bin/busybox")
    kernel = os.path.join(cache, "kernel")
    archive.bytes("bin/busybox", read(busybox), True)
    # A program of this system, as tests expect one there.
    shell = os.path.realpath("/bin/sh")
    archive.bytes("bin/sh", read(shell), True)
    for library in libraries(shell):
        archive.bytes(library, read(library), True)
    archive.device("dev/console", 5, 1)
    for folder in ["proc", "sys", "tmp", "root", "etc"]:
        archive.folder(folder)
    archive.bytes("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    archive.bytes("init", read(os.path.join(os.path.dirname(__file__), "svm-init.sh")), True)
    found = {}
    for folder, _, files in os.walk(os.path.join(kernel, "lib/modules")):
        for file in files:
            name, dot, suffix = file.partition(".ko")
            if name in MODULES and dot:
                data = read(os.path.join(folder, file))
                found[name] = lzma.decompress(data) if suffix == ".xz" else data
    for number, name in enumerate(MODULES):
        if name not in found:
            sys.exit(f"svm-initramfs.py: no module {name} below {kernel}")
        archive.bytes(f"svm/modules/{number}-{name}.ko", found[name])


def introspect(build, what):
    command = ["meson", "introspect", build, what]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def suites_of(test):
    """Names of its suites, without the project's in front."""
    return [suite.rpartition(":")[2] for suite in test["suite"]]


def script_of(test, build):
    """What runs the test, as Meson would."""
    lines = ["#!/bin/sh"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(test["env"].items())]
    lines += ["cd " + shlex.quote(test["workdir"] or build), "exec " + shlex.join(test["cmd"])]
    return "\n".join(lines) + "\n"


def add_holder(archive, targets):
    """The program that svm-init.sh starts first, as it is not at the same path in every build."""
    for target in targets:
        if target["name"] == "hold_vm":
            add_file(archive, target["filename"][0])
            archive.link("svm/hold_vm", target["filename"][0])


def add_tests(archive, build, wanted):
    tests = [test for test in introspect(build, "--tests") if SUITES.intersection(suites_of(test))]
    if wanted:
        tests = [test for test in tests if test["name"] in wanted]
    # Valgrind, fuzzers, compilers, readers and the emulator say the same on every processor, and are not packed.
    tools = [test for test in tests
             if not test["cmd"][0].startswith(build + os.sep) or LEFT_OUT & set(suites_of(test))]
    tests = [test for test in tests if test not in tools]
    if tools:
        print("svm: not run there:", *(test["name"] for test in tools), file=sys.stderr)
    if not tests:
        sys.exit("svm-initramfs.py: there is no such test")
    targets = introspect(build, "--targets")
    add_holder(archive, targets)
    products = {target["id"]: target["filename"] for target in targets}
    names = []
    lanes = {1: [], 2: []}
    for number, test in enumerate(tests):
        paths = [*test["cmd"], *test["env"].values()]
        for target in test["depends"]:
            paths += products.get(target, [])
        for path in paths:
            if os.path.isabs(path) and os.path.exists(path):
                add_path(archive, path)
        archive.folder(test["workdir"] or build)
        archive.bytes(f"svm/tests/{number}", script_of(test, build).encode(), True)
        suite = suites_of(test)[0]
        names.append(f"{suite}/{test['name'].replace(' ', '-')}")
        lanes[2 if test["is_parallel"] else 1].append(f"{number} {names[-1]}\n")
    for lane, lines in lanes.items():
        archive.bytes(f"svm/lane-{lane}", "".join(lines).encode())
    print("\n".join(names))


def main():
    build, cache, path = (os.path.abspath(argument) for argument in sys.argv[1:4])
    # Parts of the cache that are large and no test's.
    NOT_PACKED.update(os.path.realpath(os.path.join(cache, part)) for part in ["kernel", "busybox/usr"])
    NOT_PACKED.add(os.path.realpath(os.path.dirname(path)))
    with open(path, "wb") as file:
        archive = Archive(file)
        add_system(archive, cache)
        add_tests(archive, build, set(sys.argv[4:]))
        archive.end()


main()
