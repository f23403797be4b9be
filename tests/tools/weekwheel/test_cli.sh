#!/bin/bash
# The program weekwheel as its users call it. WEEKWHEEL names another program than the one of the build folder.
# tier: check
set -uo pipefail

cd "$(dirname "$0")/../../.." || exit 1
weekwheel=$(realpath "${WEEKWHEEL:-${B:-build}/bin/weekwheel}")
program=$weekwheel
traces=${WW_TRACES:-$PWD/../shared/traces}
source tests/support/cli.sh

# json KEY: print the value of the key in the summary in the file out
json() {
	sed -n "s/^  \"$1\": \([^,]*\),*\$/\1/p" out
}

counts() { # EVENTS SCHEDULED REFRESHED CANCELLED EXPIRED PENDING UNREADABLE
	equal "$what: counts" "$(for key in events scheduled refreshed cancelled expired pending unreadable_lines; do
		json "$key"
	done | paste -sd' ')" "$*"
}

# ---- Inputs ------------------------------------------------------------------------------------------------------

cat >jobs.swf <<'END'
; Version: 2.2
; MaxJobs: 4
    1        0     10    120    4  118.5   -1    4   600    -1  1   1   1  -1 -1  1 -1 -1
    2        5     -1   4000    4     -1   -1    4  3600    -1  1   2   1  -1 -1  1 -1 -1
    3       20      0     30    1     -1   -1    1    -1    -1  0   3   1  -1 -1  1 -1 -1
    4       30      0     60    1     -1   -1    1    60    -1  0   3   1  -1 -1  1 -1 -1
END
cat >access.log <<'END'
192.0.2.1 - - [01/Mar/2024:10:00:00 +0000] "GET / HTTP/1.1" 200 512
192.0.2.1 - - [01/Mar/2024:10:20:00 +0000] "GET /a HTTP/1.1" 304 - "-" "agent"
192.0.2.2 - - [01/Mar/2024:11:10:00 +0100] "GET / HTTP/1.1" 200 512
192.0.2.1 - - [01/Mar/2024:10:40:00 +0000] "GET /b HTTP/1.1" 200 512
192.0.2.1 - - [01/Mar/2024:12:00:00 +0000] "GET /c HTTP/1.1" 200 512
END
cat >events.csv <<'END'
# a comment
time,event,key,timeout
0,set,a,60
0.25,set,"b,c",3600.5
30,refresh,a,60
31,cancel,nobody,
5000,cancel,"b,c"
5000,set,far,700000
END

# ---- Formats -----------------------------------------------------------------------------------------------------

run 0 replay --json --verify jobs.swf
counts 6 3 0 1 2 0 0
equal "$what: the job without a limit" "$(grep -o '"jobs_without_limit": [0-9]*' out)" '"jobs_without_limit": 1'
equal "$what: verified" "$(json verified)" true
equal "$what: lateness" "$(json max_late_ticks)" 0
equal "$what: size of a timer" "$(json bytes_per_timer)" 48
run 0 replay jobs.swf
says out 'jobs.swf: Standard Workload Format, 6 lines'
says out 'without a limit +1'
is_empty err

run 0 replay --json --verify access.log
counts 5 3 2 0 2 1 0
run 0 replay --json --verify --timeout 10m access.log
counts 5 5 0 0 4 1 0
run 0 replay --json --verify --timeout=2h access.log
counts 5 2 3 0 0 2 0
run 0 replay access.log
says out '2024-03-01 10:00:00 to 2024-03-01 12:00:00 UTC'
says out 'out of order +1 '

run 0 replay --json --verify events.csv
counts 6 3 1 0 2 1 0
equal "$what: cancels of idle timers" "$(json idle_cancels)" 2
run 0 replay --json --verify --to-end events.csv
counts 6 3 1 0 3 0 0
equal "$what: the end" "$(json end_tick)" 705000
run 0 replay --json --every-tick events.csv
equal "$what: one advance a tick" "$(json advances)" 5000

run 0 replay --json access.log jobs.swf events.csv
counts 17 9 3 1 7 1 0

