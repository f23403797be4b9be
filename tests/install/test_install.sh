#!/bin/bash
# Installs below a folder of its own, compiles a program against what is there with nothing but pkg-config, runs it, and
# uninstalls. scripts/run-tests says where the build folder is and which compilers it was made with.
# tier: check, core
set -euo pipefail

cd "$(dirname "$0")/../.."
: "${B:?is the build folder}" "${CC:=cc}" "${CXX:=c++}" "${SANITIZE:=}"
source tests/support/cli.sh
[ -z "$SANITIZE" ] || skip_all 'an instrumented library is not for installing'

root=$work

# Without the flags of the make that runs this, such as T= and -j.
make_quietly() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make --no-print-directory B="$B" DESTDIR="$root" prefix=/opt/ww "$@" >/dev/null
}

package_of() { # NAME OPTION...
	local name=$1
	shift
	PKG_CONFIG_PATH=$root/opt/ww/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config "$@" "$name"
}
package() {
	package_of weekwheel "$@"
}

# A compiler may come with arguments, such as ccache's.
read -ra cc <<<"$CC"
read -ra cxx <<<"$CXX"
lib=$root/opt/ww/lib
expect 'make install' make_quietly install

shared=$(readlink -f "$lib/libweekwheel.so")
soname_is_right() { readelf -d "$shared" | grep -F 'SONAME' >/dev/null && readelf -d "$shared" | grep -F '[libweekwheel.so.1]' >/dev/null; }
expect 'the soname is libweekwheel.so.1' soname_is_right
expect 'a link by the soname' [ "$(readlink -f "$lib/libweekwheel.so.1")" = "$shared" ]
expect 'the version of the package' [ "$(package --modversion)" = "${shared##*.so.}" ]

# The headers of the libraries that this configuration builds.
headers() {
	local header library
	for header in include/weekwheel/*.h; do
		case ${header##*/} in
		jobs.h) library=_jobs ;;
		jobs_redis.h) library=_redis ;;
		jobs_postgres.h) library=_postgres ;;
		callback.h) library=_callback ;;
		calendar.h) library=_calendar ;;
		schedule.h) library=_schedule ;;
		*) library= ;;
		esac
		[ ! -f "$B/lib/libweekwheel$library.a" ] || echo "${header##*/}"
	done
}
every_header_is_there() {
	diff <(headers) <(cd "$root/opt/ww/include/weekwheel" && ls)
}
expect 'every header is there' every_header_is_there

warnings=(-Wall -Wextra -Wpedantic -Werror)
read -ra shared_flags < <(package --cflags --libs)
read -ra cflags < <(package --cflags)
read -ra static_flags < <(package --static --libs)
all_static_flags=("${static_flags[@]}")
# pkg-config puts the folder in front of every path of a package, also of one that lies outside it.
static_flags=("${static_flags[@]/-lweekwheel/-l:libweekwheel.a}")

expect 'C with the shared library' \
	"${cc[@]}" -std=c11 "${warnings[@]}" tests/install/use.c -o "$root/use-c" "${shared_flags[@]}"
expect 'C++ with the shared library' \
	"${cxx[@]}" -std=c++17 "${warnings[@]}" -x c++ tests/install/use.c -o "$root/use-c++" "${shared_flags[@]}"
# What the page on embedding tells pkg-config for it.
read -ra page_flags < <(sed -n 's/^cc app.c .*pkg-config \(.*\) weekwheel) -l:libweekwheel.a -pthread .*/\1/p' docs/embed-a-wheel.md)
read -ra page_flags < <(package "${page_flags[@]}")
expect 'C with the archive, by the page on embedding' \
	"${cc[@]}" -std=c11 "${warnings[@]}" tests/install/use.c -o "$root/use-page" "${page_flags[@]}" -l:libweekwheel.a -pthread
expect 'C with the static library' \
	"${cc[@]}" -std=c11 "${warnings[@]}" "${cflags[@]}" tests/install/use.c -o "$root/use-static" "${static_flags[@]}"
# Only here the order of the libraries counts. Not every system has all of them as archives.
has_archives() { # NAME...
	local name
	for name; do
		[ -f "$("${cc[@]}" -print-file-name="lib$name.a")" ] || return 1
	done
}
if has_archives c m; then
	expect 'C with nothing but static libraries' "${cc[@]}" -static -std=c11 "${warnings[@]}" "${cflags[@]}" \
		tests/install/use.c -o "$root/use-all-static" "${all_static_flags[@]}"
	expect 'the program of nothing but static libraries runs' "$root/use-all-static" malloc
