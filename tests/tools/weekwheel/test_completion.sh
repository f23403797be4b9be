#!/bin/bash
# Completion in bash offers the words of the program's help.
# tier: check
# Names with $ are data.
# shellcheck disable=SC2016
set -uo pipefail

cd "$(dirname "$0")/../../.." || exit 1
weekwheel=$(realpath "${WEEKWHEEL:-${B:-build}/bin/weekwheel}")
passed=0 failed=0

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
	# grep reads to the end. Otherwise the writer would fail, and the pipe with it.
	if offered "$@" | grep -xF -- "$expected" >/dev/null; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL: weekwheel $*: '$expected' is not offered, but: $(offered "$@" | paste -sd' ')"
	fi
}

equal() { # WHAT GOT EXPECTED
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL: $1: '$2', not '$3'"
	fi
}

commands='replay put move cancel list peek bury kick purge pause resume stats forecast work top advance help'
if "$weekwheel" help cron >/dev/null 2>&1; then
	commands="$commands cron schedule"
fi
# These are there where SQLite is.
if "$weekwheel" help fsck >/dev/null 2>&1; then
	commands="$commands fsck backup restore recover export import"
fi
for command in $commands; do
	offers "$command" "${command:0:2}"
	if [ "$command" != help ]; then
		offers --help "$command" --h
		# All options of the help's table, and no other word.
		equal "options of $command" "$(offered "$command" -- | sort | paste -sd' ')" \
			"$("$weekwheel" "$command" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort | paste -sd' ')"
	fi
done
equal 'an unknown beginning' "$(offered zz)" ''
equal '--state d' "$(offered list --state d)" delayed
equal '--missed' "$(offered put --missed '' | paste -sd' ')" 'once all skip'
equal '--overlap' "$(offered schedule add --overlap '' | paste -sd' ')" 'allow skip wait'
equal 'schedule' "$(offered schedule '' | paste -sd' ')" 'add list show pause resume run remove'
equal 'postgres' "$(offered postgres '' | paste -sd' ')" 'setup check remove'
equal 'schedule r' "$(offered schedule r | paste -sd' ')" 'resume run remove'
offers crontab import cron
offers --from sessions import --fr
offers CHANGELOG.md import crontab CHANGE
zones=$(mktemp -d)
printf '#country\tcoordinates\tTZ\nDE\t+5230+01322\tEurope/Berlin\tmost of Germany\nRS\t+4450+02030\tEurope/Belgrade\n' >"$zones/zone.tab"
for words in 'cron --tz' 'schedule add -z' 'import crontab --tz'; do
	# shellcheck disable=SC2086
	equal "$words" "$(TZDIR=$zones offered $words Europe/Be | paste -sd' ')" 'Europe/Berlin Europe/Belgrade'
done
equal 'zones without a database' "$(TZDIR=$zones/none offered cron --tz '')" UTC
rm -r "$zones"
equal 'help st' "$(offered help st)" stats
offers README.md put --file READ
offers tools fsck too
offers true work --tube x -- tru
offers --follow import --from beanstalkd://localhost --fol
equal 'a URL to import from' "$(offered import --from be)" beanstalkd://
equal '--sort d' "$(offered list --sort d)" due
equal 'keys without a server' "$(offered put --server 127.0.0.1:1 --key '')" ''
equal 'tubes without a server' "$(offered put --server 127.0.0.1:1 --tube '')" ''

