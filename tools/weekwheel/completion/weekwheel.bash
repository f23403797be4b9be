# Completion of weekwheel for bash: source this file, or install it as
# /usr/share/bash-completion/completions/weekwheel. The words to complete come from the help of the program.

_weekwheel_commands() { # PROGRAM
	"$1" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p'
}

_weekwheel_options() { # PROGRAM COMMAND WORD...
	local program=$1 words=("$2" --help)
	# These have a help of their own.
	[[ "$2 ${3-}" == "import crontab" ]] && words=(import crontab --help)
	[[ "$2 ${*:3}" == "import "*--from* ]] && words=(import --from URL --help)
	"$program" "${words[@]}" 2>/dev/null | sed -n 's/^  *\(-[A-Za-z0-9], \)\{0,1\}\(--[a-z-]*\).*/\2/p'
}

# Ask the server on the command line with its tokens and certificates, if it answers soon.
_weekwheel_ask() { # PROGRAM COMMAND OPTIONS WORD...: OPTIONS is one word, such as "--limit 9"
	local program=$1 command=$2 options=$3 named=()
	shift 3
	while [ $# -gt 1 ]; do
		case $1 in
		-s | --server) named+=(--server "$2") ;;
		--token-file | --tls-ca | --tls-cert | --tls-key) named+=("$1" "$2") ;;
		-t | --tube) [ "$command" = list ] && named+=(--tube "$2") ;;
		esac
		shift
	done
	# shellcheck disable=SC2086
	"$program" "$command" --json --timeout 1s $options "${named[@]}" 2>/dev/null
}

_weekwheel_tubes() { # PROGRAM WORD...
	_weekwheel_ask "$1" stats '' "${@:2}" | sed -n 's/^{"name": "\([^"]*\)".*/\1/p'
}

# The keys of the first jobs that have one which begins so, as the user types them.
_weekwheel_keys() { # PROGRAM BEGINNING WORD...
	local key
	_weekwheel_ask "$1" list "--limit 100 ${2:+--prefix $2}" "${@:3}" |
		sed -n 's/^{.*"key":"\([^"]*\)".*/\1/p' | while read -r key; do
			printf '%b\n' "${key//%/\\x}"
		done
}

# The zones of this machine's database.
_weekwheel_zones() {
	echo UTC
	sed '/^#/d' "${TZDIR:-/usr/share/zoneinfo}/zone.tab" 2>/dev/null | cut -f 3
}

_weekwheel() {
	local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} words='' i
	COMPREPLY=()
	program=${program/#\~/$HOME}

	if [ "$COMP_CWORD" = 1 ]; then
		words="$(_weekwheel_commands "$program") --help --version"
	elif [ "$command" = help ]; then
		words=$(_weekwheel_commands "$program")
	else
		if [ "$command" = work ]; then
			for ((i = 2; i < COMP_CWORD; i++)); do
				if [ "${COMP_WORDS[i]}" = -- ]; then
					mapfile -t COMPREPLY < <(compgen -c -f -- "$current")
					return
				fi
			done
		fi
		case $before in
		-k | --key)
			# The tube may come after the key. A key may have blanks.
			mapfile -t COMPREPLY < <(_weekwheel_keys "$program" "$current" "${COMP_WORDS[@]:2}" '')
			return
			;;
		-o | --sort) words='id due priority tube key state attempts bytes error' ;;
		-t | --tube) words=$(_weekwheel_tubes "$program" "${COMP_WORDS[@]:2}") ;;
		--from) words='beanstalkd:// redis:// sidekiq://' ;;
		-u | --unit) words='s ms' ;;
		--state) words='delayed ready reserved buried ended' ;;
		--missed) words='once all skip' ;;
		--overlap) words='allow skip wait' ;;
		-z | --tz) words=$(_weekwheel_zones) ;;
		-m | --method) words='GET POST PUT PATCH DELETE HEAD' ;;
		--format) words='swf log csv' ;;
		*)
			if [[ $current == -* ]]; then
				words=$(_weekwheel_options "$program" "$command" "${COMP_WORDS[@]:2:COMP_CWORD-2}")
			elif [[ $command =~ ^(pause|resume|purge|limit)$ && $COMP_CWORD = 2 ]]; then
				words=$(_weekwheel_tubes "$program" "${COMP_WORDS[@]:2}")
			elif [[ $command = schedule && $COMP_CWORD = 2 ]]; then
				words='add list show pause resume run remove'
			else
				mapfile -t COMPREPLY < <(compgen -f -- "$current")
				[[ $command = import && $COMP_CWORD = 2 && crontab == "$current"* ]] && COMPREPLY+=(crontab)
				return
			fi
			;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -o filenames -F _weekwheel weekwheel
