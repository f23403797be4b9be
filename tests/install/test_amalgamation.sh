#!/bin/bash
# The library in two files: without a warning by several compilers, with a program in C and in C++, on this machine and,
# where their compilers and qemu are, on one of 32 bits and on one with the high byte first.
# tier: long, no-sanitizers
set -euo pipefail

cd "$(dirname "$0")/../.."
: "${B:?is the build folder}" "${CC:=cc}" "${CXX:=c++}" "${SANITIZE:=}"
source tests/support/cli.sh
[ -z "$SANITIZE" ] || skip_all 'what is compiled here is not instrumented'

top=$PWD
made=$work/amalgamation
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s --no-print-directory B="$work" amalgamation >/dev/null
seed=$RANDOM
echo "seed $seed"
warnings=(-O2 -Wall -Wextra -Werror)
read -ra cc <<<"$CC"
read -ra cxx <<<"$CXX"

expect 'the same bytes twice' bash -c "cp -r '$made' '$work/first' &&
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s --no-print-directory B='$work' amalgamation >/dev/null &&
	diff -r '$work/first' '$made'"

# What the last of them makes is for the programs below.
compilers=()
for compiler in gcc clang; do
	[ "$compiler" = "$CC" ] || compilers+=("$compiler")
done
for part in wheel core; do
	for compiler in "${compilers[@]}" "$CC"; do
		read -ra words <<<"$compiler"
		if command -v "${words[0]}" >/dev/null; then
			expect "$part by $compiler" "${words[@]}" -std=c11 "${warnings[@]}" -c "$made/$part/weekwheel.c" -o "$work/$part.o"
		else
			skip "$part by $compiler: Debian has it in the package of that name"
		fi
	done
	# shellcheck disable=SC2016 # the other shell expands them
	expect "$part at other levels" bash -c 'for level in g 0 1 s 3; do "$@" -O$level || exit; done' - \
		"${cc[@]}" -std=c11 -c "$made/$part/weekwheel.c" -o "$work/levels.o"
	for language in c:c11 c++:c++17; do
		compiler=("${cc[@]}")
		[ "$language" = c:c11 ] || compiler=("${cxx[@]}")
		expect "a program in $language with the $part" "${compiler[@]}" -std="${language#*:}" -x "${language%:*}" \
			"${warnings[@]}" "-DWITH_${part^^}" -I "$made/$part" "$top/tests/install/use_amalgamated.c" -x none "$work/$part.o" -pthread -o "$work/use"
		expect "it runs, in $language with the $part" "$work/use" "$seed"
	done
done
wheel_is_alone() {
	! nm -u "$work/wheel.o" | grep -E 'XXH|eventfd|timerfd|pthread_create'
}
expect 'the wheel needs no thread, descriptor or hash' wheel_is_alone

elsewhere() { # NAME COMPILER PACKAGE [RUNNER]
	if ! command -v "$2" >/dev/null || ! command -v "${4:-true}" >/dev/null; then
		skip "$1: Debian's packages $3 have what it needs"
		return
	fi
	for part in wheel core; do
		expect "the $part for $1" "$2" -std=c11 "${warnings[@]}" -Wno-psabi "-DWITH_${part^^}" -static \
			-I "$made/$part" -I "$work/xxhash" "$made/$part/weekwheel.c" tests/install/use_amalgamated.c -pthread -o "$work/use"
		expect "the $part runs on $1" ${4:+"$4"} "$work/use" "$seed"
	done
}
# Of what is outside of the C library the core takes xxHash's header alone.
mkdir "$work/xxhash"
for folder in $(pkg-config --cflags-only-I libxxhash | sed 's/-I//g') /usr/include; do
	[ ! -f "$folder/xxhash.h" ] || ln -sf "$folder/xxhash.h" "$work/xxhash/"
done
elsewhere '32 bits' i686-linux-gnu-gcc 'gcc-i686-linux-gnu and libc6-dev-i386-cross'
elsewhere 'a machine with the high byte first' s390x-linux-gnu-gcc \
	'gcc-s390x-linux-gnu, libc6-dev-s390x-cross and qemu-user-static' qemu-s390x-static

finish
