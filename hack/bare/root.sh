#!/bin/sh
# Makes an archive of a bare Debian 12 with git, make and ca-certificates: root.sh FILE. The
# packages come from where this machine takes those of Debian, and later ones do, too.
set -eu

file=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# source LABEL SUITE prints the line of a source that this machine has, if it has one.
source() {
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' "Label: $1" >"$work/uris"
	uri=$(head -n 1 "$work/uris")
	[ -z "$uri" ] || echo "deb $uri $2 main"
}

{
	source Debian bookworm
	source Debian-Security bookworm-security
} >"$work/sources"
# Without a source, mmdebstrap takes Debian's.
[ ! -s "$work/sources" ] || set -- "$work/sources"
[ -s "$work/sources" ] || set --

# How this machine reaches its sources. A proxy on its loopback is 10.0.2.2 in a root: see enter.sh.
apt-config dump >"$work/config"
sed -nE '/^Acquire::(https?|Check-|Retries|Force)/{s#//(localhost|127\.0\.0\.1)([:/])#//10.0.2.2\2#; p}' "$work/config" >"$work/conf"
mkdir "$work/trusted"
for certificate in /usr/local/share/ca-certificates/*.crt; do
	[ ! -e "$certificate" ] || cp "$certificate" "$work/trusted"
done

mmdebstrap --variant=minbase --include=git,make,ca-certificates \
	--customize-hook='cp '"$work"'/trusted/* "$1/usr/local/share/ca-certificates/" 2>/dev/null || true' \
	--customize-hook='chroot "$1" update-ca-certificates' \
	--customize-hook='cp '"$work"'/conf "$1/etc/apt/apt.conf.d/90outer"' \
	bookworm "$work/root.tar" "$@"
mv "$work/root.tar" "$file"
