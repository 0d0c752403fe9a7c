#!/bin/sh
# Installs the packages of programs and files that are missing, on Debian or Ubuntu:
# install.sh PROGRAM:PACKAGE|FILE:PACKAGE...
set -eu

# Users who are not root may have no directory of root's programs in their PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

missing() {
	for pair in "$@"; do
		command -v "${pair%%:*}" >/dev/null || [ -e "${pair%%:*}" ] || printf ' %s' "${pair##*:}"
	done
}

[ -n "$(missing "$@")" ] || exit 0
# Two targets of one make may install at the same time; apt-get fails beside another one.
exec 9<"$0"
flock 9
packages=$(missing "$@")
[ -n "$packages" ] || exit 0

refuse() {
	echo "install.sh: $1; install these packages, or what they are called on this system:$packages" >&2
	exit 1
}
command -v apt-get >/dev/null || refuse "packages are missing and there is no apt-get"
[ "$(id -u)" = 0 ] || refuse "packages are missing and only root can install them"

export DEBIAN_FRONTEND=noninteractive
quiet=$(dirname "$0")/quiet.sh
sh "$quiet" "reading the package lists (a few seconds)" apt-get update
# The names are words of their own.
# shellcheck disable=SC2086
sh "$quiet" "installing$packages (about a minute)" \
	apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=3600 $packages
