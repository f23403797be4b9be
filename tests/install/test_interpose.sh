#!/bin/bash
# The installed programs stand before no function of the C library, and link no event loop that only the benchmark needs.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
: "${B:=build}" "${SANITIZE:=}"
passed=0 failed=0

if [ -n "$SANITIZE" ]; then
	echo "skipped: sanitizers stand before many functions"
	exit 77
fi

none() { # WHAT LINES
	if [ -z "$2" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAIL: %s:\n%s\n' "$1" "$2"
	fi
}

# Objects copied out of a library, such as stderr, and what the linker adds are no functions.
functions() { # PROGRAM: those that other libraries in its process would call
	nm -D --defined-only "$1" | awk '$2 ~ /[TWi]/ { print "  " $3 }'
}

for program in ${PROGRAMS:-"$B/bin/weekwheel" "$B/bin/weekwheeld"}; do
	[ -x "$program" ] || continue
	none "$program has functions of its own for whoever calls them" "$(functions "$program")"
	none "$program links an event loop of the benchmark's" "$(readelf -d "$program" | grep -E 'NEEDED.*(libev|libevent)[-_.]')"
done
none 'weekwheel links an event loop' "$(readelf -d "$B/bin/weekwheel" | grep -E 'NEEDED.*libuv')"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
