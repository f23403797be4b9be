# shellcheck shell=bash
# What all tests in shell share: counts of checks, runs of a program, and what it printed. A script that tests a program has
# set `program` before, and goes on in $work, a folder that is there until the script ends.

passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -n "${program:-}" ]; then
	if [ ! -x "$program" ]; then
		echo "there is no program $program; 'make' builds it" >&2
		exit 1
	fi
	cd "$work" || exit 1
fi

ok() {
	passed=$((passed + 1))
}

fail() { # WHAT: shows the last run's output, too
	failed=$((failed + 1))
	echo "FAIL: $1"
	for file in out err; do
		[ ! -f "$work/$file" ] || sed "s/^/      $file: /" "$work/$file" | head -n 20
	done
}

skip() { # WHAT
	skipped=$((skipped + 1))
	echo "skipped: $1"
}

skip_all() { # WHY: ends the script
	echo "skipped: $1"
	exit 77
}

# run STATUS ARGUMENT...: runs the program with its output in the files out and err, and expects that exit status
run() {
	local expected=$1 status=0
	shift
	what="${program##*/} $*"
	"$program" "$@" >out 2>err </dev/null || status=$?
	if [ "$status" = "$expected" ]; then
		ok
	else
		fail "$what: exit status $status, not $expected"
	fi
}

expect() { # WHAT COMMAND...: the command succeeds
	if "${@:2}"; then ok; else fail "$1"; fi
}

says() { # FILE PATTERN: the last run's out or err has a line that matches
	if grep -qE -- "$2" "$1"; then ok; else fail "$what: $1 has no line like $2"; fi
}

says_not() { # FILE PATTERN
	if grep -qE -- "$2" "$1"; then fail "$what: $1 has a line like $2"; else ok; fi
}

is_empty() { # FILE
	if [ -s "$1" ]; then fail "$what: $1 is not empty"; else ok; fi
}

equal() { # WHAT GOT EXPECTED
	if [ "$2" = "$3" ]; then ok; else fail "$1: '$2', not '$3'"; fi
}

finish() { # the last command of a script: prints the counts of the checks
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}
