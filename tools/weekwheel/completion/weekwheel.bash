# Completion of weekwheel for bash: source this file, or install it as
# /usr/share/bash-completion/completions/weekwheel. The words to complete come from the help of the program.

_weekwheel_commands() { # PROGRAM
	"$1" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p'
}

_weekwheel_options() { # PROGRAM COMMAND WORD...
	local program=$1 words=("$2" --help)
	# These have a help of their own.
	[[ "$2 ${3-}" == "import crontab" ]] && words=(import crontab --help)
	[[ "$2 ${3-}" == "sessions import" ]] && words=(sessions import --help)
	[[ "$2 ${*:3}" == "import "*--from* ]] && words=(import --from URL --help)
	"$program" "${words[@]}" 2>/dev/null | sed -n 's/^  *\(-[A-Za-z0-9], \)\{0,1\}\(--[a-z-]*\).*/\2/p'
}

# Set REPLY to what a word on the command line means without its quotes, and quote to one that is open at its end.
# Nothing in it is expanded or executed.
_weekwheel_unquote() { # WORD
	local rest=$1 char
	REPLY='' quote=''
	while [ -n "$rest" ]; do
		char=${rest:0:1} rest=${rest:1}
		case $quote$char in
		\' | \") quote=$char ;;
		\'\' | \"\") quote='' ;;
		\\ | \"\\)
			[[ $quote && $rest != [\"\\\$\`]* ]] && REPLY+=$char
			REPLY+=${rest:0:1} rest=${rest:1}
			;;
		*) REPLY+=$char ;;
		esac
	done
}

# Ask the server on the command line with its tokens and certificates, if it answers soon.
_weekwheel_ask() { # PROGRAM COMMAND BEGINNING WORD...: ask for jobs whose keys begin so
	local program=$1 command=$2 named=() REPLY quote
	[ "$command" = list ] && named+=(--limit 100 ${3:+--prefix "$3"})
	shift 3
	while [ $# -gt 1 ]; do
		_weekwheel_unquote "$2"
		case $1 in
		-s | --server) named+=(--server "$REPLY") ;;
		--token-file | --tls-ca | --tls-cert | --tls-key) named+=("$1" "$REPLY") ;;
		-t | --tube) [ "$command" = list ] && named+=(--tube "$REPLY") ;;
		esac
		shift
	done
	"$program" "$command" --json --timeout 1s "${named[@]}" 2>/dev/null
}

_weekwheel_tubes() { # PROGRAM WORD...
	_weekwheel_ask "$1" stats '' "${@:2}" | sed -n 's/^{"name": "\([^"]*\)".*/\1/p'
}

# The keys of the first jobs that have one which begins so. Left out: those with a character that a terminal obeys instead
# of showing it, which JSON escapes, or which would hide what a key is.
_weekwheel_keys() { # PROGRAM BEGINNING WORD...
	local hidden=$'\x7f\\|\xc2[\x80-\x9f]\\|\xe2\x80[\x8b-\x8f\xa8-\xae]\\|\xe2\x81[\xa0-\xaf]\\|\xef\xbb\xbf'
	_weekwheel_ask "$1" list "${@:2}" | LC_ALL=C sed -n 's/^{.*"key":"\(\(\\["\\]\|[^"\\]\)*\)",.*/\1/p' |
		LC_ALL=C sed -e "/$hidden/d" -e 's/\\\(["\\]\)/\1/g'
}

# The zones of this machine's database.
_weekwheel_zones() {
	echo UTC
	sed '/^#/d' "${TZDIR:-/usr/share/zoneinfo}/zone.tab" 2>/dev/null | cut -f 3
}

# Offer the lines of the input that begin as REPLY, in quotes as the word. compgen -W would execute what others chose as
# names, and readline, for which they would be files, leaves $ and ` without a quote.
_weekwheel_offer() {
	local line
	compopt +o filenames 2>/dev/null # that is only known while the user completes
	while IFS= read -r line; do
		[[ $line && $line == "$REPLY"* ]] || continue
		case $quote in
		\') line=${line//\'/"'\\''"} ;;
		\")
			line=${line//\\/'\\'} line=${line//\"/'\"'} line=${line//\$/'\$'} line=${line//\`/'\`'}
			line=${line//!/'"\!"'}
			;;
		*) printf -v line %q "$line" ;;
		esac
		COMPREPLY+=("$line")
	done
}

_weekwheel() {
	local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} words='' i REPLY quote
	COMPREPLY=()
	program=${program/#\~/$HOME}
	_weekwheel_unquote "$current"

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
			_weekwheel_offer < <(_weekwheel_keys "$program" "$REPLY" "${COMP_WORDS[@]:2}" '')
			return
			;;
		-o | --sort) words='id due priority tube key state attempts bytes error' ;;
		-t | --tube) words=$(_weekwheel_tubes "$program" "${COMP_WORDS[@]:2}") ;;
		--from) words='beanstalkd:// redis:// sidekiq:// bullmq:// celery:// laravel:// resque://' ;;
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
			elif [[ $command = postgres && $COMP_CWORD = 2 ]]; then
				words='setup check remove'
			else
				mapfile -t COMPREPLY < <(compgen -f -- "$current")
				[[ $command = import && $COMP_CWORD = 2 && crontab == "$current"* ]] && COMPREPLY+=(crontab)
				return
			fi
			;;
		esac
	fi
	# No other word has a blank.
	_weekwheel_offer < <(printf '%s\n' "${words// /$'\n'}")
}

complete -o filenames -F _weekwheel weekwheel
