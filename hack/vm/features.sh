#!/bin/sh
# Runs the end-to-end tests of what needs a newer runtime, in the machine of `make test-vm`:
# containerd 2 with crun in the place of runc, which has user namespaces, recursive read-only
# mounts and image volumes.
set -eu

export PODCTL_TEST_FEATURES=all PODCTL_TEST_CONTAINERD=/opt/podctl/bin/containerd2/containerd
# The node starts containerd with this path, and the shim finds its runtime in it.
mkdir -p /opt/crun
ln -sf /usr/bin/crun /opt/crun/runc
export PATH="/opt/crun:$PATH"
exec sh e2e.sh systemd "${1:-TestE2E/(hello|user_namespaces|recursive|image_volume|limits_of|out_of|AppArmor|resize|contract)}"
