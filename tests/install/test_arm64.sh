#!/bin/bash
# Another machine, arm64, where a char has no sign: the core, the store of jobs, weekwheel and weekwheeld are cross-compiled without a
# warning with Debian's libraries of it, and run by qemu. Tests of the core and the journal pass, and programs of both machines agree.
# tier: long, no-sanitizers
set -euo pipefail

cd "$(dirname "$0")/../.."
: "${B:?is the build folder}" "${SANITIZE:=}"
source tests/support/cli.sh
[ -z "$SANITIZE" ] || skip_all 'what is compiled here is not instrumented'
for needed in aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu qemu-aarch64-static:qemu-user-static mmdebstrap:mmdebstrap jq:jq; do
	command -v "${needed%:*}" >/dev/null || skip_all "Debian has ${needed%:*} in the package ${needed#*:}"
done
[ -x "$B/bin/weekwheeld" ] || skip_all 'this build has no weekwheeld to compare with'

# What the build needs, but for what runs while it compiles.
sysroot=$work/arm64
needs=$(sed -n '/^\[build\]/,/^$/{/^[a-z]/p}' packages.txt | grep -vxE 'gcc|make|autoconf|pkg-config' | paste -sd,)
mmdebstrap --quiet --variant=extract --architectures=arm64 --include="$needs,check" bookworm "$sysroot" >"$work/root.log" 2>&1 ||
	skip_all "no packages of arm64 here: $(tail -n 1 "$work/root.log")"
libraries=$sysroot/usr/lib/aarch64-linux-gnu
export PKG_CONFIG_SYSROOT_DIR=$sysroot PKG_CONFIG_LIBDIR=$libraries/pkgconfig:$sysroot/usr/share/pkgconfig
flags="--enable-werror --host=aarch64-linux-gnu CC='aarch64-linux-gnu-gcc --sysroot=$sysroot'
	--disable-bench --disable-load --disable-bench_redis --disable-sessiond --disable-expirer --disable-redis --disable-postgres
	--disable-callback"
made=$work/build
there=(qemu-aarch64-static -L "$sysroot")
make_there() {
	env -u UNSTEADY -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -j"$(nproc)" --no-print-directory B="$made" CONFIGURE_FLAGS="${flags//[$'\n\t']/ }" "$@"
}

if ! make_there >"$work/log" 2>&1 </dev/null; then
	fail 'it compiles'
	grep -vE '^  (CC|AR|LINK|MAN) ' "$work/log"
	finish
fi
ok
only='hash crc32c cascade exact lanes clock after session_put session_save journal'
only=" $only"
status=0
make_there check T="${only// / test_}" WRAP="${there[*]}" >"$work/log" 2>&1 </dev/null || status=$?
[ "$status" = 0 ] || grep -vE '^  (ok|CC|AR|LINK) ' "$work/log"
equal 'tests pass' "$(grep -cE '^[0-9]+ passed, 0 failed' "$work/log")" 1

here() { "$B/bin/weekwheel" "$@"; }
there() { "${there[@]}" "$made/bin/weekwheel" "$@"; }
agree() { # NAME ARGUMENT...
	local name=$1
	shift
	equal "$name" "$(there "$@" 2>&1)" "$(here "$@" 2>&1)"
}
# All but how long it took.
replay() { "$1" replay --sessions 20000 --json | jq 'del(.max_advance_ns, .p9999_advance_ns, .operations_per_second, .wall_seconds)'; }
equal 'a replay' "$(replay there)" "$(replay here)"
agree 'expressions of cron' cron --json --from '2026-11-28 10:00' --tz Europe/Berlin '*/5 9-17 * * mon-fri'
agree 'a help' put --help

# One writes jobs and the other reads them, in either direction. How long it is until then passes.
waits_for() { until [ -S "$1" ]; do sleep 0.05; done; }
is_sound() { "$1" fsck "$2" >"$work/out"; }
state() { jq -cS 'del(.left)' "$1"; }
for writer in here there; do
	reader=$([ "$writer" = here ] && echo there || echo here)
	server=("$B/bin/weekwheeld")
	[ "$writer" = here ] || server=("${there[@]}" "$made/bin/weekwheeld")
	"${server[@]}" --data "$work/$writer" --unix "$work/$writer.sock" --listen 127.0.0.1:0 2>"$work/server.log" &
	pid=$!
	waits_for "$work/$writer.sock"
	export WEEKWHEEL_SERVER=unix:$work/$writer.sock
	"$writer" put --in 100d --key 'größe/1' 'für später' >/dev/null
	"$writer" put --tube mail --attempts 3 --every 1h --in 2h x >/dev/null
	"$writer" schedule add backup '0 3 * * *' ./backup --tz Europe/Berlin >/dev/null
	"$writer" limit mail --running 3 >/dev/null
	kill "$pid"
	wait "$pid" || true
	"$writer" export "$work/$writer" --output "$work/$writer.json" 2>/dev/null
	"$reader" export "$work/$writer" --output "$work/$reader.read.json" 2>/dev/null
	equal "$reader reads the jobs of $writer" "$(state "$work/$reader.read.json")" "$(state "$work/$writer.json")"
	expect "$reader finds nothing wrong with them" is_sound "$reader" "$work/$writer"
	equal 'and they are all' "$(grep -c . "$work/$writer.json")" 4
done
finish
