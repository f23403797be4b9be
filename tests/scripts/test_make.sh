#!/bin/bash
# The Makefile: an archive is made anew when its files are others, whatever times they have.
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

members() { # MEMBERS: what the archive has when it is made
	env -u CONFIGURE_FLAGS -u MAKEFLAGS -u B make build/lib/common.a >out 2>&1 || { cat out; false; }
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

finish