fi
expect 'the C program runs' env LD_LIBRARY_PATH="$lib" "$root/use-c" malloc
expect 'the C++ program runs' env LD_LIBRARY_PATH="$lib" "$root/use-c++" malloc
expect 'the static program runs' "$root/use-static" malloc
needs_no_shared() { ! readelf -d "$root/use-static" | grep libweekwheel >/dev/null; }
expect 'the static program needs no shared library' needs_no_shared

# The library links only the C library, so that any process can load it. The libraries of jobs link those that they are made
# of.
libc='libc\.so\.|ld-linux'
needs_only() { # NAME PATTERN
	local needed
	needed=$(readelf -d "$lib/lib$1.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE "^($libc|$2)") || return 0
	echo "lib$1.so needs ${needed//$'\n'/ }"
	return 1
}
loads_only_libc() { ! ldd "$shared" | grep -vE 'linux-vdso|linux-gate|/?libc\.so\.|ld-linux'; }
expect 'libweekwheel.so needs the C library alone' needs_only weekwheel "$libc"
expect 'libweekwheel.so loads the C library alone' loads_only_libc
for name in weekwheel_jobs:sqlite3 'weekwheel_redis:(hiredis|ssl|crypto)' weekwheel_postgres:pq 'weekwheel_callback:(curl|crypto)' 'weekwheel_calendar:glib'; do
	[ ! -f "$lib/lib${name%%:*}.so" ] ||
		expect "lib${name%%:*}.so needs what is its own" needs_only "${name%%:*}" "libweekwheel(_jobs)?\.so|lib${name#*:}"
done
expect 'C that opens the library' \
	"${cc[@]}" -std=c11 "${warnings[@]}" "${cflags[@]}" tests/install/use_dlopen.c -o "$root/use-dlopen" -ldl
expect 'the library opens from C' "$root/use-dlopen" "$shared" malloc
expect 'the library opens from Python' tests/install/use_ctypes.py "$shared" malloc
# A library that is loaded later must not be taken for jemalloc. This one would end the program.
expect 'a later jemalloc' "${cc[@]}" -shared -fPIC -o "$root/later.so" -x c - <<-'END'
	void mallocx(void) { __builtin_trap(); }
	void sdallocx(void) { __builtin_trap(); }
	void sallocx(void) { __builtin_trap(); }
	void mallctl(void) { __builtin_trap(); }
END
expect 'the library keeps to malloc when jemalloc comes later' "$root/use-dlopen" "$shared" malloc "$root/later.so"

# A program brings jemalloc, and those that are installed do if configured.
if [ "${ALLOCATOR:-}" = jemalloc ]; then
	jemalloc=$("${cc[@]}" -print-file-name=libjemalloc.so)
	# The archive of jemalloc needs libm, which its package does not say.
	take_jemalloc=('-Wl,--no-as-needed' -ljemalloc -lm)
	expect 'C with jemalloc and the shared library' \
		"${cc[@]}" -std=c11 "${warnings[@]}" tests/install/use.c -o "$root/use-c" "${shared_flags[@]}" "${take_jemalloc[@]}"
	expect 'the shared library takes jemalloc' env LD_LIBRARY_PATH="$lib" "$root/use-c" jemalloc
	expect 'C with jemalloc and the static library' "${cc[@]}" -std=c11 "${warnings[@]}" "${cflags[@]}" \
		tests/install/use.c -o "$root/use-static" "${static_flags[@]}" "${take_jemalloc[@]}"
	expect 'the static library takes jemalloc' "$root/use-static" jemalloc
	if has_archives c m jemalloc; then
		expect 'C with jemalloc and nothing but static libraries' "${cc[@]}" -static -std=c11 "${warnings[@]}" "${cflags[@]}" \
			tests/install/use.c -o "$root/use-all-static" "${all_static_flags[@]}" "${take_jemalloc[@]}"
		expect 'the program of nothing but static libraries takes jemalloc' "$root/use-all-static" jemalloc
	fi
	expect 'an opened library takes jemalloc' env LD_PRELOAD="$jemalloc" "$root/use-dlopen" "$shared" jemalloc
	expect 'from Python as well' env LD_PRELOAD="$jemalloc" tests/install/use_ctypes.py "$shared" jemalloc
	for program in "$root"/opt/ww/bin/*; do
		expect "${program##*/} links jemalloc" grep -q 'NEEDED.*libjemalloc' <(readelf -d "$program")
	done
fi

# Not by way of the build folder, and without LD_LIBRARY_PATH.
program_runs() {
	[ -x "$B/bin/weekwheel" ] || return 0 # not part of this configuration
	(cd / && "$root/opt/ww/bin/weekwheel" --help >/dev/null)
}
expect 'the installed program runs' program_runs

