#!/bin/bash
# make bench-cores: no thread writes a line of another one, whether each has a driver or all share one, as long as each has a shard.
# tier: check, no-sanitizers
set -uo pipefail

cd "$(dirname "$0")/../../.." || exit 1
: "${SANITIZE:=}"
source tests/support/cli.sh
[ -z "$SANITIZE" ] || skip_all 'what is compiled here is not instrumented'

what='bench-cores'
WORK=$work/cores THREADS='3 80' WORKERS=2 PARTS=counts scripts/bench-cores >"$work/out" 2>"$work/err" || fail "$what"
for deed in schedule heartbeat cancel fire; do
	says "$work/out" "^own +$deed +3 +0 +0\.000 +0\.000$"
	says "$work/out" "^own +$deed +80 +0 +0\.000 +0\.000$"
done
for deed in schedule heartbeat cancel; do
	says "$work/out" "^shared +$deed +3 +2 +0\.000 +0\.000$"
done
# There are 64 shards, so some have two threads: the model sees that.
says "$work/out" '^shared +schedule +80 +2 +[1-9][0-9.]* +[01]\.[0-9]+$'
says "$work/out" "^own +cancel others' +80 +0 +[1-9]\.[0-9]+ +0\.000$"
says "$work/out" '^shared +fire, long +3 +2 +[1-9][0-9.]+ +[01]\.[0-9]+$'

what='rates'
WORK=$work/cores PARTS=rates PASSES=1 scripts/bench-cores >"$work/out" 2>"$work/err" || fail "$what"
for rate in 'own +schedule' 'own +fire' 'shared +cancel'; do
	says "$work/out" "^$rate +1 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$"
done

PARTS=all scripts/bench-cores >"$work/out" 2>"$work/err" && fail 'a part that there is not'
says "$work/err" "PARTS 'all': expected counts, rates"

finish
