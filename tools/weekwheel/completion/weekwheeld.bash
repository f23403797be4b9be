# Completion of weekwheeld, weekwheel-sessiond and weekwheel-expirer for bash: source this file, or install it by these names in
# /usr/share/bash-completion/completions. The words to complete come from the help of the program.

_weekwheeld() {
	local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} words=''
	COMPREPLY=()
	program=${program/#\~/$HOME}

	case ${COMP_WORDS[COMP_CWORD - 1]} in
	--sync) words='always interval system' ;;
	--maxmemory-policy) words='noeviction allkeys-lru volatile-lru' ;;
	--clock) words='real virtual' ;;
	--log-level) words='error warning info debug' ;;
	--log-format) words='text json' ;;
	--changes) words='auto tracking events' ;;
	--push-schemes) words='http https http,https' ;;
	--push-networks) words='loopback private link-local special' ;;
	*)
		if [[ $current == -* ]]; then
			words=$("$program" --help 2>/dev/null | sed -n 's/^  *\(-[A-Za-z0-9], \)\{0,1\}\(--[a-z-]*\).*/\2/p')
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
			return
		fi
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -o filenames -F _weekwheeld weekwheeld weekwheel-sessiond weekwheel-expirer
