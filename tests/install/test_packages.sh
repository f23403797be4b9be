#!/bin/bash
# The packages of Debian: built, without fault for lintian, enough to develop with. Then in a clean Debian that systemd boots:
# installed, used, updated, removed and purged, which packages_inside.sh does there. Then as containers: containers.sh.
# tier: long, waits, apart, no-sanitizers
set -euo pipefail

cd "$(dirname "$0")/../.."
: "${B:?is the build folder}" "${CC:=cc}" "${SANITIZE:=}"
source tests/support/cli.sh
[ -z "$SANITIZE" ] || skip_all 'what is compiled here is not instrumented'
for need in dh:debhelper lintian:lintian; do
	command -v "${need%:*}" >/dev/null || skip_all "Debian has ${need%:*} in the package ${need#*:}"
done
[ "$(id -u)" = 0 ] || skip_all 'only root may make the root of another Debian'
root=$work/root

# ---- A clean Debian, while the packages are built: with what they depend on at hand, and nothing of it installed.
makes_root() {
	mmdebstrap --quiet --mode=root --variant=minbase --include=systemd,redis-tools,ca-certificates --skip=cleanup/apt,check/empty \
		--aptopt='Apt::Install-Recommends "false"' --dpkgopt=force-unsafe-io --format=directory bookworm "$root"
}
maker=
if ! command -v mmdebstrap >/dev/null || ! command -v systemd-nspawn >/dev/null; then
	why='Debian has them in the packages mmdebstrap and systemd-container'
else
	why='mmdebstrap made no Debian; it says:'
	makes_root >"$work/root.log" 2>&1 </dev/null &
	maker=$!
	trap 'kill "$maker" 2>/dev/null || true; wait; rm -rf --one-file-system "$work"' EXIT
fi