# Jobs, where the library was built: it needs SQLite.
if [ -f "$B/lib/libweekwheel_jobs.a" ]; then
	jobs=$(readlink -f "$lib/libweekwheel_jobs.so")
	jobs_soname_is_right() { readelf -d "$jobs" | grep -F SONAME | grep -F '[libweekwheel_jobs.so.1]' >/dev/null; }
	expect 'the soname is libweekwheel_jobs.so.1' jobs_soname_is_right
	expect 'a link by the soname of jobs' [ "$(readlink -f "$lib/libweekwheel_jobs.so.1")" = "$jobs" ]
	expect 'the version of weekwheel-jobs' [ "$(package_of weekwheel-jobs --modversion)" = "${jobs##*.so.}" ]
	read -ra shared_flags < <(package_of weekwheel-jobs --cflags --libs)
	read -ra cflags < <(package_of weekwheel-jobs --cflags)
	read -ra static_flags < <(package_of weekwheel-jobs --static --libs)
	static_flags=("${static_flags[@]/#-lweekwheel_jobs/-l:libweekwheel_jobs.a}")
	static_flags=("${static_flags[@]/%-lweekwheel/-l:libweekwheel.a}")
	expect 'jobs from C with the shared library' \
		"${cc[@]}" -std=c11 "${warnings[@]}" tests/install/use_jobs.c -o "$root/jobs-c" "${shared_flags[@]}"
	expect 'jobs from C++ with the shared library' \
		"${cxx[@]}" -std=c++17 "${warnings[@]}" -x c++ tests/install/use_jobs.c -o "$root/jobs-c++" "${shared_flags[@]}"
	expect 'jobs from C with the static library' "${cc[@]}" -std=c11 "${warnings[@]}" "${cflags[@]}" \
		tests/install/use_jobs.c -o "$root/jobs-static" "${static_flags[@]}"
	expect 'the C program of jobs runs' env LD_LIBRARY_PATH="$lib" "$root/jobs-c" "$root/one"
	expect 'the C++ program of jobs runs' env LD_LIBRARY_PATH="$lib" "$root/jobs-c++" "$root/two"
	expect 'the static program of jobs runs' "$root/jobs-static" "$root/three"
	jobs_needs_no_shared() { ! readelf -d "$root/jobs-static" | grep libweekwheel >/dev/null; }
	expect 'the static program of jobs needs no shared library' jobs_needs_no_shared
	jobs_are_checked() { (cd / && "$root/opt/ww/bin/weekwheel" fsck "$root/one" >/dev/null); }
	expect 'the installed program checks a directory of jobs' jobs_are_checked
fi

# Other libraries as archives, with what pkg-config says that they need. That of curl needs more than Debian installs with it.
links_archive() { # NAME FUNCTION
	local flags
	read -ra flags < <(package_of "weekwheel-$1" --static --cflags --libs)
	flags=("${flags[@]/%-lweekwheel/-l:libweekwheel.a}")
	for library in redis postgres callback jobs calendar schedule; do
		flags=("${flags[@]/#-lweekwheel_$library/-l:libweekwheel_$library.a}")
	done
	printf 'int %s(void);\nint main(void) { return %s(); }\n' "$2" "$2" | "${cc[@]}" -x c - -o "$root/archive" -x none "${flags[@]}"
}
for name in redis:ww_jobs_redis_open postgres:ww_jobs_postgres_setup calendar:ww_calendar_open schedule:ww_schedule_open; do
	[ ! -f "$B/lib/libweekwheel_${name%%:*}.a" ] ||
		expect "libweekwheel_${name%%:*}.a links with what pkg-config says" links_archive "${name%%:*}" "${name#*:}"
done

# The server, where it was built: it needs libuv, too.
if [ -x "$B/bin/weekwheeld" ]; then
	unit=$root/opt/ww/lib/systemd/system/weekwheeld.service
	server_runs() { (cd / && "$root/opt/ww/bin/weekwheeld" --version >/dev/null); }
	expect 'the installed server runs' server_runs
	expect 'the unit names the installed server' grep -q '^ExecStart=/opt/ww/bin/weekwheeld --data ' "$unit"
	only_that_differs() { [ "$(diff tools/weekwheeld/weekwheeld.service "$unit" | grep -c '^>')" = 2 ]; }
	socket=$root/opt/ww/lib/systemd/system/weekwheeld.socket
	socket_is_there() { [ "$(diff tools/weekwheeld/weekwheeld.socket "$socket" | grep -c '^>')" = 1 ]; }
	expect 'the unit of its socket is installed' socket_is_there
	expect 'nothing else of the unit is changed but how it is installed' only_that_differs
