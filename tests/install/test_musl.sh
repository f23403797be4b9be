#!/bin/bash
# The core with musl in the place of glibc: compiled without a warning, and tests of each of its folders, static programs.
# tier: long, no-sanitizers
set -euo pipefail

cd "$(dirname "$0")/../.."
: "${B:?is the build folder}" "${SANITIZE:=}"
source tests/support/cli.sh
[ -z "$SANITIZE" ] || skip_all 'what is compiled here is not instrumented'
command -v musl-gcc >/dev/null || skip_all 'Debian has musl-gcc in the package musl-tools'

# musl-gcc sees nothing of glibc. Of what is outside, the core takes xxHash's header, and its tests Check.
mkdir "$work/include" "$work/lib"
flags=$(pkg-config --cflags-only-I libxxhash check)
for header in xxhash check check_stdint; do
	for folder in ${flags//-I/} /usr/include; do
		[ ! -f "$folder/$header.h" ] || ln -sf "$folder/$header.h" "$work/include/"
	done
done
musl-gcc -O1 -Wall -Wextra -Werror -c tests/support/musl.c -o "$work/musl.o"
for library in check_pic subunit; do
	archive=$(cc -print-file-name="lib$library.a")
	[ -f "$archive" ] || skip_all "lib$library.a is not here: Debian has it in the package check"
	cp "$archive" "$work/lib/"
done
ar qs "$work/lib/libcheck_pic.a" "$work/musl.o" 2>/dev/null

# Not those that look for a function of the C library behind their own: a static program has none.
only='allocator_malloc cascade exact lanes model clock driver_loop driver_cancel driver_threads after keyed_oracle session_put session_save hash pool'
only=" $only"
status=0
env -u UNSTEADY -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -j2 --no-print-directory B="$work/build" check T="${only// / test_}" \
	WW_MODEL_OPS=100000 CONFIGURE_FLAGS="CC=musl-gcc CFLAGS='-O1 -g' CPPFLAGS=-I$work/include LDFLAGS='-static -L$work/lib' \
	--enable-werror --without-jemalloc --disable-jobs --disable-calendar --disable-weekwheel --disable-bench --disable-load --disable-common --disable-link" \
	>"$work/log" 2>&1 </dev/null || status=$?
[ "$status" = 0 ] || grep -vE '^  (ok|CC|AR|LINK) ' "$work/log"
grep -E '^[0-9]+ passed, [0-9]+ failed' "$work/log" || echo '0 passed, 1 failed'
exit "$status"
