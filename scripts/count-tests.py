#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Counts test cases. `count-tests.py LOG...` reads Meson's testlog.json files, and, under any other name, plain
# text that cmocka programs printed (a serial console's, say). Prints what failed and what was skipped, by
# name, and as its last line
#     test cases: N passed, N failed, N skipped
# which .ci/run adds up. A case that was announced but did not report success has failed, so that a test
# program that dies counts for all that it did not run. Exit status: 1 when one failed or none ran.

import json
import re
import sys

GROUP_BEGIN = re.compile(r"\[={10}\] (?:.*: )?Running (\d+) test\(s\)\.")
GROUP_END = re.compile(r"\[={10}\] (?:.*: )?\d+ test\(s\) run\.")
# Not only at the start of a line: what the program under test printed may lack its newline.
CASE = re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] (.+)$")


class Counts:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def add_cmocka(self, program, text):
        """Adds the cases of every group in the text, and returns how many groups there were."""
        groups = 0
        expected = 0
        done = 0
        running = None
        in_group = False

        def fail_running():
            """The case without a verdict: it took the program down, or its set-up failed."""
            nonlocal running, done
            if running is not None:
                self.failed.append(f"{program}: {running}")
                running = None
                done += 1

        def close():
            fail_running()
            self.failed.extend([f"{program}: a case that never ran"] * (expected - done))

        for line in text.splitlines():
            line = line.strip()
            begin = GROUP_BEGIN.search(line)
            if begin:
                if in_group:
                    close()
                groups += 1
                in_group, expected, done, running = True, int(begin.group(1)), 0, None
                continue
            if not in_group:
                continue
            if GROUP_END.search(line):
                close()
                in_group = False
                continue
            case = CASE.search(line)
            if not case:
                continue
            what, name = case.groups()
            if what == "RUN":
                fail_running()
                running = name
            elif name == running:
                running = None
                done += 1
                if what == "OK":
                    self.passed += 1
                elif what == "SKIPPED":
                    self.skipped.append(f"{program}: {name}")
                else:
                    self.failed.append(f"{program}: {name}")
        if in_group:
            close()
        return groups

    def add_meson(self, record):
        """Adds one test program that Meson ran."""
        name = record["name"]
        result = record["result"]
        failed_before = len(self.failed)
        groups = self.add_cmocka(name, record.get("stdout") or "")
        if result in ("OK", "EXPECTEDFAIL"):
            if groups == 0:
                self.passed += 1
        elif result == "SKIP":
            if groups == 0:
                self.skipped.append(name)
        elif len(self.failed) == failed_before:
            # Every case was fine but the program was not: a leak found at its end, a crash, a time-out.
            self.failed.append(f"{name}: {result.lower()}, exit status {record.get('returncode')}")


def main():
    counts = Counts()
    for path in sys.argv[1:]:
        try:
            with open(path, encoding="utf-8", errors="replace") as log:
                if path.endswith(".json"):
                    for line in log:
                        counts.add_meson(json.loads(line))
                else:
                    counts.add_cmocka(path.rsplit("/", 1)[-1], log.read())
        except (OSError, ValueError, KeyError) as error:
            counts.failed.append(f"{path}: unreadable: {error}")

    for name in counts.skipped:
        print(f"skipped: {name}")
    for name in counts.failed:
        print(f"failed: {name}")
    print(f"test cases: {counts.passed} passed, {len(counts.failed)} failed, {len(counts.skipped)} skipped")
    return 1 if counts.failed or counts.passed + len(counts.skipped) == 0 else 0


sys.exit(main())