for file in jobs.swf access.log events.csv; do
	"$weekwheel" replay --emit "$file" >plain 2>/dev/null
	gzip -k "$file"
	run 0 replay --emit "$file.gz"
	equal "$what: as without gzip" "$(cat out)" "$(cat plain)"
	equal "$what: from standard input" "$("$weekwheel" replay --emit - <"$file" 2>/dev/null)" "$(cat plain)"
	equal "$what: gzip from standard input" "$("$weekwheel" replay --emit - <"$file.gz" 2>/dev/null)" "$(cat plain)"
	sed 's/$/\r/' "$file" >"crlf-$file"
	equal "$what: CRLF" "$("$weekwheel" replay --emit "crlf-$file" 2>&1 >/dev/null | grep -c :)" \
		"$("$weekwheel" replay --emit "$file" 2>&1 >/dev/null | grep -c :)"
	equal "$what: CRLF" "$("$weekwheel" replay --emit "crlf-$file" 2>/dev/null)" "$(cat plain)"
	printf '\xef\xbb\xbf%s' "$(cat "$file")" >"mark-$file"
	equal "$what: a mark, no last line end" "$("$weekwheel" replay --emit "mark-$file" 2>/dev/null)" "$(cat plain)"
done
run 1 replay --format csv jobs.swf
says err 'jobs.swf:1: '

# ---- What is written ---------------------------------------------------------------------------------------------

run 0 replay --emit jobs.swf
equal "$what: lines" "$(cat out)" "$(printf '90\t4\n3605\t2')"
says err 'timers set +3'
run 0 replay --emit access.log
equal "$what: lines" "$(cat out)" "$(printf '1709289600\t192.0.2.2\t0\t1\n1709291400\t192.0.2.1\t2400\t3')"
run 0 replay --emit --json access.log
says err '"expired": 2'
says_not out expired
printf '0,set,"a\tb\\\x01",1\n5,cancel,x\n' >odd.csv
run 0 replay --emit odd.csv
equal "$what: an odd key" "$(cat out)" "$(printf '1\ta\\tb\\\\\\x01\t0\t1')"

if command -v python3 >/dev/null; then
	for file in jobs.swf access.log events.csv "$(printf 'odd "\\\x01\xff name.csv')"; do
		[ -f "$file" ] || cp events.csv "$file"
		run 0 replay --json "$file"
		if python3 -c 'import json, sys
keys = """events scheduled refreshed cancelled expired pending max_late_ticks max_advance_ns p9999_advance_ns
	peak_timers bytes_per_timer operations_per_second unreadable_lines""".split()
assert list(json.load(sys.stdin.buffer))[:len(keys)] == keys' <out; then
			ok
		else
			fail "$what: not the JSON that is promised"
		fi
	done
else
	skip 'no python3 to read JSON with: Debian has it in the package python3'
fi

summary() { # ARGUMENT...: print what must survive a round trip
	"$weekwheel" replay --json --verify "$@" 2>&1 |
		grep -E '^  "(events|scheduled|refreshed|cancelled|expired|pending|peak_timers|idle_cancels|end_tick|verified)"'
}
for file in jobs.swf access.log events.csv; do
	run 0 replay --write-csv copy.csv "$file"
	equal "$what: round trip" "$(summary copy.csv)" "$(summary "$file")"
	run 0 replay --write-csv copy.csv.gz "$file"
	equal "$what: compressed" "$(zcat copy.csv.gz)" "$(cat copy.csv)"
	run 0 replay --write-csv - "$file"
	equal "$what: on standard output" "$(cat out)" "$(cat copy.csv)"
	says err 'timers set'
done

run 0 replay
says out 'SYNTHETIC'
says out 'seed 1'
run 0 replay --sessions 2000 --seed 7 --json --verify
equal "$what: synthetic" "$(json synthetic) $(json seed) $(json sessions)" 'true 7 2000'
equal "$what: verified" "$(json verified)" true
cp out first
# An output that is an input is refused, and the input stays.
cp jobs.swf same.swf
ln -s same.swf link.swf
for name in same.swf link.swf; do
	run 2 replay --write-csv "$name" same.swf
	says err 'is the input'
	equal "$name after that" "$(cat same.swf)" "$(cat jobs.swf)"
