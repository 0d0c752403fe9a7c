#!/bin/sh
# Runs the tests of single packages that need a real machine, in the one of `make test-vm`.
set -eu

rm -rf /opt/podctl
cp -r . /opt/podctl
cd /opt/podctl
failed=
for test in cgroup volume; do
	echo "=== $test"
	"bin/$test.test" -test.v -test.short -test.count=1 -test.timeout=20m || failed="$failed $test"
done
[ -z "$failed" ] || { echo "rooms: failed:$failed" && exit 1; }
