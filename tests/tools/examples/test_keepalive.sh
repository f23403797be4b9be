#!/bin/bash
# The examples keepalive and keepalive_load together: clients that send are never disconnected, silent ones always, and not
# early. How late is printed but not judged.
# tier: long, waits
# needs: examples/keepalive examples/keepalive_load
set -uo pipefail

cd "$(dirname "$0")/../../.." || exit 1
examples=$(realpath "${B:-build}/examples")
program=$examples/keepalive_load
source tests/support/cli.sh
server=
trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null; rm -rf "$work"' EXIT

# run STATUS PROGRAM ARGUMENT...: as in cli.sh, but of that program and with a time limit: a server that takes what it should
# refuse would serve for ever.
run() {
	local expected=$1 status=0
	shift
	what=$*
	timeout 60 "$examples/$1" "${@:2}" >out 2>err </dev/null || status=$?
	equal "$what: exit status" "$status" "$expected"
}

# json KEY: the number in the report in the file out
json() {
	sed -n "s/^  \"$1\": \([^,]*\),*\$/\1/p" out
}

# counts SILENT: all of them were disconnected and no others, unless the load generator itself kept some waiting
counts() {
	local kept
	kept=$(json kept_waiting)
	if [ "$kept" = 0 ]; then
		equal "$what: disconnected" "$(json disconnected)" "$1"
	else
		skip "$what: the machine was so busy that heartbeats of $kept connections came too late"
	fi
	equal "$what: while sending, early, never" \
		"$(json disconnected_while_sending) $(json disconnected_early) $(json never_disconnected)" '0 0 0'
	echo "$what: late by ms: median $(json late_median_ms), most $(json late_most_ms)"
}

# serve ARGUMENT...: starts a server as process $server on port $port; its output goes to the file said
serve() {
	rm -f said && mkfifo said.pipe
	"$examples/keepalive" --port 0 "$@" </dev/null >said.pipe 2>said.err &
	server=$!
	exec 9<said.pipe
	rm said.pipe
	read -r line <&9
	port=$(sed -n 's/^listening on 127.0.0.1:\([0-9]*\),.*/\1/p' <<<"$line")
}

# ended: ends the server, which must end well
ended() {
	local status=0
	kill "$server"
	wait "$server" || status=$?
	server=
	cat <&9 >said
	exec 9<&-
	equal "the server: exit status, errors" "$status$(cat said.err)" 0
}

# server_says KEY: the number after it in what the server said at its end
server_says() {
	sed -n "s/.*$1 \([0-9]*\).*/\1/p" said
}

# ---- The pair ----------------------------------------------------------------------------------------------------

run 0 keepalive_load --connections 500 --timeout 0.6 --heartbeat 0.1 --silent 50 --json
counts 50
is_empty err
run 0 keepalive_load
says out '^server: 200 connections, at most 200 at a time'
says out '^silent 20, '
run 0 keepalive_load --connections 500 --silent 100% --timeout 0.2 --heartbeat 0.04 --seconds 0.25 --json
counts 500
run 0 keepalive_load --silent 0 --json
counts 0
if command -v python3 >/dev/null; then
	if python3 -c 'import json, sys
assert json.load(sys.stdin)["late_most_ms"] is None' <out 2>err; then ok; else fail "$what: not JSON"; fi
else
	skip 'no python3 to read JSON with: Debian has it in the package python3'
fi

# A server that was stopped for longer than the timeout finds every timeout over and all heartbeats unread. With more
# connections than it reads in a turn, it must read once more when the timers expire.
descriptors=$(ulimit -Hn)
if [ "$descriptors" != unlimited ] && [ "$descriptors" -lt 3100 ]; then
	skip "a server that was stopped: the hard limit of descriptors is $descriptors"
else
	serve --timeout 1 --connections 3000
	"$examples/keepalive_load" --port "$port" --timeout 1 --heartbeat 0.2 --connections 2500 --silent 100 --seconds 2.5 \
		--json >out 2>err </dev/null &
	load=$!
	while kill -0 "$load" 2>/dev/null && [ "$(find "/proc/$server/fd" 2>/dev/null | wc -l)" -lt 2500 ]; do :; done
	kill -STOP "$server"
	"$examples/keepalive" --port 0 --seconds 1.2 >/dev/null
	kill -CONT "$server"
	status=0
	wait "$load" || status=$?
	what='a server that was stopped'
	equal "$what: exit status" "$status" 0
	counts 100
	ended
