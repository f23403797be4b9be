#!/bin/bash
# The simulation of weeks: one seed gives one run, and other seeds give others.
# tier: long
# needs: tests/simulate
set -u

case ${SANITIZE:-} in
*thread*)
	echo "skipped: threads are simulated"
	exit 77
	;;
esac

# A server that is killed while it opens its store gives that memory back with its process, and here there is one process.
export ASAN_OPTIONS=detect_leaks=0

cd "$(dirname "$0")/../.." || exit 1
judge=$PWD/tests/support/history.py
program=$(realpath "${B:-build}")/tests/simulate
source tests/support/cli.sh

# trace ARGUMENT...: what of the last run's output tells all that has happened
trace() {
	sed -n 's/.*; trace //p' "$work/out"
}

run 0 --judge "$judge" --weeks 1 --seed 7
first=$(trace)
run 0 --judge "$judge" --weeks 1 --seed 7
if [ -n "$first" ] && [ "$(trace)" = "$first" ]; then ok; else fail "the seed 7 gives two different runs"; fi
run 0 --judge "$judge" --weeks 1 --seed 8
if [ "$(trace)" != "$first" ]; then ok; else fail "two seeds give the same run"; fi
# What a run did does not change the next one.
second=$(trace)
run 0 --judge "$judge" --weeks 2 --each 1 --seed 7
if [ "$(printf '%x' $((0x$first + 0x$second)))" = "$(printf '%x' $((0x$(trace))))" ]; then
	ok
else
	fail "a run changes the one after it"
fi

# The judge sees what is wrong: faults that are put into a history.
judged() {
	python3 "$judge" "$work/$1" >"$work/said" 2>&1
}
run 0 --weeks 2 --seed 7 --history "$work/history"
if judged history; then ok; else fail "a history without faults is judged to be wrong"; fi
python3 - "$work" <<'END'
import json
import sys

folder = sys.argv[1]
with open(folder + "/history", encoding="utf-8") as file:
    events = [json.loads(line) for line in file]
delivered = [i for i, event in enumerate(events) if event["event"] == "deliver" and "any" not in event]
calls = {event["call"]: event for event in events if event["event"] == "call"}
ended = {calls[event["call"]]["job"] for event in events if event["event"] == "answer" and event["ok"]
         and event["call"] in calls and calls[event["call"]]["to"] == "gone"}


def write(name, changed):
    with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
        print(*map(json.dumps, changed), sep="\n", file=file)


# Every job is due an hour later than it was.
write("early", [{**event, "due": [time + 3600 * 10**9 for time in event["due"]]} if "due" in event else event
                for event in events])
# A job that has ended was never ended.
one = max(ended)
gone = [event["call"] for event in calls.values() if event["to"] == "gone" and event["job"] == one]
write("lost", [event for event in events if event.get("call") not in gone])
last, before = events[delivered[-1]], events[delivered[-2]]
write("token", [{**event, "token": before["token"]} if event is last else event for event in events])
# A delivery once more, at the end.
end = events[-1]["t"]
write("again", events[:-2] + [{"event": "ask", "t": end, "call": 10**9},
                              {**last, "t": end, "call": 10**9, "token": last["token"] + 1}] + events[-2:])
END
for fault in early lost token again; do
	if [ -s "$work/$fault" ] && ! judged "$fault"; then ok; else fail "the judge does not see the fault: $fault"; fi
done
for words in 'early:s early' 'lost:is lost' 'token:with the token' 'again:is delivered, and is'; do
	judged "${words%%:*}"
	if grep -q "${words#*:}" "$work/said"; then ok; else fail "of the fault ${words%%:*} the judge says: $(head -3 "$work/said")"; fi
done

# Weeks of other seeds. A night takes more of them.
run 0 --judge "$judge" --weeks "${WW_WEEKS:-5}" --processes "$(nproc)"

run 2 --weeks
run 2 --weeks many
run 0 --help

finish
