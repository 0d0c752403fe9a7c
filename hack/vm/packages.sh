#!/bin/sh
# Runs the tests of single packages that need a real machine, in the emulated machine of `make test-vm`.
set -eu

rm -rf /opt/podctl
cp -r . /opt/podctl
cd /opt/podctl
failed=
# run PROGRAM PATTERN
run() {
	"bin/$1" -test.v -test.short -test.count=1 -test.timeout=3h -test.run "$2" || failed="$failed $1"
}
run cgroup.test .
# Only the tests of volume that mount something.
run volume.test 'Memory|Medium|SubPath|Hidden|Propagation|Mount|HugePages'
[ -z "$failed" ] || { echo "packages: failed:$failed" && exit 1; }
