#!/bin/bash
# The test runner: tests whose process is killed, the order of the results, the hint at a failed random test, misspelt
# names, what a test says of itself, and tests that fail once.
# tier: check, waits, no-sanitizers
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${B:-build}")
source tests/support/cli.sh
folder=$work
mkdir "$folder/tests"
out=$folder/out

runner=$PWD/scripts/run-tests

script() { # NAME [TRAIT], its lines on input
	{
		echo "# tier: check${2:+, $2}"
		cat
	} >"$folder/$1"
	chmod +x "$folder/$1"
}

program() { # NAME, its lines on input
	cat >"$folder/tests/$1"
	chmod +x "$folder/tests/$1"
}

# Runs the files with a bare environment. The output is in $out.
run() { # JOBS FILE...
	local jobs=$1
	shift
	env -u SANITIZE -u WW_MODEL_OPS -u WW_SEED UNSTEADY="${unsteady-}" WRAP="${wrap-}" T="${chosen-}" TEST_SECONDS="${limit-}" \
		B="$folder" TEST_JOBS="$jobs" OUT="$out" scripts/run-tests "$@" >"$out" 2>&1
}

ends() { # WHAT CONDITION...
	local what=$1
	shift
	if "$@" >/dev/null; then ok; else fail "$what"; fi
}

last() { # LINE
	[ "$(tail -n 1 "$out")" = "$1" ]
}

script quick.sh <<'END'
exit 0
END
script skips.sh <<'END'
exit 77
END
script slow.sh <<'END'
# Ends when the result of a script that began later is shown.
for ((i = 0; i < 600; i++)); do
	if grep -q quick "$OUT"; then
		exit 0
	fi
	sleep 0.1
done
exit 1
END
script hangs.sh <<'END'
exec sleep 100
END
script methods.py <<'END'
import sys
def test_one(self): pass
def test_two(self): pass
print("1 passed, 0 failed" if sys.argv[1:] == ["-k", "test_two"] else "2 passed, 0 failed")
END
program test_cases <<'END'
#!/bin/sh
echo "ok 1 - cases.c:a_case:a_case: Passed" >"$CK_TAP_LOG_FILE_NAME"
END
program test_dies <<'END'
#!/bin/sh
echo "ok 1 - dies.c:first:first: Passed" >"$CK_TAP_LOG_FILE_NAME"
exit 77
END
program ../fuzz_finds <<'END'
#!/bin/sh
case $1 in -max_total_time=*) exit 77 ;; esac
END
program ../fuzz_nothing <<'END'
#!/bin/sh
END
program test_random <<'END'
#!/bin/sh
[ -z "$CK_RUN_CASE" ] || exit 0
echo "test_random: seed 4711"
echo "other_case: seed 17"
echo "not ok 1 - random.c:one_case:one_case: wrong" >"$CK_TAP_LOG_FILE_NAME"
echo "not ok 2 - random.c:other_case:other_case: wrong" >>"$CK_TAP_LOG_FILE_NAME"
exit 1
END

run 2 "$folder"/{slow,quick,skips}.sh
ends 'what has ended is shown while others run' last '2 passed, 0 failed, 1 skipped'

for jobs in 1 2; do
	for trait in '' waits alone; do
		script killed.sh "$trait" <<'END'
echo "about to be killed"
kill -KILL $$
END
		script limit_killed.sh "$trait" <<'END'
# Its parent is the process that limits its time.
kill -KILL "$PPID"
END
		run "$jobs" "$folder"/{killed,limit_killed,quick,skips}.sh
		ends "tests are killed, $jobs at a time, $trait" last '1 passed, 2 failed, 1 skipped'
		for name in killed limit_killed; do
			ends "a test that was killed is named, $jobs at a time, $trait" \
				grep -E "^  FAIL  $name +0 passed, 1 failed, killed by SIGKILL" "$out"
		done
		ends "what it said is shown, $jobs at a time, $trait" grep -x '        about to be killed' "$out"
	done
done

limit=3 run 2 "$folder"/{hangs,quick}.sh
ends 'a test that hangs is ended' grep -E '^  FAIL  hangs +0 passed, 1 failed, ended because it took over 3 s' "$out"
ends 'a test that hangs hides no other' last '1 passed, 1 failed'

chosen='q* slow*' run 2 "$folder"/{quick,hangs,skips}.sh
ends 'names by patterns' last '1 passed, 0 failed'
chosen=a_case run 2 "$folder"/tests/test_{random,cases} "$folder/quick.sh"
ends 'a Check case by its name' last '1 passed, 0 failed'
chosen=test_two run 2 "$folder"/tests/test_random "$folder/methods.py"
ends 'a Python test by its name' last '1 passed, 0 failed'
chosen=quack run 2 "$folder"/{quick,hangs,skips}.sh
ends 'a name that is none is said' grep -x 'There is no test program, script, Check case or Python test named quack.' "$out"
ends 'a name that is none fails' last '0 passed, 1 failed'
run 1 "$folder"/tests/test_{cases,dies}
ends 'a Check program that dies between tests has failed' last '2 passed, 1 failed'