fi
if [ -x "$B/bin/weekwheel-sessiond" ]; then
	sessiond_runs() { (cd / && "$root/opt/ww/bin/weekwheel-sessiond" --version >/dev/null); }
	expect 'the installed server of sessions runs' sessiond_runs
	expect 'its unit names it' grep -q '^ExecStart=/opt/ww/bin/weekwheel-sessiond --data ' \
		"$root/opt/ww/lib/systemd/system/weekwheel-sessiond.service"
	sessions_socket=$root/opt/ww/lib/systemd/system/weekwheel-sessiond.socket
	sessions_socket_is_there() {
		[ "$(diff tools/weekwheel-sessiond/weekwheel-sessiond.socket "$sessions_socket" | grep -c '^>')" = 1 ]
	}
	expect 'the unit of its socket is installed, too' sessions_socket_is_there
fi

if [ -x "$B/bin/weekwheel-expirer" ]; then
	expirer_runs() { (cd / && "$root/opt/ww/bin/weekwheel-expirer" --version >/dev/null); }
	expect 'the installed companion of Redis runs' expirer_runs
	expect 'its unit names it' grep -q '^ExecStart=/opt/ww/bin/weekwheel-expirer ' \
		"$root/opt/ww/lib/systemd/system/weekwheel-expirer.service"
fi

if [ -x "$B/bin/weekwheel" ]; then
	expect 'the unit of a worker names the installed program' grep -q '^ExecStart=/opt/ww/bin/weekwheel work ' \
		"$root/opt/ww/lib/systemd/system/weekwheel-work@.service"
fi

man=$root/opt/ww/share/man
for page in man/*.[17]; do
	expect "$page is installed" cmp -s "$page" "$man/man${page##*.}/${page##*/}"
done

# The page as a reader sees it, below FUNCTIONS. Each function leads to it.
tells_of_all() { # HEADER PAGE
	local name text status=0
	text=$(LC_ALL=C MANWIDTH=80 man -l "$2" | sed '1,/^FUNCTIONS$/d')
	while read -r name; do
		if ! grep -q "^ .*[ *]$name(" <<<"$text"; then
			echo "$name is missing"
			status=1
		fi
		if [ "$(cat "$man/man3/$name.3")" != ".so man3/${2##*/}" ]; then
			echo "man 3 $name does not lead to the page"
			status=1
		fi
	done < <(sed -n 's/^WW_API [^(]*\(ww_[a-z0-9_]*\)(.*/\1/p' "$1")
	return "$status"
}
for header in $(headers | sed 's|^|include/weekwheel/|'); do
	name=$(basename "$header" .h)
	case $name in export | weekwheel) continue ;; esac
	page=$man/man3/weekwheel_$name.3
	expect "weekwheel_$name(3) is installed" [ -s "$page" ]
	if command -v man >/dev/null; then
		expect "weekwheel_$name(3) tells of every function" tells_of_all "$header" "$page"
	fi
done

for command in put:jobs work:jobs export:store; do
	equal "the page of weekwheel ${command%:*}" "$(cat "$man/man1/weekwheel-${command%:*}.1")" ".so man1/weekwheel-${command#*:}.1"
done
if command -v man >/dev/null; then
	leads_to_its_page() { LC_ALL=C man -M "$man" 3 ww_wheel_schedule | grep -q '^WEEKWHEEL_WHEEL(3)'; }
	expect 'man 3 ww_wheel_schedule shows its page' leads_to_its_page
	put_leads_to_jobs() { LC_ALL=C man -M "$man" weekwheel put | grep '^WEEKWHEEL-JOBS(1)' >/dev/null; }
	expect 'man weekwheel put shows the page of jobs' put_leads_to_jobs
fi
if command -v mandb >/dev/null; then
	# In a copy, as its index is no file of ours. It has what stands in NAME.
	finds_debounce() {
		cp -r "$man" "$root/man" && mandb -cq "$root/man" && LC_ALL=C man -M "$root/man" -k debounce | grep '^weekwheel-put' >/dev/null
	}
	expect 'man -k debounce finds weekwheel put' finds_debounce
fi

expect 'make uninstall' make_quietly uninstall
nothing_is_left() { [ -z "$(find "$root/opt" ! -type d)" ]; }
expect 'nothing is left' nothing_is_left

# In capitals it would be ignored, and the files go to where root's are.
with_capitals() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u prefix make --no-print-directory B="$B" DESTDIR="$root" PREFIX=/opt/capitals "$@" >/dev/null
}
expect 'make install PREFIX=' with_capitals install
everything_is_below() { [ -f "$root/opt/capitals/lib/libweekwheel.a" ] && [ ! -e "$root/usr" ] && [ -z "$(find "$root/opt" ! -type d ! -path "$root/opt/capitals/*")" ]; }
expect 'everything is below PREFIX' everything_is_below

finish
