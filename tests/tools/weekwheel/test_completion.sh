#!/bin/bash
# Completion in bash offers what the help of the program has.
set -uo pipefail

cd "$(dirname "$0")/../../.." || exit 1
weekwheel=$(realpath "${WEEKWHEEL:-${B:-build}/bin/weekwheel}")
source tests/support/cli.sh

# shellcheck source=/dev/null
source tools/weekwheel/completion/weekwheel.bash

offered() { # WORD...: what is offered for the last word
	COMP_WORDS=("$weekwheel" "$@")
	COMP_CWORD=$#
	_weekwheel
	printf '%s\n' "${COMPREPLY[@]}"
}

offers() { # EXPECTED WORD...
	local expected=$1
	shift
	# grep reads all of it, since the writer would fail if it stopped early.
	if offered "$@" | grep -xF -- "$expected" >/dev/null; then
		ok
	else
		fail "weekwheel $*: '$expected' is not offered, but: $(offered "$@" | paste -sd' ')"
	fi
}

commands='replay put move cancel list peek kick stats forecast work top advance help'
# Builds with LMDB have these as well.
if "$weekwheel" help fsck >/dev/null 2>&1; then
	commands="$commands fsck export import"
fi
for command in $commands; do
	offers "$command" "${command:0:2}"
	if [ "$command" != help ]; then
		offers --help "$command" --h
		# Every option of the table in the help, and no other word.
		equal "options of $command" "$(offered "$command" -- | sort | paste -sd' ')" \
			"$("$weekwheel" "$command" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort | paste -sd' ')"
	fi
done
equal 'an unknown beginning' "$(offered zz)" ''
equal '--state d' "$(offered list --state d)" delayed
equal '--missed' "$(offered put --missed '' | paste -sd' ')" 'once all skip'
equal 'help st' "$(offered help st)" stats
offers README.md put --file READ
offers tools fsck too
offers true work --tube x -- tru
equal 'tubes without a server' "$(offered put --server 127.0.0.1:1 --tube '')" ''

finish