FUZZ_SECONDS=1 wrap=scripts/fuzz run 1 "$folder"/fuzz_{finds,nothing}
ends 'a fuzzer that finds something has failed' last '1 passed, 1 failed'
ends 'a failed fuzzer is told to be run on the file' grep -F "again: $folder/fuzz_finds FILE" "$out"

run 1 "$folder/tests/test_random"
ends 'failures are counted' last '0 passed, 2 failed'
ends 'a seed under the name of the program' grep -F "to debug: WW_SEED=4711 CK_FORK=no CK_RUN_CASE='one_case'" "$out"
ends 'a seed under the name of the case' grep -F "to debug: WW_SEED=17 CK_FORK=no CK_RUN_CASE='other_case'" "$out"

# Each notes that it runs; the one that is alone looks for a while whether another does.
for name in first second; do
	script $name.sh <<END
touch "$folder/$name.runs"; sleep 0.3; rm "$folder/$name.runs"
END
done
script by_itself.sh alone <<END
for ((i = 0; i < 20; i++)); do ! ls "$folder"/*.runs 2>/dev/null || exit 1; sleep 0.02; done
END
run 3 "$folder"/{by_itself,first,second}.sh
ends 'a test that is alone has nothing beside it' last '3 passed, 0 failed'

# What took longest the last time comes first, also if that was in the build above.
for name in one two three; do
	script $name.sh <<END
echo $name >>"$folder/order"
END
done
took() { # FOLDER SECONDS SECONDS: of one and of two
	mkdir -p "$1/tests/log"
	printf '{"name": "%s", "seconds": %s}\n' one "$2" two "$3" >"$1/tests/log/results.jsonl"
}
took "$folder" 2 5.5
run 1 "$folder"/{three,one,two}.sh
ends 'the longest first' diff "$folder/order" <(printf '%s\n' two one three)
took "$folder" 5 3
rm "$folder/order"
B=$folder/below T='' TEST_JOBS=1 scripts/run-tests "$folder"/{three,two,one}.sh >"$out" 2>&1
ends 'the longest of another build first' diff "$folder/order" <(printf '%s\n' one two three)

# A test that fails is run again with its seed, and once more.
script once.sh <<END
echo "seed 4711"
echo "seed of run: \${WW_SEED-none}" >>"$folder/seeds"
[ "\$(wc -l <"$folder/seeds")" != 1 ]
END
script always.sh <<'END'
exit 1
END
script third.sh <<END
echo run >>"$folder/third"
[ "\$(wc -l <"$folder/third")" = 2 ]
END
run 2 "$folder/once.sh"
ends 'outside CI a test has one chance' last '0 passed, 1 failed'
rm "$folder/seeds"
unsteady=$folder/unsteady run 2 "$folder"/{once,quick,always,third}.sh
ends 'a test that passes twice after it failed counts as passed' last '2 passed, 2 failed'
ends 'it is named' grep -E '^  UNSTEADY once +1 failed once and passed when run again, seed 4711' "$out"
ends 'its first log is kept' grep -x 'seed 4711' "$folder/unsteady"/*.once.log
ends 'it is alone in being kept' test "$(find "$folder/unsteady" -name '*.log' | wc -l)" = 1
ends 'it is run with its seed, then with another' test "$(cat "$folder/seeds")" = "seed of run: none
seed of run: 4711
seed of run: none"

# What is a fault whether it comes again or not.
chance() { # LINE STATUS
	rm -f "$folder/chance"
	script chance.sh <<END
echo run >>"$folder/chance"
[ "\$(wc -l <"$folder/chance")" = 1 ] || exit 0
echo "$1"
exit $2
END
	unsteady=$folder/unsteady run 2 "$folder/chance.sh"
}
chance 'WARNING: ThreadSanitizer: data race (pid=7)' 66
ends "a sanitizer's report gets no second chance" last '0 passed, 1 failed'
chance '==7== Invalid read of size 8' 1
ends "valgrind's report gets no second chance" last '0 passed, 1 failed'
chance 'skipped: too busy' 1
ends 'what fails otherwise gets one' last '1 passed, 0 failed'
FUZZ_SECONDS=1 chance 'found' 1
ends 'a fuzzer gets no second chance' last '0 passed, 1 failed'
script skips_then.sh <<END
[ -e "$folder/skipped" ] && exit 77
touch "$folder/skipped"
exit 1
END
unsteady=$folder/unsteady run 2 "$folder/skips_then.sh"
ends 'a skip is no pass' last '0 passed, 1 failed'
program test_seeds <<'END'
#!/bin/sh
echo "test_seeds: seed 1000"
echo "test_seeds: seed 200"
if [ "$WW_SEED" = 200 ] || { [ -z "$WW_SEED" ] && [ ! -e "$B/seeds_failed" ]; }; then
	touch "$B/seeds_failed"
	echo "not ok 1 - seeds.c:one:one: wrong" >"$CK_TAP_LOG_FILE_NAME"
	exit 1
fi
echo "ok 1 - seeds.c:one:one: Passed" >"$CK_TAP_LOG_FILE_NAME"
END
unsteady=$folder/unsteady run 2 "$folder/tests/test_seeds"
ends 'each seed that was printed is tried again' last '0 passed, 1 failed'

run 2
ends 'nothing to run fails' last '0 passed, 1 failed'
chosen='quick quack' run 2 "$folder"/{quick,skips}.sh
ends 'a name that is none fails beside others' last '1 passed, 1 failed'

# What a test says of itself.
mkdir -p "$folder/tree/tests"
says() { # NAME LINE...
	printf '%s\n' '/* A test. */' "${@:2}" >"$folder/tree/tests/$1.c"
}
chosen() { # RESULT TIERS WANTED UNWANTED NAME...
	local wanted=$1
	shift
	(cd "$folder/tree" && "$runner" --choose "$@" >"$out" 2>&1)
	[ "$(tr '\n' ' ' <"$out")" = "${wanted:+$wanted }" ]
}
says test_a '/* tier: quick */'
says test_b '/* tier: check, threads, no-valgrind (it races threads) */' '/* needs: tests/helper examples/other */'
says test_c '/* tier: long, threads, no-valgrind (so slow, alone) */'
ends 'tests of a tier' chosen test_a quick '' '' test_a test_b test_c
ends 'tests of two tiers' chosen 'test_a test_c' 'quick long' '' '' test_a test_b test_c
ends 'tests with a trait' chosen 'test_b test_c' 'quick check long' threads '' test_a test_b test_c
ends 'tests without a trait' chosen 'test_a' 'quick check long' '' no-valgrind test_a test_b test_c
ends 'a reason is no trait' chosen '' 'long' alone '' test_c