done
run 0 replay -
says out 'no events'
run 0 replay --sessions 2000 --seed 7 --json --write-csv week.csv
equal "$what: the same again" "$(grep -E '"(events|expired|peak_timers)"' out)" "$(grep -E '"(events|expired|peak_timers)"' first)"
says week.csv '^# synthetic'
equal "$what: round trip" "$(summary week.csv)" "$(summary --sessions 2000 --seed 7)"
equal 'the synthetic week is the same on every machine' "$(tail -n +2 week.csv | cksum)" '3487657762 289495'

# ---- What cannot be read -----------------------------------------------------------------------------------------

{ cat jobs.swf && echo '5 x 3' && printf 'a\0b\n' && sed -n 3p jobs.swf; } >bad.swf
run 1 replay --json bad.swf
counts 8 4 0 2 2 0 2
says err '^bad.swf:7: 3 fields; expected the 18 numbers of a job'
says err '^bad.swf:8: 1 fields'
run 1 replay bad.swf
says out 'UNREADABLE LINES +2'
run 1 replay --strict bad.swf
says err '^bad.swf:7: '
says_not err '^bad.swf:8: '
is_empty out

sed 's/01.Mar/32\/Mar/' access.log >bad.log
cat access.log >>bad.log
run 1 replay --json bad.log
counts 5 3 2 0 2 1 5
says err '^bad.log:1: there is no time .32/Mar/2024'

seq 1 100000 >numbers
run 1 replay --json numbers
counts 0 0 0 0 0 0 100000
equal "$what: messages end" "$(grep -c '^numbers:' err)" 20
says err '99980 more lines could not be read'
{ echo hello && head -c 300000 /dev/urandom; } >garbage
run 1 replay garbage
says err "^garbage:1: 'hello' is of no known format"

printf '0,set,a,99999999999999999999\n99999999999999999999,set,a,1\n-5,set,a,1\n9223372036854775807,set,a,1\n5,set,a,-1\n7,set,a,9\n' >huge.csv
run 1 replay --json huge.csv
counts 1 1 0 0 0 1 5
printf '9223372036854775806,set,a,1\n9223372036854775807,cancel,b\n' >last.csv
run 0 replay --json --verify last.csv
counts 2 1 0 0 1 0 0

{ printf '0,set,' && head -c 10000000 /dev/zero | tr '\0' k && printf ',5\n10,cancel,b\n' && head -c 10000000 /dev/zero && echo; } >long.csv
run 1 replay --json long.csv
counts 2 1 0 0 1 0 1

: >empty
run 0 replay --json empty
counts 0 0 0 0 0 0 0
run 0 replay --verify /dev/null
says out 'no events'

run 1 replay nowhere.swf
says err 'nowhere.swf: No such file'
is_empty out
run 1 replay .
says err 'is a directory; name the files'
run 1 replay jobs.swf nowhere.swf
is_empty out
head -c 100 access.log.gz >cut.gz
run 1 replay --json cut.gz
says err 'cut.gz: the gzip data ends too early'
says out '"complete": false'
{ head -c 60 access.log.gz && printf 'XXXXXXXXXX' && tail -c +71 access.log.gz; } >damaged.gz
run 1 replay --json damaged.gz
says err 'damaged.gz: the gzip data'

# ---- The command line --------------------------------------------------------------------------------------------

run 0 --help
says out "move in a crontab"
says out 'weekwheel replay --verify'
run 0 --version
says out '^weekwheel [0-9]'
for help in 'replay --help' 'help replay' 'replay -h jobs.swf'; do
	# shellcheck disable=SC2086
	run 0 $help
	says out '^Examples:'
	says out 'time,event,key,timeout'
	is_empty err
