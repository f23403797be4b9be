#!/bin/bash
# The simulation of weeks: one seed gives one run, and other seeds give others.
set -u

if [ -n "${SANITIZE:-}" ]; then
	echo "skipped: sanitizers stand before the functions that are simulated"
	exit 77
fi

cd "$(dirname "$0")/../.." || exit 1
program=$(realpath "${B:-build}")/tests/simulate
source tests/support/cli.sh

# trace ARGUMENT...: what of the last run's output tells all that has happened
trace() {
	sed -n 's/.*; trace //p' "$work/out"
}

run 0 --weeks 1 --seed 7
first=$(trace)
run 0 --weeks 1 --seed 7
if [ -n "$first" ] && [ "$(trace)" = "$first" ]; then ok; else fail "the seed 7 gives two different runs"; fi
run 0 --weeks 1 --seed 8
if [ "$(trace)" != "$first" ]; then ok; else fail "two seeds give the same run"; fi
# What a run did does not change the next one.
second=$(trace)
run 0 --weeks 2 --each 1 --seed 7
if [ "$(printf '%x' $((0x$first + 0x$second)))" = "$(printf '%x' $((0x$(trace))))" ]; then
	ok
else
	fail "a run changes the one after it"
fi
run 2 --weeks
run 2 --weeks many
run 0 --help

finish
