#!/bin/bash
# scripts/demo-postgres with few jobs: what it shows, and that nothing of it is left.
# tier: long, waits, no-sanitizers (the tests of the store have its calls), no-valgrind
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
root=$PWD
: "${B:=build}"
B=$(realpath "$B")
source tests/support/cli.sh
export B TMPDIR=$work/left
mkdir -m 755 "$TMPDIR"
chmod 755 "$work"
program=$root/scripts/demo-postgres
cd "$work" || exit 1

run 0 2000
! grep -q skipped out || skip_all "$(grep skipped out)"
says out 'rolled back: nothing is delivered$'
says out 'committed: "the mail of order 2" is delivered [0-9.]+ ms after'
says out '^weekwheel  .*[0-9]%  +0$'
says out '^a SKIP LOCKED table .*[0-9]%  +[0-9,]{5,}$'
is_empty err
equal 'files that are left' "$(ls "$TMPDIR")" ''

# It fails, and tidies up, if a claim is not so: here each statement that puts updates a row.
cat >setup <<'END'
#!/bin/bash
"$B/bin/weekwheel" "$@" && psql -qX "$3" -v ON_ERROR_STOP=1 -c "CREATE TABLE weekwheel.counter AS SELECT 0 AS n;
	CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE weekwheel.counter SET n = n + 1; RETURN NULL; END';
	CREATE TRIGGER more AFTER INSERT ON weekwheel.inbox EXECUTE FUNCTION more()"
END
chmod +x setup
WEEKWHEEL=$work/setup run 1 2000
says err '^FAILED: weekwheel left [0-9]+ dead rows$'
equal 'files that are left by a failure' "$(ls "$TMPDIR")" ''

finish
