#!/bin/sh
# Fills the directory that is shared with the machine of `make test-vm` with what runs there:
# stage.sh SHARE BIN, from the root of the sources.
set -eu

share=$1 bin=$2
rm -rf "$share"
mkdir -p "$share/bin" "$share/commands/e2e" "$share/docs"
cp "$bin/podctl" "$bin/pause.tar" "$bin/demo.tar" "$bin"/vm/*.test "$share/bin"
cp -r docs/examples docs/packaging "$share/docs"
for package in "$bin"/vm/*.deb; do
	[ ! -e "$package" ] || cp "$package" "$share/podctl.deb"
done
cp hack/vm/*.sh "$share"
