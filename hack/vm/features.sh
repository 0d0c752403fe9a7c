#!/bin/sh
# Runs end-to-end tests of what needs a newer runtime, in the machine of `make test-vm`:
# containerd 2 with runc, and with crun in the place of runc. crun has user namespaces with
# mapped mounts, which the runc of this Debian does not.
set -eu

export PODCTL_TEST_CONTAINERD=/opt/podctl/bin/containerd2/containerd
failed=
sh e2e.sh systemd -test.run 'TestE2E/(resize|limits_of|out_of|AppArmor|image_volume|agent_admission)' || failed="$failed runc"
# The node starts containerd with this path, and the shim finds its runtime in it.
mkdir -p /opt/crun
ln -sf /usr/bin/crun /opt/crun/runc
export PATH="/opt/crun:$PATH"
PODCTL_TEST_FEATURES=all sh e2e.sh systemd -test.run 'TestE2E/(hello|user_namespaces|recursive|image_volume)' || failed="$failed crun"
[ -z "$failed" ] || { echo "features: failed with$failed" && exit 1; }
