#!/bin/bash
# The simulation of weeks of sessions: one seed gives one run, its judge sees faults, and other seeds show none.
# tier: long
# needs: tests/simulate_sessions
set -u

case ${SANITIZE:-} in
*thread*)
	echo "skipped: threads are simulated"
	exit 77
	;;
esac

# A server that is killed while it opens its folder gives that memory back with its process, and here there is one process.
export ASAN_OPTIONS=detect_leaks=0

cd "$(dirname "$0")/../.." || exit 1
judge=$PWD/tests/support/session_history.py
program=$(realpath "${B:-build}")/tests/simulate_sessions
source tests/support/cli.sh

trace() {
	sed -n 's/.*; trace //p' "$work/out"
}

run 0 --judge "$judge" --weeks 1 --seed 7
first=$(trace)
run 0 --judge "$judge" --weeks 1 --seed 7
if [ -n "$first" ] && [ "$(trace)" = "$first" ]; then ok; else fail "the seed 7 gives two different runs"; fi
run 0 --judge "$judge" --weeks 1 --seed 8
second=$(trace)
if [ "$second" != "$first" ]; then ok; else fail "two seeds give the same run"; fi
# What a run did does not change the next one.
run 0 --judge "$judge" --weeks 2 --each 1 --seed 7
if [ "$(printf '%x' $((0x$first + 0x$second)))" = "$(printf '%x' $((0x$(trace))))" ]; then
	ok
else
	fail "a run changes the one after it"
fi

# The judge sees what is wrong: faults that are put into a history in which what ends is told.
judged() {
	python3 "$judge" "$work/$1" >"$work/said" 2>&1
}
seed=20
until run 0 --weeks 2 --seed "$seed" --history "$work/history" && grep -q '^{"event":"begin".*"tells":true' "$work/history"; do
	seed=$((seed + 1))
done
if judged history; then ok; else fail "a history without faults is judged to be wrong"; fi
python3 - "$work" <<'END'
import json
import sys

folder = sys.argv[1]
with open(folder + "/history", encoding="utf-8") as file:
    events = [json.loads(line) for line in file]
calls = {event["call"]: event for event in events if event["event"] == "call"}
got = [event for event in events if event["event"] == "answer" and calls[event["call"]]["verb"] == "get"]


def write(name, changed):
    with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
        print(*map(json.dumps, changed), sep="\n", file=file)


# Each deadline that was asked for is a minute later, or earlier.
for name, more in ("early", 60), ("late", -60):
    write(name, [{**event, "ttl": max(event["ttl"] + more * 10**9, 1)} if "ttl" in event else event for event in events])
# A value is gone, or another one.
there = [event for event in got if event.get("is")]
write("lost", [{**event, "is": None} if event is there[-1] else event for event in events])
write("other", [{**event, "is": there[0]["is"]} if event is there[-1] else event for event in events])
write("untold", [event for event in events if event["event"] != "told"])
# The last set that was answered with nothing special is told at once.
last = [event for event in events if event["event"] == "answer" and event.get("is") == "OK"
        and calls[event["call"]].get("ttl", 0) > 3600 * 10**9][0]
told = {"event": "told", "t": last["t"], "key": calls[last["call"]]["key"], "value": calls[last["call"]]["value"]}
write("told", [one for event in events for one in ([event, told] if event is last else [event])])
END
for words in 'early:early or lost' 'late:after its end' 'lost:early or lost' 'other:another value' 'untold:was never told' \
	'told:is told early'; do
	fault=${words%%:*}
	if [ -s "$work/$fault" ] && ! judged "$fault"; then ok; else fail "the judge does not see the fault: $fault"; fi
	if grep -q "${words#*:}" "$work/said"; then ok; else fail "of the fault $fault the judge says: $(head -3 "$work/said")"; fi
done

# Weeks of other seeds. A night takes more of them.
run 0 --judge "$judge" --weeks "${WW_WEEKS:-40}" --processes "$(nproc)"

run 2 --weeks
run 2 --weeks many
run 0 --help

finish
