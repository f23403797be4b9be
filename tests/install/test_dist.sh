#!/bin/bash
# A release's tarball: the same bytes twice, and it builds in a folder of its own without git, autoconf and network.
# tier: long, no-sanitizers
set -euo pipefail

cd "$(dirname "$0")/../.."
: "${B:?is the build folder}" "${CC:=cc}" "${SANITIZE:=}"
source tests/support/cli.sh
[ -z "$SANITIZE" ] || skip_all 'what is compiled here is not instrumented'
git rev-parse --git-dir >/dev/null 2>&1 || skip_all 'a release is made from a clone, with git'

make_quietly() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s --no-print-directory "$@"
}

expect 'make dist' make_quietly B="$work/one" CONFIGURE_FLAGS=--disable-tests dist >"$work/said"
expect 'make dist again, by somebody with other habits' env GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=core.autocrlf GIT_CONFIG_VALUE_0=true \
	GIT_CONFIG_KEY_1=tar.umask GIT_CONFIG_VALUE_1=0077 bash -c 'umask 077 && "$@"' - \
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s --no-print-directory B="$work/two" CONFIGURE_FLAGS=--disable-tests dist >"$work/said"
tarball=$(echo "$work"/one/dist/*.tar.gz)
expect 'the same bytes twice' cmp "$tarball" "$work/two/dist/${tarball##*/}"
checksum_is_right() { (cd "$work/one/dist" && sha256sum --quiet -c ./*.sha256); }
expect 'the checksum' checksum_is_right
nothing_else() { ! tar -tzf "$tarball" | grep -E '(^|/)(\.git|\.ci)(/|$)'; }
expect 'no .git and no .ci' nothing_else

# A PATH in which nothing of git and autoconf is found.
mkdir "$work/bin"
for folder in /usr/bin /bin /usr/local/bin; do
	for program in "$folder"/*; do
		case ${program##*/} in
		git* | auto*) ;;
		*) [ -e "$work/bin/${program##*/}" ] || ln -s "$program" "$work/bin/" ;;
		esac
	done
done
tar -xzf "$tarball" -C "$work"
tree=$(basename "$tarball" .tar.gz)
alone=()
if unshare --user --map-root-user --net true 2>/dev/null; then
	alone=(unshare --user --map-root-user --net)
fi
# Whether all is there does not depend on how well it is optimized.
builds() {
	(cd "$work/$tree" && PATH=$work/bin make_quietly_there)
}
make_quietly_there() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u B "${alone[@]}" make -s -j2 --no-print-directory \
		CONFIGURE_FLAGS="--disable-jobs --disable-weekwheel --disable-bench --disable-load --disable-tests CC='$CC' CFLAGS='-O0 -g0 -U_FORTIFY_SOURCE'" \
		DESTDIR="$work/root" prefix=/usr install >"$work/out" 2>"$work/err"
}
expect 'it builds and installs' builds
version=${tree#weekwheel-}
expect 'the library is there' test -f "$work/root/usr/lib/libweekwheel.so.$version"
says_version() { [ "$(sed -n 's/^Version: //p' "$work/root/usr/lib/pkgconfig/weekwheel.pc")" = "$version" ]; }
expect 'it says its version' says_version

finish
