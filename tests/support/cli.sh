# shellcheck shell=bash
# Tests of a program as its users call it: runs, and what they say. A script that reads this has set `program`.

passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

if [ ! -x "${program:?is what to test}" ]; then
	echo "there is no program $program; 'make' builds it" >&2
	exit 1
fi

ok() {
	passed=$((passed + 1))
}

fail() { # WHAT
	failed=$((failed + 1))
	echo "FAIL: $1"
	sed 's/^/      out: /' out | head -n 20
	sed 's/^/      err: /' err | head -n 20
}

skip() { # WHAT
	skipped=$((skipped + 1))
	echo "skipped: $1"
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

finish() { # says how many checks there were, and ends
	if [ "$skipped" != 0 ]; then
		echo "$passed passed, $failed failed, $skipped skipped"
	else
		echo "$passed passed, $failed failed"
	fi
	[ "$failed" = 0 ]
	exit
}
