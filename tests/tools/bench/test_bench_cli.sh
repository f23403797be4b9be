#!/bin/bash
# The program weekwheel-bench as its users call it.
# tier: check
set -uo pipefail

cd "$(dirname "$0")/../../.." || exit 1
program=$(realpath "${B:-build}/bin/weekwheel-bench")
source tests/support/cli.sh

for help in --help '-n 1e3 -h'; do
	# shellcheck disable=SC2086
	run 0 $help
	says out '^Examples:'
	says out '^  Cweek +heartbeat'
	says out '^  weekwheel +this library'
	is_empty err
done
run 2 --structure weekwheel,sundial,linked
says err "structure 'sundial': expected some of weekwheel,weekwheel-many,linked,.*,driver,sleep,map,maps,ww_sleep,nanosleep,driver-64,short,slow,due,.*$"
run 2 --structure weekwheel,
says err "structure 'weekwheel,': expected"
run 2 --workload A,Z,B
says err "workload 'Z': expected some of A,B,O,C30,C1800,Cweek,D,R,E,F,G"
for timers in 99 2e8 '1e4,' 1.5 1e3.5 -5 many '' 0x100 1e3,0X1F4 "1e3,$(printf '%0100d' 1000)"; do
	run 2 --timers "$timers"
	says err 'expected at most 16 numbers from 100 to 1e8, with commas between'
done
run 2 --timers "$(seq -s, 1001 1017)"
says err "timers '1017': expected at most 16 numbers"
for workload in E G E,G; do
	run 2 -n 1e3 -w "$workload" -s floor
	says err 'nothing to measure: none of the structures chosen takes part in the workloads chosen'
	is_empty out
done
for chosen in '-s map -w K' '-s session -w M,T'; do
	# shellcheck disable=SC2086
	run 2 -n 1e3 $chosen
	says err 'nothing was measured: none of the structures chosen is for the workloads chosen'
done
run 2 --repetitions 0
says err 'a number from 1 to 100'
run 2 --limit 0
says err 'seconds, from 1 to 86400'
run 2 --seed x
run 2 --cpu x
says err 'the number of a processor, from 0'
run 2 --cpu 4095
says err 'processors are counted from 0, see nproc'
run 2 --cpus 1
says err "did you mean '--cpu'"
run 2 1e6
says err 'there are options only'
is_empty out

run 0 -n 1e3 -r 1 -w A,E,G -s weekwheel,linked,floor
is_empty err
says out '^  linked +never early, never late'
says out '^  1,000 timers: ns an operation'
says out '^  1 timer: to schedule it and jump over all of it, ns'
equal "$what: bytes a timer" "$(grep -A 9 '^G ' out | awk '$1 == "weekwheel" { print $5 }')" 1.00
equal "$what: rows of each" "$(for structure in weekwheel linked floor; do
	grep -cE "^  $structure( +[0-9.]+){3}" out
done | paste -sd' ')" '4 4 1'

run 0 -n 1e3,2000,1e3 -r 2 -w A,B,E,G -s weekwheel,floor --json --save saved.json
is_empty err
if cmp -s out saved.json; then ok; else fail "$what: the file is not the output"; fi
if command -v python3 >/dev/null; then
	if python3 -c 'import json, sys
whole = json.load(sys.stdin)
assert list(whole) == "command machine seed interrupted structures results left_out checked ticks".split()
assert whole["interrupted"] is False and whole["seed"] == 1 and whole["ticks"] == [] == whole["left_out"]
assert whole["command"] == "weekwheel-bench -n 1e3,2000,1e3 -r 2 -w A,B,E,G -s weekwheel,floor --json --save saved.json"
assert [row["structure"] for row in whole["structures"]] == ["weekwheel", "floor"]
assert whole["checked"] == [{"structure": "weekwheel", "late_s": 0, "wrong": None}]
rows = whole["results"]
keys = "structure workload n metric unit median min max repetitions".split()
assert all(list(row) == keys for row in rows)
assert all(row["min"] <= row["median"] <= row["max"] for row in rows)
names = [(row["structure"], row["workload"], row["n"], row["metric"]) for row in rows]
expected = [("weekwheel", "E", 1, "ns_per_tick"), ("weekwheel", "E", 1, "jump_ns")]
for n in 1000, 2000:
    expected += [(structure, workload, n, "ns_per_op") for structure in ("weekwheel", "floor") for workload in "AB"]
    expected += [("weekwheel", "G", n, "bytes_per_timer")]
assert sorted(names) == sorted(expected)' <out 2>err; then
		ok
	else
		fail "$what: not the JSON that is promised"
	fi
fi

# An error of the file comes before the measurements, which take minutes.
run 1 -n 1e8 --save nowhere/saved.json
says err '^weekwheel-bench: nowhere/saved.json: No such file'
is_empty out

run 0 -n 1e3 -r 1 -w B,E,F -s flat60,flat
says_not out '^  flat60 +A '
says out '^  flat60 +B +1,000 timers: its range is too short'
says out '^  flat60 +E +1 timer: its range'
says out '^  1,000 timers: ns a life'
for repetitions in 2 3; do
	run 0 -n 1e3 -r $repetitions -w D -s flat
	equal "$what: says that stalls are in the ticks" "$(grep -c 'fewer than 3 repetitions' out)" $((3 - repetitions))
done

# ---- An interrupt ------------------------------------------------------------------------------------------------

# The first pass alone takes longer than this waits. Without --foreground the program would get the signal twice, and the
# second one ends it.
what='weekwheel-bench, interrupted'
status=0
timeout --foreground --preserve-status --signal=TERM 2 "$program" -n 1e6 -r 100 -w C30,D -s weekwheel,linked --json --save saved.json >out 2>err || status=$?
equal "$what: status" "$status" 143
says out '^"interrupted": true,'
if cmp -s out saved.json; then ok; else fail "$what: the file is not the output"; fi

# ---- Outputs that fail -------------------------------------------------------------------------------------------

if [ -w /dev/full ]; then
	for arguments in --help '-n 1e3 -w G -s weekwheel' '-n 1e3 -w G -s weekwheel --json'; do
		what="weekwheel-bench $arguments >/dev/full"
		status=0
		# shellcheck disable=SC2086
		"$program" $arguments >/dev/full 2>err || status=$?
		equal "$what: status" "$status" 1
		# The help takes more than one write, and only the last one's reason is known.
		equal "$what: said once" "$(grep -c 'standard output: [Nc]o' err)" 1
	done
	run 1 -n 1e3 -w G -s weekwheel --save /dev/full
	says err '/dev/full: the results could not be written: No space left on device'
	says out '^Correctness'
else
	skip 'no /dev/full'
fi

finish
