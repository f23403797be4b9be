#!/bin/bash
# Runs inside the clean Debian of test_packages.sh: installs, uses, updates, removes and purges the packages. Each line of
# what it finds begins with "ok: " or "FAIL: ".
set -uo pipefail

: "${VERSION:?}"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C HOME=/root
cd /root || exit 1

expect() { # WHAT COMMAND...
	local said
	if said=$("${@:2}" 2>&1); then
		echo "ok: $1"
	else
		printf 'FAIL: %s\n%s\n' "$1" "$said"
	fi
}
equal() { # WHAT GOT EXPECTED
	if [ "$2" = "$3" ]; then echo "ok: $1"; else echo "FAIL: $1: '$2', not '$3'"; fi
}
apt() {
	apt-get -q -y --no-install-recommends "$@"
}
# Not what apt, dpkg and the clock note for themselves.
files() {
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /packages -o -path /root \
		-o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/cache -o -path /var/log -o -path /var/lib/systemd \
		-o -path '/etc/*-' \) -prune -o -print | sort
	cut -d: -f1 /etc/passwd | sort
}
of() { # UNIT PROPERTY
	systemctl show --value -p "$2" "$1"
}
answers() { # SERVER: waits until it does
	for _ in $(seq 100); do
		case $1 in
		weekwheeld) weekwheel stats >/dev/null 2>&1 && return ;;
		*) redis-cli -p 6380 ping >/dev/null 2>&1 && return ;;
		esac
		sleep 0.1
	done
	return 1
}
comes() { # WORD FILE: waits until it is there
	for _ in $(seq 100); do
		grep -q "$1" "$2" && return
		sleep 0.1
	done
	cat "$2"
	return 1
}
both=(weekwheeld weekwheel-sessiond)

files >before

# ---- Installed, it runs at once, as a user of its own.
expect 'the older version is installed' apt install /packages/older/*.deb
equal 'its version' "$(dpkg-query -W -f '${Version}' weekwheeld)" 0.0.9-1
for name in "${both[@]}"; do
	expect "$name runs" systemctl is-active "$name"
	expect "$name starts with the machine" systemctl is-enabled "$name"
	expect "$name answers" answers "$name"
	equal "$name has a user of its own" "$(stat -c %U "/proc/$(of "$name" MainPID)")" "$name"
	equal "$name has a folder of its own" "$(stat -c '%U %a' "/var/lib/$name")" "$name 700"
	expect "$name writes to the journal" grep -q listening <(journalctl -q -u "$name")
done
for name in "${both[@]}"; do
	equal "the socket of $name is for those who want it" "$(systemctl is-enabled "$name.socket")" disabled
done

# ---- A job and a session, as README says, and what is to be there later.
expect 'a job is put' weekwheel put --in 1s 'hello'
weekwheel work -- sh -c 'cat; echo' >worked &
worker=$!
expect 'a command is run for the job' comes hello worked
kill $worker
expect 'a job for later' weekwheel put --in 1h --key later 'kept'
redis-cli -p 6380 psubscribe '__expired@*' >heard &
listener=$!
expect 'redis-cli listens' comes subscribe heard
expect 'a session is set' redis-cli -p 6380 set sess:ada cart EX 1
expect 'its end is told, with what was in the session' comes cart heard
kill $listener
expect 'a session for later' redis-cli -p 6380 set sess:later kept EX 3600
sleep 1.2 # the interval of its sync

# ---- Updated, it goes on with the same data, and with the settings of the operator.
sed -i 's/^WEEKWHEELD_OPTIONS=.*/WEEKWHEELD_OPTIONS="--max-tubes 77"/' /etc/default/weekwheeld
was="$(of weekwheeld MainPID) $(of weekwheel-sessiond MainPID)"
expect 'the update' apt install /packages/*.deb
equal 'the version then' "$(dpkg-query -W -f '${Version}' weekwheeld)" "$VERSION"
for name in "${both[@]}"; do
	expect "$name answers after the update" answers "$name"
	equal "no process of the older $name is left" "$(grep -cw "$(of "$name" MainPID)" <<<"$was")" 0
	case $(of "$name" Description) in Older*) echo "FAIL: the unit of $name is the older one" ;; *) echo "ok: unit" ;; esac
done
equal 'the job is kept' "$(weekwheel list | grep -c later)" 1
equal 'the session is kept' "$(redis-cli -p 6380 get sess:later)" kept
equal 'the settings are kept' "$(tr '\0' ' ' <"/proc/$(of weekwheeld MainPID)/cmdline" | grep -o 'max-tubes 77')" 'max-tubes 77'
expect 'the same again' apt install --reinstall /packages/weekwheeld_*.deb /packages/weekwheel-sessiond_*.deb
for name in "${both[@]}"; do
	expect "$name answers again" answers "$name"
done

# ---- With its socket, as the page says, which an update leaves on as well.
for name in "${both[@]}"; do
	expect "$name is ended for its socket" systemctl stop "$name"
	expect "systemd listens for $name" systemctl enable --now "$name.socket"
	expect "a client starts $name" answers "$name"
	expect "an update of $name while systemd listens" apt install --reinstall "/packages/${name}_"*.deb
	equal "systemd goes on listening for $name" "$(systemctl is-active "$name.socket")" active
	expect "$name answers there" answers "$name"
	expect "the socket of $name will not start with the machine" systemctl disable "$name.socket"
done

# ---- Removed, nothing runs, but the data are there; installed again, they are served.
expect 'removed' apt remove "${both[@]}"
for name in "${both[@]}"; do
	equal "$name has ended" "$(cat /proc/[0-9]*/comm 2>/dev/null | grep -cx "${name:0:15}")" 0
	expect "the data of $name are there" [ -n "$(ls -A "/var/lib/$name")" ]
done
for name in "${both[@]}"; do
	equal "systemd does not listen for $name any more" "$(systemctl is-active "$name.socket")" inactive
done
systemd-socket-activate -l 127.0.0.1:11300 cat 2>/dev/null &
taken=$!
expect 'installed again, while another has the port' apt install /packages/weekwheeld_*.deb /packages/weekwheel-sessiond_*.deb
equal 'weekwheeld waits for the port' "$(systemctl is-active weekwheeld)" activating
kill $taken
for name in "${both[@]}"; do
	expect "$name answers once more" answers "$name"
done
equal 'the job is still there' "$(weekwheel list | grep -c later)" 1
equal 'the session is still there' "$(redis-cli -p 6380 get sess:later)" kept

# ---- Purged, nothing is left.
mapfile -t ours < <(dpkg-query -W -f '${Package}\n' '*weekwheel*')
expect 'purged' apt purge --auto-remove -o APT::AutoRemove::SuggestsImportant=false "${ours[@]}"
files >after
if difference=$(diff before after); then
	echo 'ok: nothing is left'
else
	printf 'FAIL: a purge leaves other files:\n%s\n' "$difference"
fi
equal 'no unit is left' "$(systemctl list-units --all --plain --no-legend '*weekwheel*' | grep -vc inside)" 0
echo 'ok: the end'