# Valgrind looks at a process, and cases share one unless the test says that it forks.
says test_e '/* tier: quick, forks */'
cat >"$folder/tree/valgrind" <<'END'
#!/bin/sh
exec "$@"
END
for name in a e; do
	cat >"$folder/tree/test_$name" <<END
#!/bin/sh
echo "$name \${CK_FORK-yes}" >>"$folder/forks"
END
done
chmod +x "$folder/tree"/{valgrind,test_a,test_e}
(cd "$folder/tree" && env -u CK_FORK PATH="$PWD:$PATH" B="$folder/tree" WRAP=valgrind TEST_JOBS=1 "$runner" ./test_a ./test_e >"$out" 2>&1) || true
(cd "$folder/tree" && env -u CK_FORK B="$folder/tree" TEST_JOBS=1 "$runner" ./test_a >"$out" 2>&1) || true
ends 'under valgrind cases share a process' test "$(cat "$folder/forks")" = "a no
e yes
a yes"
ends 'an unknown trait' chosen 'run-tests: there is no trait thread: traits are apart, alone, waits, threads, every-build, core, no-sanitizers, no-valgrind, forks' \
	check thread '' test_a
says test_d '/* tier: fast */'
ends 'an unknown tier' chosen 'run-tests: tests/test_d.c: a tier is one of quick, check, long, a trait one of apart, alone, waits, threads, every-build, core, no-sanitizers, no-valgrind, forks' \
	check '' '' test_d
says test_e ''
ends 'no tier at all' chosen 'run-tests: tests/test_e.c: below its first comment stands "tier: quick|check|long[, TRAIT]..."' \
	check '' '' test_e
ends 'what a test needs' test "$(cd "$folder/tree" && "$runner" --needs test_a test_b)" = 'examples/other tests/helper'

# The Makefile changes nothing in the folders that TESTED names.
script names.sh <<'END'
[ "$TESTED" = "/outer $B" ]
END
TESTED=/outer run 1 "$folder/names.sh"
ends 'a test knows from which folders tests run' last '1 passed, 0 failed'

# What make says first. It builds and runs nothing.
names() { # GOAL VARIABLE=NAMES...
	env -u T -u MAKEFLAGS -u CONFIGURE_FLAGS -u ONLY -u SKIP make -n B="$build" "$@" >"$out" 2>&1
}
wrong() {
	! names "$@"
}
ends 'traits that there are' names check-quick ONLY=threads SKIP='no-valgrind alone'
ends 'a trait that is none' wrong check-quick ONLY=thread

finish