fi

# ---- No room -----------------------------------------------------------------------------------------------------

# Without room, new connections wait until others are gone, and the server does not spin meanwhile.
serve --timeout 0.2 --connections 20
run 0 keepalive_load --port "$port" --timeout 0.2 --heartbeat 0.04 --connections 50 --silent 50 --seconds 0.25 --json
counts 50
ended
equal "$what: at most" "$(server_says 'at most')" 20
pauses=$(server_says 'pauses in accepting')
if [ "$pauses" -gt 0 ] && [ "$pauses" -lt 1000 ]; then ok; else fail "$what: $pauses pauses"; fi

if command -v prlimit >/dev/null; then
	serve --timeout 0.2 --connections 100
	prlimit --pid "$server" --nofile=30:30
	run 0 keepalive_load --port "$port" --timeout 0.2 --heartbeat 0.04 --connections 50 --silent 50 --seconds 0.25 --json
	counts 50
	ended
	pauses=$(server_says 'pauses in accepting')
	if [ "$pauses" -gt 0 ] && [ "$pauses" -lt 1000 ]; then ok; else fail "$what: $pauses pauses"; fi
else
	skip 'no prlimit to take descriptors away with: Debian has it in the package util-linux'
fi

for program in 'keepalive --port 0' 'keepalive_load --port 9 --timeout 1'; do
	status=0
	what="$program with 116 descriptors"
	# shellcheck disable=SC2086
	(ulimit -n 116 && "$examples"/$program --connections 101) >out 2>err || status=$?
	equal "$what: status" "$status" 1
	says err '101 connections take 117 file descriptors, and this process may have 116: 1 are missing'
done
status=0
what='keepalive with a low soft limit'
(ulimit -Sn 64 && exec "$examples/keepalive" --port 0 --connections 200 --seconds 0.001) >out 2>err || status=$?
equal "$what: status" "$status" 0

# ---- A server that does wrong ------------------------------------------------------------------------------------

# Its timeout is shorter than the measured one: it disconnects silent clients early. With one shorter than the time between
# heartbeats it also disconnects clients that send.
serve --timeout 0.5
run 1 keepalive_load --port "$port" --timeout 2 --heartbeat 0.1 --seconds 2.1 --connections 50 --silent 10 --json
equal "$what: while sending, early" "$(json disconnected_while_sending) $(json disconnected_early)" '0 10'
says err 'has the server the same --timeout'
ended
serve --timeout 0.02
run 1 keepalive_load --port "$port" --timeout 2 --heartbeat 0.5 --seconds 2.5 --connections 50 --silent 0 --json
equal "$what: while sending" "$(json disconnected_while_sending)" 50
ended

# ---- The command line --------------------------------------------------------------------------------------------

run 0 keepalive
says out '^Usage: keepalive '
for program in keepalive keepalive_load; do
	run 0 "$program" --help
	says out '^Example'
	is_empty err
	run 2 "$program" --banana
	says err "Try '$program --help'"
	run 2 "$program" operand
	run 2 "$program" --port 65536
	says err "expected a port"
	for seconds in 0 -1 x '' . 1.2.3 1e3 nan 1000001; do
		run 2 "$program" --port 0 --timeout "$seconds"
		says err "expected seconds"
	done
	run 2 "$program" --port 0 --connections 0
	is_empty out
done
run 2 keepalive --timeout 1
says err '--port is needed'
run 2 keepalive_load --port 9
says err "the server's --timeout is needed"
run 2 keepalive_load --timeout 1 --heartbeat 1
run 2 keepalive_load --timeout 1 --seconds 1
for silent in 201 200% 1.5 x . % '' 0.1x; do
	run 2 keepalive_load --silent "$silent"
	says err 'a share of them such as 10% or 0.1'
done

serve
run 1 keepalive --port "$port"
says err "port $port: in use by another program"
ended
run 1 keepalive_load --port "$port" --timeout 1
says err 'nobody listens on that port'
if [ -w /dev/full ]; then
	for program in 'keepalive --port 0 --seconds 0.001' 'keepalive_load --silent 0'; do
		status=0
		# shellcheck disable=SC2086
		"$examples"/$program >/dev/full 2>err || status=$?
		equal "$program >/dev/full: status" "$status" 1
		says err 'standard output: No space left on device'
	done
else
	skip 'no /dev/full'
fi

finish
