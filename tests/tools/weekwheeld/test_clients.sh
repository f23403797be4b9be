#!/bin/bash
# beanstalkd clients of other authors, from npm's registry, talk to the server. Without npm or the registry the test is skipped.
# tier: long, no-sanitizers
set -euo pipefail

cd "$(dirname "$0")/../../.."
weekwheeld=${WEEKWHEELD:-${B:-build}/bin/weekwheeld}
clients=(jackd@2.2.2 fivebeans@1.5.0 node-beanstalk@1.6.7)

skip() { # WHY
	echo "skipped: $1"
	exit 77
}

[ -x "$weekwheeld" ] || skip 'this build has no weekwheeld: configure says what it lacks'
command -v node >/dev/null || skip 'there is no node: Debian has it in the package nodejs'
command -v npm >/dev/null || skip 'there is no npm: Debian has it in the package npm'

folder=$(mktemp -d)
server=
# The script ends the server that it started, and no other.
trap '[ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null; rm -rf "$folder"' EXIT

timeout "${NPM_SECONDS:-30}" npm install --prefix "$folder" --prefer-offline --ignore-scripts --no-audit --no-fund \
	--fetch-retries=0 --fetch-timeout=5000 "${clients[@]}" >"$folder/log" 2>&1 ||
	skip "npm does not get ${clients[*]}: $(grep -m 1 -i error "$folder/log" || echo 'it takes too long')"

"$weekwheeld" --data "$folder/jobs" --listen 127.0.0.1:0 2>"$folder/said" &
server=$!
port=
for _ in $(seq 100); do
	port=$(sed -n 's/^weekwheeld: listening on 127\.0\.0\.1:\([0-9]*\)$/\1/p' "$folder/said")
	[ -z "$port" ] || break
	kill -0 "$server" 2>/dev/null || break
	sleep 0.1
done
if [ -z "$port" ]; then
	echo "FAIL: the server does not start: $(cat "$folder/said")"
	echo "0 passed, 1 failed"
	exit 1
fi
NODE_PATH=$folder/node_modules NODE_NO_WARNINGS=1 timeout 60 node tests/tools/weekwheeld/clients.js "$port" || {
	status=$?
	[ "$status" != 124 ] || { echo "FAIL: a client waits for ever"; echo "0 passed, 1 failed"; }
	exit 1
}
