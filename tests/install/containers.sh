#!/bin/bash
# containers.sh ROOT PACKAGES WORK: builds the images of scripts/containers from these packages, on the Debian in ROOT, with
# buildah, and starts each as its image says, in a network of its own. For test_packages.sh: each line of what it finds begins
# with "ok: " or "FAIL: ". Exit status 77: no image can be built here.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
root=$1 packages=$2 work=$3
# Layers lie over each other; where the kernel refuses that, copies of them would take minutes.
bu() {
	buildah --root "$work/storage" --runroot "$work/storage.run" --storage-driver overlay "$@"
}

# What runs in a container, as its user: "$@" is how the image starts.
# shellcheck disable=SC2016
in_container='
check() { # WHAT GOT EXPECTED
	if [ "$2" = "$3" ]; then echo "ok: $1"; else echo "FAIL: $1: $2, not $3"; fi
}
started() {
	for _ in $(seq 100); do
		healthy "$port" 2>/dev/null && return
		sleep 0.1
	done
	return 1
}
server=$1 port=$2
shift 2
check "the container of $server is of the user" "$(id -un)" "$server"
check "the image of $server has nothing to compile with" "$(ls -d /usr/include/weekwheel 2>/dev/null)" ""
healthy "$port" 2>/dev/null
check "$server that is not there is not healthy" $? 1
"$@" >/tmp/log 2>&1 &
started
check "$server is healthy" $? 0
case $server in
weekwheeld)
	weekwheel put hello >/dev/null
	check "a job" "$(weekwheel work --drain -- cat 2>/dev/null)" hello ;;
*)
	exec 3<>/dev/tcp/127.0.0.1/6380
	printf "SET sess:ada cart EX 60\r\nGET sess:ada\r\n" >&3
	check "a session" "$(head -n 3 <&3 | tr -d "\r" | paste -sd " ")" "+OK \$4 cart" ;;
esac
check "what is kept is in the volume" "$(ls "/var/lib/$server" | wc -l)" 1
kill %1
wait %1
check "$server ends well" $? 0
'

tar -C "$root" --one-file-system --exclude='./var/cache/apt/archives/*.deb' --exclude='./var/lib/apt/lists/*' \
	--exclude=./usr/share/doc --exclude=./usr/share/locale --exclude=./packages -cf "$work/base.tar" .
base=$(bu from scratch) && bu add -q "$base" "$work/base.tar" / >/dev/null && bu commit -q --rm "$base" localhost/base >/dev/null ||
	exit 77
rm "$work/base.tar"
for image in weekwheeld:11301 weekwheel-sessiond:6381; do
	name=${image%:*}
	if ! bu bud -q --isolation chroot --layers=false --pull-never --build-arg BASE=localhost/base --format docker \
		-f scripts/containers/Dockerfile --target "$name" -t "$name" "$packages" >"$work/bud.log" 2>&1 </dev/null; then
		echo "FAIL: the image of $name"
		tail -n 20 "$work/bud.log"
		continue
	fi
	echo "ok: the image of $name"
	mapfile -t starts < <(bu inspect --type image "$name" | jq -r '.OCIv1.config | (.Entrypoint + .Cmd)[]')
	checks=$(bu inspect --type image "$name" | jq -c '[.Docker.config.Healthcheck.Test, (.Docker.config.Volumes | keys)]')
	if [ "$checks" = "[[\"CMD\",\"healthy\",\"${image#*:}\"],[\"/var/lib/$name\"]]" ]; then
		echo "ok: $name has a health check and a volume"
	else
		echo "FAIL: $name has no health check or no volume: $checks"
	fi
	container=$(bu from --pull-never "$name")
	# shellcheck disable=SC2016
	timeout -k 5 60 unshare --net sh -c 'ip link set lo up; exec "$@"' - buildah --root "$work/storage" \
		--runroot "$work/storage.run" --storage-driver overlay run --isolation chroot "$container" -- \
		bash -c "$in_container" - "$name" "${image#*:}" "${starts[@]}" </dev/null || echo "FAIL: $name runs in its container"
done
bu rm -a >/dev/null && bu rmi -af >/dev/null