# Tubes and keys of a server that runs.
server=$(realpath -q "${WEEKWHEELD:-${B:-build}/bin/weekwheeld}")
if [ -x "$server" ]; then
	folder=$(mktemp -d)
	"$server" --memory --listen 127.0.0.1:0 --unix "$folder/socket" 2>"$folder/log" &
	pid=$!
	trap 'kill "$pid"; wait "$pid"; rm -r "$folder"' EXIT
	export WEEKWHEEL_SERVER=unix:$folder/socket
	until [ -S "$folder/socket" ] && "$weekwheel" stats >/dev/null 2>&1; do
		kill -0 "$pid" 2>/dev/null || break
	done
	for key in 'cart 1' cart-ä other; do
		"$weekwheel" put --tube mail --key "$key" x >/dev/null
	done
	"$weekwheel" put --tube more --key cartoon x >/dev/null
	equal 'tubes' "$(offered list --tube m | sort | paste -sd' ')" 'mail more'
	equal 'a tube to pause' "$(offered pause ma)" mail
	equal 'keys' "$(offered cancel --tube mail --key cart | sort | paste -sd,)" "$(printf '%s\n' 'cart\ 1' cart-ä | sort | paste -sd,)"
	equal 'keys of all tubes' "$(offered peek --key carto)" cartoon

	# Anybody may choose a name. None is executed, and no key is another one than its name. A terminal would obey some.
	cd "$folder" || exit 1
	"$weekwheel" put --tube 'x$(touch$IFS$PWD/ran)' y >/dev/null
	for key in '$(touch ran)' '`touch ran`' 'k"e\y' 'a%41b' '*' $'es\ec' $'c1\xc2\x9b' $'rtl\xe2\x80\xae' $'no\xfftext'; do
		"$weekwheel" put --tube keys --key "$key" y >/dev/null
	done
	for words in 'list --tube' 'work --tube' 'put -t' pause resume purge limit; do
		# shellcheck disable=SC2086
		equal "$words" "$(offered $words x)" 'x\$\(touch\$IFS\$PWD/ran\)'
	done
	equal 'keys as they are' "$(offered cancel --tube keys --key '' | sort | paste -sd,)" \
		"$(printf '%q\n' '$(touch ran)' '`touch ran`' 'k"e\y' 'a%41b' '*' | sort | paste -sd,)"
	equal 'keys of a tube in quotes' "$(offered list --tube "'keys'" --key '\$\(')" '\$\(touch\ ran\)'
	equal 'a tube on the line' "$(offered list --tube "'x\$(touch ran)'" --key '')" ''
	equal 'a key begun in quotes' "$(offered peek --key '"k\"')" 'k\"e\\y'
	equal 'a command begun in quotes' "$(offered peek --key '"`')" '\`touch ran\`'
	equal 'the same in others' "$(offered peek --key "'\`")" '`touch ran`'
	"$weekwheel" put --tube keys --key "it's!" y >/dev/null
	equal 'a key with a quote' "$(offered peek --key "'it'\\''s")" "it'\\''s!"
	equal 'a key with a bang' "$(offered peek --key '"it')" "it's\"\\!\""
	equal 'a key begun with blanks' "$(offered peek --key "'cart ")" 'cart 1'
	mkdir zones
	printf 'XX\t+0+0\tE/$(touch$IFS$PWD/ran)\n' >zones/zone.tab
	equal 'zones' "$(TZDIR=zones offered cron --tz E)" 'E/\$\(touch\$IFS\$PWD/ran\)'
	equal 'what was executed' "$(ls)" "$(printf '%s\n' log socket zones)"
	cd "$OLDPWD" || exit 1
	unset WEEKWHEEL_SERVER
	equal 'tubes of the server that is named' "$(offered list --server "unix:$folder/socket" --tube mo)" more

	# shellcheck source=/dev/null
	source tools/weekwheel/completion/weekwheeld.bash
	COMP_WORDS=("$server" --)
	COMP_CWORD=1
	_weekwheeld
	equal 'options of weekwheeld' "$(printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd' ')" \
		"$("$server" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort | paste -sd' ')"
	COMP_WORDS=("$server" --sync '')
	COMP_CWORD=2
	_weekwheeld
	equal '--sync' "${COMPREPLY[*]}" 'always interval system'
fi
sessions=$(realpath -q "${SESSIOND:-${B:-build}/bin/weekwheel-sessiond}")
if [ -x "$sessions" ]; then
	# shellcheck source=/dev/null
	source tools/weekwheel/completion/weekwheeld.bash
	COMP_WORDS=("$sessions" --maxmem)
	COMP_CWORD=1
	_weekwheeld
	equal 'options of weekwheel-sessiond' "$(printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd' ')" '--maxmemory --maxmemory-policy'
	COMP_WORDS=("$sessions" --maxmemory-policy v)
	COMP_CWORD=2
	_weekwheeld
	equal '--maxmemory-policy' "${COMPREPLY[*]}" volatile-lru
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
