#!/bin/sh
# Turns a tree that `make install` made into a Debian package: deb.sh TREE ARCH VERSION FILE.
# The same tree gives the same bytes. `make deb` runs it.
set -eu
umask 022

tree=$1 arch=$2 version=$3 file=$4
doc=$tree/usr/share/doc/podctl
here=$(dirname "$0")

# What Debian has in another form.
rm "$doc/LICENSE"
install -m 0644 "$here/copyright" "$doc/copyright"
cat >"$doc/changelog" <<CHANGELOG
podctl ($version) stable; urgency=medium

  * See CHANGELOG.md.

 -- ${MAINTAINER:?}  $(LC_ALL=C date -R -u -d "@${SOURCE_DATE_EPOCH:?}")
CHANGELOG
gzip -9n "$doc/changelog" "$tree"/usr/share/man/man1/*.1

mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<CONTROL
Package: podctl
Version: $version
Architecture: $arch
Maintainer: $MAINTAINER
Installed-Size: $(find "$tree" -type f -printf '%s\n' | awk '{ kib += int($1 / 1024) + 1 } END { print kib }')
Recommends: containerd | containerd.io | cri-o, containernetworking-plugins
Suggests: runc, iptables, bash-completion
Section: admin
Priority: optional
Homepage: https://github.com/podctl/podctl
Description: kubelet's pod sync as a command
 podctl reads Kubernetes manifests, compares them with what a container runtime
 really runs, shows what it would change and why, and then makes exactly these
 changes in one sync pass. It needs no cluster, no API server and no daemon:
 only files and a CRI socket.
CONTROL

# After an upgrade, a running agent restarts with the new version. Pods keep running. The private containerd stays,
# because its program is not part of the package. An agent that does not start must not block apt.
cat >"$tree/DEBIAN/postinst" <<'SCRIPT'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ "$1" = configure ] && [ -n "$2" ]; then
		systemctl try-restart podctl-agent.service || true
	fi
fi
SCRIPT
cat >"$tree/DEBIAN/postrm" <<'SCRIPT'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
SCRIPT
# Pods and their containers are the user's: they stay, also without podctl.
cat >"$tree/DEBIAN/prerm" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl stop podctl-agent.service podctl-containerd.service
fi
SCRIPT
chmod 0755 "$tree/DEBIAN/postinst" "$tree/DEBIAN/postrm" "$tree/DEBIAN/prerm"

(cd "$tree" && find usr etc -type f -print0 | LC_ALL=C sort -z | xargs -0r md5sum) >"$tree/DEBIAN/md5sums"
chmod 0644 "$tree/DEBIAN/control" "$tree/DEBIAN/md5sums"
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

# One thread, since more of them would cut the archive into other blocks; level 1,
# since those above take several times as long to save a tenth.
DPKG_DEB_THREADS_MAX=1 dpkg-deb --root-owner-group -Zxz -z1 --build "$tree" "$file"
