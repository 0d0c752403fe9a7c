#!/bin/sh
# Looks at a Debian package for this machine: check-deb.sh FILE. `make check-deb` runs it.
set -eu
umask 022

file=$1
here=$(dirname "$0")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
	echo "check-deb: $*" >&2
	exit 1
}

dpkg-deb -x "$file" "$root"
dpkg-deb -e "$file" "$root/DEBIAN"

# Manual pages and documents come and go with what they describe; the rest is listed.
dpkg-deb -c "$file" | awk '{ print $1, $2, $6 }' >"$root/list"
grep -v -e '/man1/podctl-' -e '/doc/podctl/.*\.md$' -e '/examples/.' "$root/list" |
	diff -u "$here/contents.txt" - || fail "other contents than docs/packaging/contents.txt"

(cd "$root" && md5sum --quiet -c DEBIAN/md5sums) || fail "md5sums are wrong"
[ -z "$(find "$root/usr" "$root/etc" ! -newermt "@$((SOURCE_DATE_EPOCH - 1))" -o -newermt "@$SOURCE_DATE_EPOCH")" ] ||
	fail "something has another time than the sources"

pages=$(find "$root/usr/share/man/man1" -name '*.1.gz' | wc -l)
commands=$(find "$here/../cli" -name '*.md' | wc -l)
[ "$pages" = "$commands" ] || fail "$pages manual pages for $commands commands"

podctl=$root/usr/bin/podctl
node=$root/usr/lib/podctl/podctl-node
version=$("$podctl" version --client) || fail "podctl does not run"
[ "$("$node" version --client)" = "$version" ] || fail "podctl-node does not run, or is of another version"
# Only podctl-node reads the flags of an agent with --kubeconfig. It fails at once because these two contradict each other.
result=$("$podctl" agent --kubeconfig none --stop-pods --shutdown-grace 0s 2>&1) && fail "a wrong flag is accepted"
case $result in
*--stop-pods*) ;;
*) fail "podctl agent --kubeconfig does not run podctl-node: $result" ;;
esac
bash -n "$root/usr/share/bash-completion/completions/podctl"
for script in "$root"/DEBIAN/p*; do
	sh -n "$script"
done
# What an installation and an upgrade from an older version call, on a machine with systemd.
mkdir "$root/bin" && printf '#!/bin/sh\necho "$*"\n' >"$root/bin/systemctl" && chmod 0755 "$root/bin/systemctl"
sed "s|/run/systemd/system|$root|" "$root/DEBIAN/postinst" >"$root/postinst"
configure() { PATH="$root/bin:$PATH" sh "$root/postinst" configure "$@" | tr '\n' ';'; }
[ "$(configure "")" = "daemon-reload;" ] || fail "an installation calls $(configure "")"
[ "$(configure 0.1)" = "daemon-reload;try-restart podctl-agent.service;" ] || fail "an upgrade calls $(configure 0.1)"
for program in "$podctl" "$node"; do
	sbom=$root/usr/share/doc/podctl/$(basename "$program").spdx.json
	grep -q "\"checksumValue\": \"$(sha256sum <"$program" | cut -d ' ' -f 1)\"" "$sbom" ||
		fail "$(basename "$sbom") is about another program"
done

# The programs that units name have to be there, so they are looked for in the tree.
mkdir "$root/units"
for unit in "$root"/usr/lib/systemd/system/*; do
	sed "s|/usr/|$root/usr/|g" "$unit" >"$root/units/$(basename "$unit")"
done
if command -v systemd-analyze >/dev/null; then
	said=$(systemd-analyze verify --man=no "$root"/units/* 2>&1) || fail "systemd refuses a unit: $said"
	[ -z "$said" ] || fail "systemd says of a unit: $said"
else
	echo "check-deb: systemd-analyze is not here, units are left to the unit tests"
fi

sed 's/^/  /' "$root/list"
for one in "$file" "$podctl" "$node"; do
	echo "check-deb: $(basename "$one") has $(($(stat -c %s "$one") >> 20)) MiB"
done
echo "check-deb: $(basename "$file") is as it should be"
