#!/bin/bash
# scripts/check-abi on a small library: what programs of the release would trip over fails, and what they would not passes.
# tier: check, no-sanitizers
set -euo pipefail

cd "$(dirname "$0")/../.."
: "${CC:=cc}" "${SANITIZE:=}"
source tests/support/cli.sh
[ -z "$SANITIZE" ] || skip_all 'what is compiled here is not instrumented'
for program in abidw abidiff; do
	command -v "$program" >/dev/null || skip_all "Debian has $program in the package abigail-tools"
done
[ "$(uname -m)" = x86_64 ] || skip_all 'the descriptions are of x86-64'

mkdir -p "$work/scripts" "$work/include/weekwheel" "$work/lib/core" "$work/build/lib"
cp scripts/check-abi "$work/scripts/"
cd "$work"
read -ra cc <<<"$CC"
cat >lib/core/weekwheel.map <<'END'
ONE { global: ww_*; local: *; };
END
cat >release.h <<'END'
struct ww_head {
	long first;
};
struct ww_item {
	int number;
	int *place;
};
static inline long ww_first(void *hidden) { return ((struct ww_head *)hidden)->first; }
int ww_use(struct ww_item *item);
int ww_drop(struct ww_item *item);
END
cat >release.c <<'END'
#include <weekwheel/weekwheel.h>
struct hidden {
	struct ww_head head;
	int more;
};
int ww_use(struct ww_item *item) { return item->number; }
int ww_drop(struct ww_item *item) { return *item->place; }
END

build() { # SED_OF_HEADER SED_OF_SOURCE [SONAME]
	sed "$1" release.h >include/weekwheel/weekwheel.h
	sed "$2" release.c >weekwheel.c
	"${cc[@]}" -g -shared -fPIC -Iinclude -Wl,-soname,"${3:-libweekwheel.so.1}" -Wl,--version-script=lib/core/weekwheel.map \
		-o build/lib/libweekwheel.so weekwheel.c
}
check() { # STATUS WHAT [WORDS]: how the check ends, and what it says
	local status=0
	B=build ABI=${ABI-abi} scripts/check-abi >out 2>&1 || status=$?
	equal "$2: exit status" "$status" "$1"
	[ -z "${3:-}" ] || expect "$2: it says $3" grep -q -- "$3" out
}

build '' ''
release() { # WHAT
	expect "$1" env B=build scripts/check-abi --write
	rm -rf abi
	mv build/abi abi
}

ABI='' check 77 'no release is named' 'ABI=FOLDER'
check 1 'there is no release' 'no release is described'
release 'make abi'
check 0 'the release itself'
build 's/^int ww_use.*/&\nint ww_add(void);/' 's/^int ww_drop.*/&\nint ww_add(void) { return 0; }/'
check 0 'a new function'
build '' 's/int more/long more[9]/'
check 0 'a private struct'
build 's/int number;/int number, more;/' ''
check 1 'a member in the middle' 'ww_item'
build 's/int number;/long number;/' ''
check 1 'a type of a member' 'ww_item'
build 's/long first;/int before; long first;/' ''
check 1 'a struct that an inline function reaches into' 'ww_head'
build 's/^int ww_use(/long ww_use(/' 's/^int ww_use(/long ww_use(/'
check 1 'what a function returns' 'ww_use'
build '/ww_drop/d' '/ww_drop/d'
check 1 'a function that is gone' 'ww_drop'
expect 'it says what to do' grep -q 'raise the number of the sonames' out
build '/ww_drop/d' '/ww_drop/d' libweekwheel.so.2
check 1 'another soname' 'no longer libweekwheel.so.1'
release 'make abi describes it'
check 0 'the next interface'

finish
