# Completion of weekwheel for bash: source this file, or install it as
# /usr/share/bash-completion/completions/weekwheel. The words to complete come from the help of the program.

_weekwheel_commands() { # PROGRAM
	"$1" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p'
}

_weekwheel_options() { # PROGRAM COMMAND
	"$1" help "$2" 2>/dev/null | sed -n 's/^  *\(-[A-Za-z0-9], \)\{0,1\}\(--[a-z-]*\).*/\2/p'
}

# Print the tubes of the server on the command line, if it answers soon.
_weekwheel_tubes() { # PROGRAM WORD...
	local program=$1 server=()
	shift
	while [ $# -gt 1 ]; do
		case $1 in -s | --server) server=(--server "$2") ;; esac
		shift
	done
	"$program" stats --json --timeout 1s "${server[@]}" 2>/dev/null | sed -n 's/^{"name": "\([^"]*\)".*/\1/p'
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
		-t | --tube) words=$(_weekwheel_tubes "$program" "${COMP_WORDS[@]:2}") ;;
		--state) words='delayed ready reserved buried ended' ;;
		--missed) words='once all skip' ;;
		-m | --method) words='GET POST PUT PATCH DELETE HEAD' ;;
		--format) words='swf log csv' ;;
		*)
			if [[ $current == -* ]]; then
				words=$(_weekwheel_options "$program" "$command")
			else
				mapfile -t COMPREPLY < <(compgen -f -- "$current")
				return
			fi
			;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -o filenames -F _weekwheel weekwheel
