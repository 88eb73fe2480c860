#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Reads from standard input what svm-init.sh says while it says it: `svm-log.py WORD LIST LOG RESULTS`. Tells how far it
# is, shows what a failing test printed, keeps all of it in LOG, and writes RESULTS as Meson would (testlog.json),
# for count-tests.py. LIST names the tests, one a line: one that did not come to its end has failed. Exit status: 0 when
# every test passed or was skipped.

import json
import sys
import time

# Exit statuses: Meson's for a skipped test, and what the shell makes of SIGKILL, which is how the limit ends one.
SKIPPED = 77
KILLED = 137


class Results:
    def __init__(self, path, names):
        self.file = open(path, "w", encoding="utf-8")
        self.names = names
        self.left = list(names)
        self.failed = 0

    def add(self, name, result, status, output, seconds):
        if name in self.left:
            self.left.remove(name)
        good = result in ("OK", "SKIP")
        self.failed += not good
        record = {"name": f"svm:{name}", "result": result, "returncode": status, "stdout": output}
        print(json.dumps(record), file=self.file, flush=True)
        place = len(self.names) - len(self.left)
        print(f"{place:3}/{len(self.names)} svm:{name:<36} {result:<8} {seconds:6.1f}s", flush=True)
        if not good and output.strip():
            print("-" * 40 + "\n" + output.rstrip() + "\n" + "-" * 40, flush=True)


def result_of(status):
    if status == 0:
        return "OK"
    if status == SKIPPED:
        return "SKIP"
    return "TIMEOUT" if status == KILLED else "FAIL"


def main():
    word, list_path, log_path, results_path = sys.argv[1:5]
    with open(list_path, encoding="utf-8") as file:
        results = Results(results_path, file.read().split())
    finished = False
    name, began, output = None, 0.0, []
    with open(log_path, "wb") as log:
        for raw in sys.stdin.buffer:
            log.write(raw)
            log.flush()
            line = raw.decode(errors="replace").replace("\r", "")
            if not line.startswith(word + " "):
                output.append(line)
                continue
            what, _, rest = line[len(word) + 1:].strip().partition(" ")
            if what == "begin":
                name, began, output = rest, time.monotonic(), []
            elif what == "end" and name is not None:
                status = int(rest.rpartition(" ")[2])
                results.add(name, result_of(status), status, "".join(output), time.monotonic() - began)
                name = None
            elif what == "finish":
                finished = True
            else:
                print(f"svm: {what} {rest}", flush=True)
    if name is not None:
        results.add(name, "ERROR", "unknown", "".join(output), time.monotonic() - began)
    for left in list(results.left):
        results.add(left, "ERROR", "unknown", "", 0)
    if not finished:
        print("svm: the machine went away before all tests had run", flush=True)
    return 0 if finished and not results.failed else 1


sys.exit(main())
