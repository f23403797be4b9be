#!/bin/bash
# Consumers in C and in C++ by each way of docs/embed-a-wheel.md: its build files are taken from the page.
# tier: long, no-sanitizers
set -euo pipefail

cd "$(dirname "$0")/../.."
: "${B:?is the build folder}" "${CC:=cc}" "${CXX:=c++}" "${SANITIZE:=}"
source tests/support/cli.sh
[ -z "$SANITIZE" ] || skip_all 'an instrumented library is not for installing'
top=$PWD
page=docs/embed-a-wheel.md
export CC CXX MAKEFLAGS='' CTEST_OUTPUT_ON_FAILURE=1
unset MFLAGS MAKELEVEL DESTDIR

block() { # LANGUAGE N: the Nth block of the page in the language
	awk -v start="\`\`\`$1" -v want="$2" '
		$0 == start { inside = ++n == want; next }
		/^```/ { inside = 0 }
		inside' "$page"
}

# new_project NAME LANGUAGE N FILE: a folder with a program in C, and the build file of the page
new_project() {
	mkdir -p "$work/$1"
	cp tools/examples/shortest.c "$work/$1/app.c"
	cp tests/install/use.c "$work/$1/use.c"
	cp tests/install/use.c "$work/$1/use.cpp"
	block "$2" "$3" >"$work/$1/$4"
	expect "the page has a $4 for $1" [ -s "$work/$1/$4" ]
}

logged() { # COMMAND...: says nothing unless it fails
	timeout 120 "$@" >"$work/out" 2>&1
}
says_day() { # PROGRAM
	[ "$("$1")" = 'expired on day 6' ]
}
# As distributions install: libraries in a folder of the machine's kind.
prefix=$work/usr
read -ra cc <<<"$CC"
libdir=$prefix/lib/$("${cc[@]}" -print-multiarch 2>/dev/null || true)
libdir=${libdir%/}
env -u B make -s --no-print-directory B="$B" prefix="$prefix" libdir="$libdir" install >"$work/out" 2>&1 || fail 'make install'

# ---- CMake

cmake_builds() { # PROJECT OPTION...
	logged cmake -S "$work/$1" -B "$work/$1/build" "${@:2}" && cp "$work/out" "$work/$1/build/configured" &&
		logged cmake --build "$work/$1/build" -j2
}
with_cmake() { # PROJECT STATIC OPTION...: the page's program and two more, one of them in C++
	cat >>"$work/$1/CMakeLists.txt" <<-END
		enable_language(CXX)
		add_executable(use use.cpp)
		set_target_properties(use PROPERTIES CXX_STANDARD 17)
		target_link_libraries(use PRIVATE weekwheel::weekwheel)
		add_executable(again use.c)
		target_link_libraries(again PRIVATE $2)
	END
	expect "cmake: $1" cmake_builds "$1" "${@:3}"
	expect "$1: the program runs" says_day "$work/$1/build/app"
	expect "$1: a program in C++ runs" "$work/$1/build/use"
	expect "$1: another one in C runs" "$work/$1/build/again"
}
if command -v cmake >/dev/null; then
	new_project find_package cmake 1 CMakeLists.txt
	cat >>"$work/find_package/CMakeLists.txt" <<-'END'
		if(WITH_SCHEDULE)
			add_executable(jobs jobs.c)
			target_link_libraries(jobs PRIVATE weekwheel::schedule)
			add_executable(jobs_static jobs.c)
			target_link_libraries(jobs_static PRIVATE weekwheel::schedule_static)
		endif()
		if(TARGET weekwheel::redis AND TARGET weekwheel::callback)
			file(WRITE ${CMAKE_BINARY_DIR}/all.c "#include <weekwheel/callback.h>\n#include <weekwheel/jobs_redis.h>\n"
				"int main(void) { return ww_callback_open(0, 0) == 0 || ww_jobs_redis_open(0, 0) == 0; }\n")
			add_executable(all_shared ${CMAKE_BINARY_DIR}/all.c)
			target_link_libraries(all_shared PRIVATE weekwheel::redis weekwheel::callback)
			# Outside of the system's folders a library does not lead to those that it needs itself.
			target_link_options(all_shared PRIVATE -Wl,--no-as-needed)
			add_executable(all_static ${CMAKE_BINARY_DIR}/all.c)
			target_link_libraries(all_static PRIVATE weekwheel::redis_static weekwheel::callback_static)
		endif()
		foreach(asked 0.2 0.2.0 0.1 0.3 1)
			find_package(weekwheel ${asked} QUIET)
			message(STATUS "version ${asked}: ${weekwheel_FOUND}")
		endforeach()
		find_package(weekwheel COMPONENTS bells)
	END
	cp tests/install/use_jobs.c "$work/find_package/jobs.c"
	has_schedule=$([ -f "$B/lib/libweekwheel_schedule.a" ] && echo ON || echo OFF)
	with_cmake find_package weekwheel::core_static "-DCMAKE_PREFIX_PATH=$prefix" "-DWITH_SCHEDULE=$has_schedule"
	needs_no_shared() { ! readelf -d "$work/find_package/build/again" | grep libweekwheel >/dev/null; }
	expect 'the program with the archive needs no shared library' needs_no_shared
	log=$work/find_package/build/configured
	equal 'the versions that fit' "$(sed -n 's/^-- version //p' "$log" | tr '\n' ',')" '0.2: 1,0.2.0: 1,0.1: 0,0.3: 0,1: 0,'
	tells_why() { tr -s ' \n' ' ' <"$log" | grep -q 'has no library of the component bells: build and install weekwheel'; }
	expect 'it says why there is no component bells' tells_why
	if [ "$has_schedule" = ON ]; then
		expect 'a program of jobs runs' "$work/find_package/build/jobs" "$work/one"
		expect 'a static program of jobs runs' "$work/find_package/build/jobs_static" "$work/two"
	fi
	for program in all_shared all_static; do
		[ ! -e "$work/find_package/build/$program" ] || expect "$program runs" "$work/find_package/build/$program"
	done

	new_project subdirectory cmake 3 CMakeLists.txt
	mkdir -p "$work/subdirectory/third_party"
	ln -s "$top" "$work/subdirectory/third_party/weekwheel"
	with_cmake subdirectory weekwheel::core -DBUILD_SHARED_LIBS=ON
else
	skip 'CMake: Debian has it in the package cmake'
fi

# ---- A release's tarball

tarball=
if git rev-parse --git-dir >/dev/null 2>&1; then
	expect 'make dist' logged env B="$work" VERSION="$(sed -n 's/^VERSION = //p' "$B/config.mk")" scripts/make-dist
	tarball=$(echo "$work"/dist/*.tar.gz)
fi
if [ -n "$tarball" ] && command -v cmake >/dev/null; then
	new_project FetchContent cmake 2 CMakeLists.txt
	cp "$tarball" "$work/FetchContent/"
	with_cmake FetchContent weekwheel::core

	new_project clone cmake 2 CMakeLists.txt
	sed -i "s|^\tURL .*|\tGIT_REPOSITORY file://$top\n\tGIT_TAG $(git rev-parse HEAD)|" "$work/clone/CMakeLists.txt"
	with_cmake clone weekwheel::core
elif [ -z "$tarball" ]; then
	skip 'FetchContent and the wrap: a release is made from a clone, with git'
fi

# ---- Meson

meson_builds() { # PROJECT OPTION...
	logged meson setup "$work/$1/build" "$work/$1" "${@:2}" && logged meson compile -C "$work/$1/build"
}
with_meson() { # PROJECT OPTION...
	cat >>"$work/$1/meson.build" <<-'END'
		add_languages('cpp', native: false)
		executable('use', 'use.cpp', override_options: ['cpp_std=c++17'], dependencies: dependency('weekwheel'))
	END
	expect "meson: $1" meson_builds "$@"
	expect "$1: the program runs" says_day "$work/$1/build/app"
	expect "$1: a program in C++ runs" "$work/$1/build/use"
}
if ! command -v meson >/dev/null || ! command -v ninja >/dev/null; then
	skip 'Meson: Debian has it in the package meson'
else
	new_project dependency meson 1 meson.build
	with_meson dependency --pkg-config-path "$libdir/pkgconfig" --wrap-mode nofallback
	if [ -n "$tarball" ]; then
		new_project wrap meson 1 meson.build
		mkdir -p "$work/wrap/subprojects/packagefiles"
		cp "$work/dist/weekwheel.wrap" "$work/wrap/subprojects/"
		cp "$tarball" "$work/wrap/subprojects/packagefiles/"
		with_meson wrap --wrap-mode forcefallback
	fi
fi

finish
