#!/bin/bash
# The Makefile: an archive is made anew when its files are others, whatever times they have, and nothing while tests run.
# tier: check, no-sanitizers
set -euo pipefail

cd "$(dirname "$0")/../.."
: "${CC:=cc}" "${SANITIZE:=}"
source tests/support/cli.sh
[ -z "$SANITIZE" ] || skip_all 'what is compiled here is not instrumented'

# A tree with one component of one part, and its configuration.
root=$PWD
mkdir -p "$work/tree/tests" "$work/tree/tools/common" "$work/tree/build"
cd "$work/tree"
cp "$root/Makefile" .
: >tests/rules.mk
printf 'common_FOLDERS := tools/common\n' >tools/common/component.mk
: >configure.ac
mkdir -p include/weekwheel
: >include/weekwheel/version.h
touch build/configure
printf 'COMPONENTS := common\nCC := %s\nAR := ar\nVERSION := 0.0.0\n' "$CC" >build/config.mk
for name in a b; do echo "int $name(void); int $name(void) { return 0; }" >"tools/common/$name.c"; done

make_archive() { # VARIABLE...
	env -u CONFIGURE_FLAGS -u MAKEFLAGS -u B make build/lib/common.a "$@" >out 2>&1
}
members() { # MEMBERS: what the archive has when it is made
	make_archive || { cat out; false; }
	equal "$1" "$(ar t build/lib/common.a | tr '\n' ' ')" "$1"
}
members 'a.o b.o '
mv tools/common/b.c kept
members 'a.o '
mv kept tools/common/b.c # as old as it was, and so is its object
members 'a.o b.o '
before=$(stat -c %y build/lib/common.a)
members 'a.o b.o '
equal 'nothing has changed' "$(stat -c %y build/lib/common.a)" "$before"

# By another name the folder is the same one.
for name in "$PWD/build" "$PWD/build/" build/; do
	make_archive B="$name" || { cat out; false; }
	equal "nothing has changed in $name" "$(stat -c %y build/lib/common.a)" "$before"
done

# A test that makes something anew would change what others run.
touch tools/common/a.c
expect 'nothing is made in the folder from which tests run' [ "$(make_archive TESTED="/other $PWD/build" && echo made)" = '' ]
what='make while tests run'
says out 'would be made anew while tests run from build'
equal 'nothing has changed while tests run' "$(stat -c %y build/lib/common.a)" "$before"
expect 'it may be made in another folder' make_archive TESTED="/other $PWD/elsewhere"
expect 'it is made after them' [ "$(stat -c %y build/lib/common.a)" != "$before" ]

finish
