#!/bin/bash
# weekwheel cron: what an expression means, in words and times, and where a wrong one is wrong.
# tier: check
set -uo pipefail

cd "$(dirname "$0")/../../../.." || exit 1
program=$(realpath "${WEEKWHEEL:-${B:-build}/bin/weekwheel}")
source tests/support/cli.sh

"$program" help cron >/dev/null 2>&1 || skip_all 'this weekwheel has no calendar'

run 0 cron '30 2 * * *' --tz Europe/Berlin --from 2027-03-26T12:00Z --count 3
equal "$what: words and times" "$(cat out)" 'at 02:30 every day, time of Europe/Berlin

Sat  2027-03-27 02:30:00 +01:00  in 13 h 30 min
Sun  2027-03-28 03:00:00 +02:00  in 1 d 13 h  (clocks went forward)
Mon  2027-03-29 02:30:00 +02:00  in 2 d 12 h'
run 0 cron 0 9 1 1,7 '?' --tz America/New_York --from 2027-05-01T00:00Z -n 2 --json
equal "$what: an object" "$(cat out)" '{"expression": "0 9 1 1,7 ?", "zone": "America/New_York", "words": "at 09:00 on day 1 of the month, in January and July, time of America/New_York", "elapsed": false, "times": [{"time": "2027-07-01T09:00:00-04:00", "unix": 1814446800, "offset": -14400}, {"time": "2028-01-01T09:00:00-05:00", "unix": 1830348000, "offset": -18000}]}'
run 0 cron '@every 36h' --from 2027-05-01T00:00Z -n 1 --tz UTC
says out '^Sun  2027-05-02 12:00:00 \+00:00  in 1 d 12 h$'
run 0 cron '@daily'
equal "$what: times" "$(grep -c ' 00:00:00 ' out)" 10
run 2 cron '0 25 * * *'
equal "$what: its place" "$(tail -n 1 err)" '    ^'
says err "'25' is not a valid hour: expected 0 to 23"
run 2 cron '0 3 * * *' --tz Europe/Berlyn
says err 'there is no such zone here'
what='a zone without its capitals'
for zone in Europe/berlin america/new_york est5edt; do
	run 2 cron '0 3 * * *' --tz "$zone"
	says err "; did you mean '(Europe/Berlin|America/New_York|EST5EDT)'\?$"
done
what='a zone in the expression'
for expression in 'TZ=Europe/Berlin 0 3 * * *' 'CRON_TZ=UTC 0 3 * * *' '0 3 * * * Europe/Berlin' '0 3 * * * UTC'; do
	run 2 cron "$expression"
	says err '; give the zone by --tz$'
done
run 2 cron
says err 'an expression is missing'
TZ='<+01>-1' run 2 cron @daily
says err "expected a zone's name"

finish
