#!/bin/bash
# The test runner: tests whose process is killed, the order of the results, the hint at a failed random test, and misspelt
# names.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${B:-build}")
source tests/support/cli.sh
folder=$work
mkdir "$folder/tests"
out=$folder/out

script() { # NAME, its lines on input
	cat >"$folder/$1"
	chmod +x "$folder/$1"
}

# Runs the files with a bare environment. The output is in $out.
run() { # JOBS ASIDE FILE...
	local jobs=$1 aside=$2
	shift 2
	env -u SANITIZE -u WW_MODEL_OPS WRAP="${wrap-}" T="${chosen-}" TEST_SECONDS="${limit-}" B="$folder" TEST_JOBS="$jobs" \
		TEST_ASIDE="$aside" OUT="$out" \
		scripts/run-tests "$@" >"$out" 2>&1
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
script killed.sh <<'END'
echo "about to be killed"
kill -KILL $$
END
script limit_killed.sh <<'END'
# Its parent is the process that limits its time.
kill -KILL "$PPID"
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
script tests/test_cases <<'END'
#!/bin/sh
echo "ok 1 - cases.c:a_case:a_case: Passed" >"$CK_TAP_LOG_FILE_NAME"
END
script tests/test_dies <<'END'
#!/bin/sh
echo "ok 1 - dies.c:first:first: Passed" >"$CK_TAP_LOG_FILE_NAME"
exit 77
END
script fuzz_finds <<'END'
#!/bin/sh
case $1 in -max_total_time=*) exit 77 ;; esac
END
script fuzz_nothing <<'END'
#!/bin/sh
END
script tests/test_random <<'END'
#!/bin/sh
[ -z "$CK_RUN_CASE" ] || exit 0
echo "test_random: seed 4711"
echo "other_case: seed 17"
echo "not ok 1 - random.c:one_case:one_case: wrong" >"$CK_TAP_LOG_FILE_NAME"
echo "not ok 2 - random.c:other_case:other_case: wrong" >>"$CK_TAP_LOG_FILE_NAME"
exit 1
END

run 2 slow "$folder"/{slow,quick,skips}.sh
ends 'what has ended is shown while others run' last '2 passed, 0 failed, 1 skipped'

for jobs in 1 2; do
	for aside in none killed limit_killed; do
		run "$jobs" "$aside" "$folder"/{killed,limit_killed,quick,skips}.sh
		ends "tests are killed, $jobs at a time, aside: $aside" last '1 passed, 2 failed, 1 skipped'
		for name in killed limit_killed; do
			ends "a test that was killed is named, $jobs at a time, aside: $aside" \
				grep -E "^  FAIL  $name +0 passed, 1 failed, killed by SIGKILL" "$out"
		done
		ends "what it said is shown, $jobs at a time, aside: $aside" grep -x '        about to be killed' "$out"
	done
done

limit=0.2 run 2 none "$folder"/{hangs,quick}.sh
ends 'a test that hangs is ended' grep -E '^  FAIL  hangs +0 passed, 1 failed, ended because it took over 0.2 s' "$out"
ends 'a test that hangs hides no other' last '1 passed, 1 failed'

chosen='q* slow*' run 2 none "$folder"/{quick,hangs,skips}.sh
ends 'names by patterns' last '1 passed, 0 failed'
chosen=a_case run 2 none "$folder"/tests/test_{random,cases} "$folder/quick.sh"
ends 'a Check case by its name' last '1 passed, 0 failed'
chosen=test_two run 2 none "$folder"/tests/test_random "$folder/methods.py"
ends 'a Python test by its name' last '1 passed, 0 failed'
chosen=quack run 2 none "$folder"/{quick,hangs,skips}.sh
ends 'a name that is none is said' grep -x 'There is no test program, script, Check case or Python test named quack.' "$out"
ends 'a name that is none fails' last '0 passed, 1 failed'
run 1 none "$folder"/tests/test_{cases,dies}
ends 'a Check program that dies between tests has failed' last '2 passed, 1 failed'

FUZZ_SECONDS=1 wrap=scripts/fuzz run 1 none "$folder"/fuzz_{finds,nothing}
ends 'a fuzzer that finds something has failed' last '1 passed, 1 failed'
ends 'a failed fuzzer is told to be run on the file' grep -F "again: $folder/fuzz_finds FILE" "$out"

run 1 none "$folder/tests/test_random"
ends 'failures are counted' last '0 passed, 2 failed'
ends 'a seed under the name of the program' grep -F "to debug: WW_SEED=4711 CK_FORK=no CK_RUN_CASE='one_case'" "$out"
ends 'a seed under the name of the case' grep -F "to debug: WW_SEED=17 CK_FORK=no CK_RUN_CASE='other_case'" "$out"

# What make says first. It builds and runs nothing.
names() { # VARIABLE=NAMES...
	env -u T -u MAKEFLAGS -u CONFIGURE_FLAGS -u ONLY -u SKIP -u TEST_ASIDE make -n B="$build" need-check "$@" \
		>"$out" 2>&1
}

refuses() { # NAME VARIABLE=NAMES
	! names "$2" && grep "[^=]$1\.  Stop" "$out"
}

ends 'names of tests' names ONLY='slab driver_% advanc%' SKIP='test_slab test_completion fuzz_wheel keepalive'
ends 'names of tests that run aside' names TEST_ASIDE='test_redis_cluster test_kill'
ends 'ONLY with a word that is none' refuses slap ONLY='slab slap'
ends 'ONLY with a pattern of none' refuses slap_% ONLY='slap_% slab'
ends 'SKIP with a word that is none' refuses test_slap SKIP='test_slap test_slab'
ends 'SKIP with half a name' refuses slab SKIP=slab
ends 'TEST_ASIDE with a word that is none' refuses test_redis_custer TEST_ASIDE='test_redis_custer test_kill'

finish