done
run 2
says err Usage
run 2 repaly
says err "did you mean 'replay'"
run 2 banana
says err "Try 'weekwheel --help'"
run 2 help banana
run 2 replay --verfy
says err "did you mean '--verify'"
run 2 replay --write jobs.swf
says err "did you mean '--write-csv'"
run 2 replay --banana
says err "unknown option '--banana'"
run 2 replay -x
says err "unknown option '-x'"
run 2 replay --timeout
says err '--timeout needs a value'
run 2 replay --timeout 30x access.log
says err 'such as 30m'
run 2 replay --timeout 0 access.log
run 2 replay --format xml access.log
says err 'swf, log or csv'
run 2 replay --json=yes
run 2 replay --sessions 0
run 2 replay --seed -1
run 2 replay --seed 1 jobs.swf
says err 'synthetic'
run 2 replay - -
run 2 replay --emit --write-csv - jobs.swf
cp jobs.swf ./--odd
run 0 replay -- --odd
run 0 replay -jVt 30m access.log
equal "$what: short options" "$(json verified)" true

run 2 bench
says err "unknown command 'bench'.*weekwheel-bench"
says err "'make bench'"

# ---- Outputs that fail -------------------------------------------------------------------------------------------

"$weekwheel" replay --emit --sessions 50000 2>err | head -n 1 >out
status=${PIPESTATUS[0]}
what='weekwheel replay --emit | head -n 1'
equal "$what: status" "$status" 0
says err 'timers set'
says_not err 'standard output'
"$weekwheel" replay --write-csv - --sessions 50000 2>err | head -n 1 >out
equal 'weekwheel replay --write-csv - | head: status' "${PIPESTATUS[0]}" 0

if [ -w /dev/full ]; then
	for arguments in 'replay jobs.swf' 'replay --json jobs.swf' 'replay --emit --sessions 20000' \
		'replay --emit jobs.swf' --help --version 'help replay' 'replay --write-csv - jobs.swf'; do
		what="weekwheel $arguments >/dev/full"
		status=0
		# shellcheck disable=SC2086
		"$weekwheel" $arguments >/dev/full 2>err || status=$?
		equal "$what: status" "$status" 1
		equal "$what: said once" "$(grep -c 'standard output: No space left on device' err)" 1
	done
	run 1 replay --write-csv /dev/full jobs.swf
	says err '/dev/full: No space left on device'
	run 1 replay --write-csv nowhere/x.csv jobs.swf
	says err 'nowhere/x.csv: No such file'
else
	skip 'no /dev/full'
fi

# ---- A wheel that is wrong ---------------------------------------------------------------------------------------

cat >late.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
int ww_wheel_schedule_at(void *wheel, void *timer, uint64_t deadline)
{
	int (*real)(void *, void *, uint64_t) = (int (*)(void *, void *, uint64_t))dlsym(RTLD_NEXT, "ww_wheel_schedule_at");
	return real(wheel, timer, deadline + 1);
}
END
if [ -n "${SANITIZE:-}" ]; then
	skip 'a wheel that is wrong cannot be put before a sanitizer'
elif ! ldd "$weekwheel" | grep libweekwheel >/dev/null; then
	skip 'a wheel that is wrong cannot be put before a static one'
elif ! "${CC:-cc}" -shared -fPIC -w -o late.so late.c -ldl 2>/dev/null; then
	skip 'no compiler to make a wrong wheel with'
else
	export LD_PRELOAD=$work/late.so
	run 3 replay --verify jobs.swf
	says err "VERIFY FAILED: at 90, key '4': the wheel did not expire it; the oracle expires it then"
	says out 'VERIFY: FAILED'
	run 3 replay --verify --json jobs.swf
	equal "$what: verified" "$(json verified)" false
	unset LD_PRELOAD
fi

# ---- Real inputs -------------------------------------------------------------------------------------------------

for file in hpc2n.swf LCG.swf.gz access-elastic.log; do
	if [ ! -f "$traces/$file" ]; then
		skip "$file: WW_TRACES names no folder that has it"
		continue
	fi
	run 0 replay --json --verify "$traces/$file"
	equal "$what: verified, late" "$(json verified) $(json max_late_ticks)" 'true 0'
	case $file in
	hpc2n.swf) counts 6315 3170 0 2821 349 0 0 ;;
	LCG.swf.gz) counts 376082 188041 0 185842 2199 0 0 ;;
	access-elastic.log) counts 10000 3052 6948 0 3027 25 0 ;;
	esac
	"$weekwheel" replay --write-csv real.csv "$traces/$file" >/dev/null
	equal "$file: round trip" "$(summary real.csv)" "$(summary "$traces/$file")"
done

finish
