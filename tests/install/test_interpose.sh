#!/bin/bash
# The installed programs stand before no function of the C library but one, and link no event loop that only the benchmark
# needs.
# tier: check
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
: "${B:=build}" "${SANITIZE:=}"
source tests/support/cli.sh
[ -z "$SANITIZE" ] || skip_all 'sanitizers stand before many functions'

none() { # WHAT LINES
	if [ -z "$2" ]; then ok; else fail "$1:"$'\n'"$2"; fi
}

# libmicrohttpd reads by the servers' recv (tools/service/http/recv.h).
# Symbols of objects copied out of a library, such as stderr, and of the linker are no functions.
functions() { # PROGRAM: those that other libraries in its process would call
	nm -D --defined-only "$1" | awk '$2 ~ /[TWi]/ && $3 != "recv" { print "  " $3 }'
}

for program in ${PROGRAMS:-"$B/bin/weekwheel" "$B/bin/weekwheeld"}; do
	[ -x "$program" ] || continue
	none "$program has functions of its own for whoever calls them" "$(functions "$program")"
	none "$program links an event loop of the benchmark's" "$(readelf -d "$program" | grep -E 'NEEDED.*(libev|libevent)[-_.]')"
done
none 'weekwheel links an event loop' "$(readelf -d "$B/bin/weekwheel" | grep -E 'NEEDED.*libuv')"

finish
