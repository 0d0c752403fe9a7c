#!/bin/sh
# Runs end-to-end tests in the machine of `make test-vm`: e2e.sh DRIVER FLAGS..., in the
# directory that stage.sh filled. The flags say which tests, as -test.run and -test.skip do.
# What runs is copied to the machine's own disk first: a program that is read from the shared
# directory starts ten times slower.
set -eu

rm -rf /opt/podctl
cp -r . /opt/podctl
cd /opt/podctl/commands/e2e
export PATH="$PATH:/usr/sbin" PODCTL_BIN=/opt/podctl/bin/podctl PODCTL_IMAGES=/opt/podctl/bin PODCTL_CONTAINERD="${PODCTL_TEST_CONTAINERD:-containerd}"
export PODCTL_TEST_CGROUP_DRIVER="$1" PODCTL_TEST_SLOWNESS=20
shift
exec ../../bin/e2e.test -test.v -test.short -test.count=1 -test.timeout=3h "$@"
