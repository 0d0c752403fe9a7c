#!/bin/sh
# Installs podctl into an empty directory and uninstalls it: PREFIX=PREFIX check-install.sh. `make check-deb` runs it.
# The files to install must exist.
set -eu

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
	echo "check-install: $*" >&2
	exit 1
}

run() { make --no-print-directory "$1" DESTDIR="$root" >"$root.log" 2>&1 || fail "make $1: $(cat "$root.log")"; }
trap 'rm -rf "$root" "$root.log"' EXIT

run install
[ -x "$root$PREFIX/bin/podctl" ] && [ -x "$root$PREFIX/lib/podctl/podctl-node" ] || fail "install has left out a program"
touch "$root/etc/podctl/config.yaml"
run uninstall
left=$(cd "$root" && find . ! -type d)
[ "$left" = ./etc/podctl/config.yaml ] || fail "uninstall has left or removed: $left"
rm "$root/etc/podctl/config.yaml"
run install
run uninstall
[ ! -e "$root/etc/podctl" ] || fail "uninstall has left an empty /etc/podctl"
echo "check-install: uninstall removes what install installs"
