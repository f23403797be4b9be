#!/bin/bash
# scripts/find-flakes: what it runs and how often, the list of what did not pass each time, the logs, the busy processes, and
# a run that does not come to its end.
# tier: check, no-sanitizers
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
source tests/support/cli.sh
B=$work/build
logs=$B/tests/log
mkdir -p "$logs"
out=$work/out

# Plays make: says what it was asked for, and leaves what run-tests leaves. Fail is in the name of a test that fails.
cat >"$work/make" <<'END_OF_MAKE'
#!/bin/bash
turn=$(($(cat "$WORK/turn" 2>/dev/null || echo 0) + 1))
echo "$turn" >"$WORK/turn"
echo "$*, unsteady ${UNSTEADY-none}, busy $(($(cat /proc/"$PPID"/task/*/children | wc -w) - 1))" >>"$WORK/asked"
logs=$B/tests/log
names=$(sed -n "${turn}p" "$WORK/turns")
[ "$names" != nothing ] || exit 2
for name in $names; do
	bad=$(grep -c '^fail' <<<"$name")
	echo "$name in turn $turn" >"$logs/${name#fail-}.log"
	echo "{\"name\": \"${name#fail-}\", \"passed\": $((3 - bad)), \"failed\": $bad, \"skipped\": 0}" >>"$logs/results.jsonl"
done
! grep -q fail <<<"$names"
END_OF_MAKE
chmod +x "$work/make"

# flakes STATUS TURNS [NAME]...: a line of TURNS has the tests of one run.
flakes() {
	local expected=$1 status=0
	rm -f "$work/turn" "$work/asked"
	echo "$2" >"$work/turns"
	WORK=$work B=$B MAKE=$work/make RUNS=$(wc -l <"$work/turns") LOAD=${load-0} TIER=${tier-} UNSTEADY=$work/unsteady \
		scripts/find-flakes "${@:3}" >"$out" 2>&1 || status=$?
	equal "status of $2" "$status" "$expected"
}

says() { # LINE
	if grep -qxF "$1" "$out"; then ok; else fail "it does not say: $1, but $(cat "$out")"; fi
}

flakes 0 $'test_a test_b\ntest_a test_b'
says 'run 2 of 2: 6 passed'
says '2 of 2 runs green, tier check, 0 busy processes beside them'
equal 'what make is asked for' "$(sed -n 1p "$work/asked")" "--no-print-directory check B=$B T=, unsteady none, busy 0"

load=3 tier=long flakes 1 $'test_a fail-test_b\ntest_a test_b\nfail-test_a fail-test_b' 'test_*'
says 'run 1 of 3: 5 passed, test_b FAILED'
says "test_a: failed in 1 of 3: $B/flakes/test_a.3.log"
says "test_b: failed in 2 of 3: $B/flakes/test_b.1.log, $B/flakes/test_b.3.log"
says '1 of 3 runs green, tier long, 3 busy processes beside them'
equal 'a tier, tests and load' "$(sed -n 1p "$work/asked")" "--no-print-directory check-long B=$B T=test_*, unsteady none, busy 3"
equal 'the log of a failure' "$(cat "$B/flakes/test_b.1.log")" 'fail-test_b in turn 1'

# What an earlier run left is no result of this one.
flakes 1 $'test_a\nnothing'
says "find-flakes: run 2 did not come to its end: $B/flakes/run.2.log"
tier=slow flakes 1 test_a
says 'find-flakes: TIER is quick, check or long, not slow'
finish