# ---- The packages. What is wrong with them does not depend on how well they are optimized, or on the path at which they are
# built: without it, what was compiled before comes from the compiler's cache.
builds() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL DEB_BUILD=binary DEB_BUILD_OPTIONS='noautodbgsym reproducible=-all' \
		DEB_CFLAGS_APPEND='-O0 -g0 -U_FORTIFY_SOURCE' \
		make -s --no-print-directory B="$work/build" CONFIGURE_FLAGS=--disable-tests deb >"$work/out" 2>"$work/err"
}
expect 'make deb' builds
[ "$failed" = 0 ] || finish
debs=$work/build/deb
no_fault() {
	lintian --allow-root --fail-on error,warning "$debs"/*.changes >"$work/out" 2>"$work/err"
}
expect 'lintian' no_fault
rm -f "$work/out" "$work/err"
depends() { # PACKAGE
	dpkg-deb -f "$debs/$1"_*.deb Depends
}
equal 'the library of the wheel needs' "$(depends libweekwheel1 | sed 's/ (.*//')" libc6
equal 'to develop with it one needs' "$(depends libweekwheel-dev | sed 's/ (.*//')" libweekwheel1
# The line of the page that has a pattern for them.
chosen() {
	local line LC_ALL=C
	line=$(sed -n 's/^apt-get install \(.*weekwheeld_.*deb\) .*/\1/p' docs/installing.md)
	# shellcheck disable=SC2086
	(cd "$debs" && printf '%s ' $line) | sed 's/_[^ ]*//g; s,\./,,g'
}
equal 'what the page installs for jobs' "$(chosen)" "$(printf 'libweekwheel%s ' -calendar1 -callback1 -jobs1 -postgres1 -redis1 -schedule1 1)weekwheel weekwheeld "

# A program of the wheel sees nothing but the wheel's packages.
mkdir "$work/alone" "$work/all"
unpack() { # FOLDER PACKAGE...
	for package in "${@:2}"; do
		dpkg-deb -x "$debs/$package"_*.deb "$1"
	done
}
unpack "$work/alone" libweekwheel1 libweekwheel-dev
unpack "$work/all" libweekwheel1 libweekwheel-dev libweekwheel-jobs1 libweekwheel-jobs-dev libweekwheel-{calendar,callback,redis,schedule}1
read -ra cc <<<"$CC"
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
compiles() { # FOLDER PACKAGE PROGRAM ARGUMENT
	local flags
	read -ra flags < <(PKG_CONFIG_PATH=$1/usr/lib/$multiarch/pkgconfig pkg-config --define-variable=prefix="$1/usr" \
		--define-variable=libdir="$1/usr/lib/$multiarch" --define-variable=includedir="$1/usr/include" --cflags --libs "$2")
	# pkg-config leaves out the folders of the system.
	"${cc[@]}" -std=c11 "tests/install/$3.c" -o "$work/$3" -I"$1/usr/include" -L"$1/usr/lib/$multiarch" "${flags[@]}" &&
		LD_LIBRARY_PATH=$1/usr/lib/$multiarch "$work/$3" "$4"
}
expect 'a program of the wheel' compiles "$work/alone" weekwheel use malloc
expect 'a program of jobs' compiles "$work/all" weekwheel-jobs use_jobs "$work/jobs"
pages_of_a_library() { # FOLDER...: a page that only refers to another lies beside it
	local page
	while read -r page; do
		[ -s "${page%/*}/$(zcat "$page" | sed -n 's|^\.so man3/||p').gz" ] || return 1
	done < <(find "$1" -name '*.3.gz' -exec sh -c 'zcat "$1" | grep -q "^\.so "' - {} \; -print)
}
expect 'the pages of the wheel are whole' pages_of_a_library "$work/alone"
guides() {
	# grep reads all of it: dpkg-deb fails when nobody does.
	dpkg-deb -c "$debs"/weekwheel-doc_*.deb | grep ' \./usr/share/doc/weekwheel/debounce\.md$' >/dev/null
}
expect 'the guides can be read as they are' guides

# ---- An older version of the same, whose service tells that it is older.
version=$(dpkg-deb -f "$debs"/libweekwheel1_*.deb Version)
for deb in "$debs"/*.deb; do
	dpkg-deb -R "$deb" "$work/package"
	sed -i "s/$version/0.0.9-1/g; s/(>= ${version%-*})/(>= 0.0.9)/g" "$work/package/DEBIAN/control"
	sed -i 's/^Description=/&Older /' "$work/package"/lib/systemd/system/*.service 2>/dev/null || true
	mkdir -p "$work/older"
	dpkg-deb -Znone -b "$work/package" "$work/older" >/dev/null
	rm -rf "$work/package"
done

counts() { # FILE: of lines that begin with ok or FAIL
	grep -v '^ok: ' "$1" || true
	passed=$((passed + $(grep -c '^ok: ' "$1" || true))) failed=$((failed + $(grep -c '^FAIL: ' "$1" || true)))
}
if [ -z "$maker" ] || ! wait "$maker"; then
	skip "installing them in a clean Debian: $why $(tail -n 1 "$work/root.log" 2>/dev/null || true)"
	finish
fi
mkdir "$root/packages" "$root/packages/older"
cp "$debs"/*.deb "$root/packages"
cp "$work"/older/*.deb "$root/packages/older"
# What it depends on takes half a minute.
rm -f "$root"/packages/{,older/}libweekwheel-jobs-dev_*
cp tests/install/packages_inside.sh "$root/packages/inside"
chroot "$root" sh -c 'apt-get -q -y --no-install-recommends --download-only install /packages/*.deb' >"$work/out" 2>&1 ||
	fail 'apt finds what the packages depend on'
# It has no network. The service for which it boots ends it.
cat >"$root/etc/systemd/system/inside.service" <<END
[Unit]
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
Environment=VERSION=$version
ExecStart=/bin/bash -c '/packages/inside >/packages/log 2>&1'
TimeoutStartSec=200
END
if ! timeout -k 10 250 systemd-nspawn --quiet --register=no --keep-unit --private-network --directory="$root" --machine="weekwheel-$$" \
	--console=pipe --boot systemd.unit=inside.service >"$work/boot.log" 2>&1 </dev/null && [ ! -f "$root/packages/log" ]; then
	skip "installing them in a clean Debian: systemd-nspawn does not boot here: $(tail -n 1 "$work/boot.log")"
	finish
fi
rmdir "/run/systemd/nspawn/propagate/weekwheel-$$" 2>/dev/null || true
counts "$root/packages/log"
expect 'what is done inside comes to its end' grep -qx 'ok: the end' "$root/packages/log"

# ---- Containers, from the same packages.
if ! command -v buildah >/dev/null || ! command -v jq >/dev/null; then
	skip 'containers: Debian has what builds them in the packages buildah and jq'
	finish
fi
status=0
tests/install/containers.sh "$root" "$debs" "$work" >"$work/containers.log" 2>&1 </dev/null || status=$?
if [ "$status" = 77 ]; then
	skip "containers: buildah makes no image here: $(tail -n 1 "$work/containers.log")"
else
	counts "$work/containers.log"
fi
finish
