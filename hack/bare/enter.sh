#!/bin/sh
# Runs a shell command in a root that bare.sh made, in namespaces of its own: enter.sh ROOT COMMAND.
# Everything ends with this process, and the outer machine sees none of the mounts.
set -eu

if [ "${3:-}" = "" ]; then
	exec unshare --mount --propagation private setpriv --pdeathsig KILL sh "$0" "$1" "$2" outside
fi
root=$1 command=$2 go=${GO:-go}

# bind PATH [OPTION]: the same files at the same path, so that Go finds what it built before.
bind() {
	mkdir -p "$1" "$root$1"
	mount --bind "$1" "$root$1"
	[ -z "${2:-}" ] || mount -o "remount,bind,$2" "$root$1"
}

# With CGO_ENABLED=0, what Go builds does not depend on the machine, and modules are checked by
# go.sum, so sharing both caches with the outer machine hides nothing that is missing in the root.
modules=$($go env GOMODCACHE) builds=$($go env GOCACHE) goroot=$($go env GOROOT)
if [ "$3" = outside ]; then
	mount --bind "$root" "$root"
	bind "$modules"
	bind "$builds"
	bind "$goroot" ro
	mount -t tmpfs -o mode=755 tmpfs "$root/run"
	mount -t tmpfs -o mode=755,size=64k tmpfs "$root/dev"
	for device in null zero full random urandom tty kmsg; do
		: >"$root/dev/$device"
		mount --bind "/dev/$device" "$root/dev/$device"
	done
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$root/dev/pts"
	mount -t tmpfs tmpfs "$root/dev/shm"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	for stream in 0:stdin 1:stdout 2:stderr; do
		ln -s "/proc/self/fd/${stream%%:*}" "$root/dev/${stream##*:}"
	done

	# slirp4netns carries the traffic of the root in user space: no interface and no rule of the
	# outer machine is changed. In the root, 10.0.2.3 answers as the outer machine's name server.
	net=$root/run/net
	: >"$net"
	mkfifo "$root/run/ready"
	unshare --net="$net" true
	setpriv --pdeathsig KILL slirp4netns --configure --ready-fd=3 --netns-type=path "$net" tap0 \
		3>"$root/run/ready" >"$root/run/slirp.log" 2>&1 &
	[ "$(cat "$root/run/ready")" = 1 ] || {
		cat "$root/run/slirp.log" >&2
		echo "enter.sh: slirp4netns did not start" >&2
		exit 1
	}
	echo "nameserver 10.0.2.3" >"$root/etc/resolv.conf"
	cp /etc/hosts "$root/etc/hosts"
	echo bare >"$root/etc/hostname"

	code=0
	setpriv --pdeathsig KILL nsenter --net="$net" unshare --mount --pid --ipc --uts --fork --kill-child \
		sh "$0" "$root" "$command" inside || code=$?
	exit "$code"
fi

# Here this is process 1 of the root.
hostname bare
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
settings=
for name in GOPROXY GONOPROXY GOPRIVATE GONOSUMDB GOSUMDB GOINSECURE GOTOOLCHAIN; do
	settings="$settings $name=$($go env $name)"
done
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
	value=$(printenv $name | sed -E 's#//(localhost|127\.0\.0\.1)([:/])#//10.0.2.2\2#') || true
	[ -z "$value" ] || settings="$settings $name=$value"
done
cd "$root"
mkdir -p outer
pivot_root . outer
cd /root/podctl
umount -l /outer
rmdir /outer
# As systemd does it.
mount --make-rshared /
# The settings are words of their own.
# shellcheck disable=SC2086
exec env -i HOME=/root USER=root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
	PATH="$goroot/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
	GOMODCACHE="$modules" GOCACHE="$builds" $settings sh -c "$command; exit \$?" </dev/null
