#!/bin/bash
# scripts/check-knots on small trees: which circles of files, folders and components it finds and permits.
# tier: check, no-sanitizers
set -euo pipefail

cd "$(dirname "$0")/../.."
: "${CC:=cc}" "${SANITIZE:=}"
source tests/support/cli.sh
[ -z "$SANITIZE" ] || skip_all 'what is compiled here is not instrumented'

mkdir -p "$work/scripts"
cp scripts/check-knots "$work/scripts"
cd "$work"
read -ra cc <<<"$CC"

begin() { # an empty tree
	rm -rf lib tools build
	mkdir -p lib tools build/obj
}
file() { # PATH CALLS...: a file that has a function of its own name, which calls these
	local name call
	name=$(basename "$1" .c)
	mkdir -p "$(dirname "$1")" "build/obj/$(dirname "$1")"
	{
		for call in "${@:2}"; do echo "void $call(void);"; done
		echo "void $name(void) {"
		for call in "${@:2}"; do echo "	$call();"; done
		echo '}'
	} >"$1"
	"${cc[@]}" -c -o "build/obj/${1%.c}.o" "$1"
}
ring() { # FOLDER COUNT: each calls the next one
	local i
	for ((i = 1; i <= $2; i++)); do file "$1/f$i.c" "f$((i % $2 + 1))"; done
}
check() { # STATUS WHAT [WORDS]...: how the check ends, and what it says
	local status=0 words
	B=build scripts/check-knots >out 2>&1 || status=$?
	equal "$2: exit status" "$status" "$1"
	for words in "${@:3}"; do expect "$2: it says $words" grep -qF -- "$words" out; done
}

begin
check 77 'nothing is built' 'skipped'
file lib/a/above.c below
file lib/a/below.c
check 0 'no circle'
expect 'it says nothing' test -z "$(tr -d '\n' <out)"
ring lib/a 6
check 0 'as large as it may be' 'lib/a: 6 files are in a circle: f1.c f2.c f3.c f4.c f5.c f6.c'
ring lib/a 7
check 1 'too large' 'lib/a: 7 files are in a circle, and at most 6 may be' 'Without its first step, none would be' \
	'    lib/a/f1.c calls lib/a/f2.c: f2' '    lib/a/f7.c calls lib/a/f1.c: f1'
expect 'a way round passes each once' test "$(grep -c ' calls ' out)" = 7

begin
ring tools/weekwheel-sessiond/a 2
check 1 'where none is permitted' 'tools/weekwheel-sessiond/a: 2 files are in a circle, and none may be'

# Two rings with a file in common: what unties most is on the ring of seven.
begin
ring lib/a 7
file lib/a/f1.c f2 g
file lib/a/g.c f1
check 1 'two rings' '8 files are in a circle' 'Without its first step, 2 would be'

begin
ring lib/a 7
rm lib/a/f7.c
check 0 'the object of a file that is gone does not count'

# A variable with a function's address counts as a call. A name that a file has for itself is nobody else's.
begin
mkdir -p lib/a build/obj/lib/a
echo 'void b(void); void (*const table[])(void) = {b};' >lib/a/a.c
echo 'extern void (*const table[])(void); void b(void) { table[0](); }' >lib/a/b.c
echo 'void e(void); void d(void) { e(); }' >lib/a/d.c
echo 'void e(void) {}' >lib/a/e.c
echo 'void d(void); static void e(void) { d(); } void (*const f)(void) = e;' >lib/a/f.c
for name in a b d e f; do "${cc[@]}" -O0 -c -o "build/obj/lib/a/$name.o" "lib/a/$name.c"; done
check 0 'variables' 'lib/a: 2 files are in a circle: a.c b.c'
expect 'no other circle' test "$(grep -c circle out)" = 1

# Folders, and components that have no folder in a circle.
begin
file lib/a/up.c down
file lib/a/sub/down.c up
check 1 'two folders' 'lib/a: 2 folders are in a circle, and none may be' \
	'lib/a calls lib/a/sub: down from up.c' 'lib/a/sub calls lib/a: up from down.c'
touch lib/a/component.mk
check 1 'two folders of a component'
expect 'that is no circle of components' test "$(grep -c components out)" = 0
begin
file lib/a/one/a1.c b1
file lib/b/one/b1.c
file lib/b/two/b2.c a2
file lib/a/two/a2.c
check 0 'four folders'
touch lib/a/component.mk lib/b/component.mk
check 1 'two components' 'lib: 2 components are in a circle, and none may be'

# Two programs have a function of one name, and one plays the clock.
begin
file tools/one/work.c stop
file tools/one/stop.c work
file tools/two/work.c stop
file tools/two/stop.c
file tools/common/wait.c clock_gettime
file tools/two/clock_gettime.c wait
check 0 'each program has its own' 'tools/one: 2 files are in a circle: stop.c work.c'
expect 'no other circle' test "$(grep -c circle out)" = 1

finish
