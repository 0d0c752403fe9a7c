#!/bin/sh
# Fills the directory that is shared with the machine of `make test-vm` with what runs there:
# stage.sh SHARE BIN, from the root of the sources.
set -eu

share=$1 bin=$2
rm -rf "$share"
mkdir -p "$share/bin" "$share/commands/e2e" "$share/docs"
cp "$bin/podctl" "$bin/pause.tar" "$bin/demo.tar" "$share/bin"
for test in "$bin"/vm/*.test; do
	[ ! -e "$test" ] || cp "$test" "$share/bin"
done
cp -r docs/examples docs/packaging "$share/docs"
for package in "$bin"/vm/*.deb; do
	[ ! -e "$package" ] || cp "$package" "$share/podctl.deb"
done
if [ -e "$bin/containerd2/containerd" ]; then
	cp -r "$bin/containerd2" "$share/bin"
fi
cp hack/vm/*.sh "$share"
