#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs the machine of test-svm.sh and follows its tests: `svm-run.py WORD SECONDS OUT COMMAND...`. COMMAND is QEMU,
# whose serial ports write to files in OUT: `console.log`, then one for each lane of tests, `lane-NAME.log`, where
# svm-init.sh says how far it is (the lines are described there). Tells each test as it ends, with what it printed if
# it failed, and writes OUT/testlog.json as Meson would, for count-tests.py. OUT/tests names the tests: one that did
# not come to its end has failed. QEMU is ended after SECONDS. Exit status: 0 when it switched itself off after all
# tests had run and none had failed.

import json
import os
import signal
import subprocess
import sys
import time

# Exit statuses: Meson's for a skipped test, and what the shell makes of SIGKILL, which is how the limit ends one.
SKIPPED = 77
KILLED = 137


class Results:
    def __init__(self, out):
        with open(os.path.join(out, "tests"), encoding="utf-8") as file:
            self.left = file.read().split()
        self.count = len(self.left)
        self.file = open(os.path.join(out, "testlog.json"), "w", encoding="utf-8")
        self.failed = 0

    def add(self, name, result, status, output, seconds):
        self.left.remove(name)
        good = result in ("OK", "SKIP")
        self.failed += not good
        record = {"name": f"svm:{name}", "result": result, "returncode": status, "stdout": output}
        print(json.dumps(record), file=self.file, flush=True)
        place = f"{self.count - len(self.left):3}/{self.count}"
        print(f"{place} svm:{name:<36} {result:<8} {seconds:6.1f}s", flush=True)
        if not good and output.strip():
            print("-" * 40 + "\n" + output.rstrip() + "\n" + "-" * 40, flush=True)


def result_of(status):
    if status == 0:
        return "OK"
    if status == SKIPPED:
        return "SKIP"
    return "TIMEOUT" if status == KILLED else "FAIL"


class Lane:
    """One serial port, on which tests run one after the other."""

    def __init__(self, path, word, results):
        self.file = open(path, "rb")
        self.prefix = word + " "
        self.results = results
        self.partial = b""
        self.finished = False
        self.test, self.began, self.output = None, 0.0, []

    def read(self):
        """Takes what has come since the last time."""
        *lines, self.partial = (self.partial + self.file.read()).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace").rstrip("\r")
            if text.startswith(self.prefix):
                self.serve(*text[len(self.prefix):].strip().partition(" ")[::2])
            else:
                self.output.append(text + "\n")

    def serve(self, what, rest):
        if what == "begin":
            self.test, self.began, self.output = rest, time.monotonic(), []
        elif what == "end":
            status = int(rest.rpartition(" ")[2])
            self.end(result_of(status), status)
        elif what == "finish":
            self.finished = True
        else:
            print(f"svm: {what} {rest}", flush=True)

    def end(self, result, status):
        """Notes how the test that runs has ended, if one does."""
        if self.test is not None:
            seconds = time.monotonic() - self.began
            self.results.add(self.test, result, status, "".join(self.output), seconds)
            self.test = None


def run(command, lanes, seconds, errors):
    """Runs the machine until it ends, or is ended. Returns what was wrong with it, or None."""
    deadline = time.monotonic() + seconds
    machine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
    try:
        while machine.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
            for lane in lanes:
                lane.read()
        if machine.poll() is None:
            return f"switched off after {seconds} seconds"
        if machine.returncode != 0:
            return f"{command[0]} failed with status {machine.returncode}"
        return None
    finally:
        machine.kill()
        machine.wait()


def main():
    word, seconds, out, *command = sys.argv[1:]
    results = Results(out)
    names = [part[:-len(".log")] for part in sorted(os.listdir(out)) if part.startswith("lane-")]
    lanes = [Lane(os.path.join(out, name + ".log"), word, results) for name in names]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))

    with open(os.path.join(out, "qemu.log"), "wb") as errors:
        trouble = run(command, lanes, float(seconds), errors)
    for lane in lanes:
        lane.read()
        lane.end("ERROR", "unknown")
    for name in list(results.left):
        results.add(name, "ERROR", "unknown", "", 0)
    if trouble is None and not all(lane.finished for lane in lanes):
        trouble = "the machine went away before all tests had run"
    if trouble is not None:
        print(f"svm: {trouble}", flush=True)
        for name in ["qemu.log", "console.log"]:
            with open(os.path.join(out, name), encoding="utf-8", errors="replace") as file:
                print("".join(file.readlines()[-40:]), end="", flush=True)
    return 1 if trouble is not None or results.failed else 0


sys.exit(main())
