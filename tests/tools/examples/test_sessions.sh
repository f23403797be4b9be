#!/bin/bash
# The example sessions: what it saves at its end is there at its next start, and a save that fails leaves the old file.
# tier: check, core
set -uo pipefail

cd "$(dirname "$0")/../../.." || exit 1
program=$(realpath "${B:-build}/examples/sessions")
source tests/support/cli.sh

visit() { # STATUS OUT FILE VISITOR...: a start of the site, a request of each, and the end of its input
	local status=0 expected=$1 out=$2 file=$3
	shift 3
	what="requests of $*"
	printf '%s\n' "$@" | timeout 60 "$program" "$file" >out 2>err || status=$?
	equal "$what: exit status" "$status" "$expected"
	equal "$what: output" "$(tr '\n' ' ' <out)" "$out"
}

# Without a file it keeps nothing.
equal 'no file' "$(printf 'ada\nbob\nada\n' | "$program" | tr '\n' ' ')" 'ada: request 1 bob: request 1 ada: request 2 '

visit 0 'ada: request 1 bob: request 1 ada: request 2 ' visits ada bob ada
equal 'what the first start says' "$(cat err)" ''
visit 0 'ada: request 3 eve: request 1 ' visits ada eve
says err 'visits: 2 sessions go on after [0-9]+ s, 0 have ended'
equal 'files' "$(ls -A)" $'err\nout\nvisits'
equal 'rights' "$(stat -c %a visits)" 600

# SIGTERM while it waits for requests, of which all that were answered are saved.
mkfifo requests
"$program" visits <requests >out 2>err &
site=$!
exec 3>requests
echo ada >&3
until grep -q 'ada: request 4' out; do sleep 0.01; done
kill -TERM "$site"
wait "$site"
equal 'SIGTERM: exit status' $? 0
exec 3>&-
rm requests
visit 0 'ada: request 5 bob: request 2 eve: request 2 ' visits ada bob eve

# A full disk, or a folder that is not there.
cp visits before
ln -s /dev/full visits.new
visit 1 'ada: request 6 ' visits ada
says err 'visits: not saved: No space left on device'
expect 'a full disk leaves the old file' cmp visits before
equal 'and nothing else' "$(ls -A)" $'before\nerr\nout\nvisits'
visit 1 'ada: request 1 ' none/visits ada
says err 'none/visits: not saved: No such file or directory'

# Of a damaged file, what comes before the damage is there. The file itself is kept under another name.
head -c -3 before >visits
cp visits cut
visit 0 'ada: request 6 ' visits ada
says err 'visits: 3 sessions go on after [0-9]+ s'
says err 'visits: damaged, renamed to visits.damaged'
expect 'the damaged file is kept' cmp visits.damaged cut
visit 0 'ada: request 7 bob: request 3 ' visits ada bob

# It never takes the place of an earlier one: then the site does not start.
head -c 40 before >visits
cp visits cut-again
visit 1 '' visits ada
says err 'visits: damaged, and not renamed to visits.damaged: File exists'
expect 'the damaged file stays' cmp visits cut-again
expect 'the earlier one stays' cmp visits.damaged cut
rm visits.damaged
visit 0 'ada: request 1 ' visits ada
expect 'the damaged file is kept again' cmp visits.damaged cut-again

# Anything else is left alone.
printf 'the only copy\n' >precious
cp precious copy
visit 1 '' precious ada
says err '^precious: not a file of saved sessions'
expect 'a file of something else stays' cmp precious copy
: >empty
visit 1 '' empty ada
expect 'an empty file stays empty' test ! -s empty
mkdir folder
visit 1 '' folder ada
says err '^folder: Is a directory'
finish
