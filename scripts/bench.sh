#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs the benchmarks of a build directory that is built: `bench.sh BUILD [NAME]`. Prints tables and writes
# BUILD/bench.json, or BUILD/bench-NAME.json for one benchmark.
set -eu

cd "$(dirname "$0")/.."
build=$1
name=${2:-}

exec "$build/bench/pinhole-bench" --guests "$build/guests" --bench-guests "$build/bench/guests" \
    --output "$build/bench${name:+-$name}.json" ${name:+"$name"}
