#!/bin/sh
# The short test in the machine of `make vm-smoke`: a node with the driver of the machine, a
# pod, the limits that the kernel has of another one, and nothing that is left.
set -eu

cp -r bin docs /opt
cd /opt
export PATH="/opt/bin:$PATH:/usr/sbin"

fail() {
	echo "smoke: $*"
	exit 1
}

# is FILE VALUE compares a file of a cgroup.
is() {
	[ "$(cat "$1")" = "$2" ] || fail "$1 is $(cat "$1"), want $2"
}

podctl node up --load bin/pause.tar --load bin/demo.tar
podctl node status -o yaml | grep -q 'cgroupDriver: systemd' || fail "the node has another cgroup driver than systemd"
podctl apply --wait --timeout 1h docs/examples/hello.yaml
podctl get

cat >limited.yaml <<END
apiVersion: v1
kind: Pod
metadata: {name: limited, uid: 11111111-2222-3333-4444-555555555555}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep]
    resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 500m, memory: 64Mi}}
END
podctl apply --wait --timeout 1h limited.yaml
pod=/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice
is "$pod/memory.max" 67108864
is "$pod/cpu.max" "50000 100000"
is "$pod/cpu.weight" 4
# The sandbox has no limit.
app=$(grep -l '^67108864$' "$pod"/*.scope/memory.max) || fail "no container in $pod has the limit of its memory"
app=${app%/memory.max}
is "$app/cpu.max" "50000 100000"
is "$app/memory.oom.group" 1
grep -q 'enforce' "/proc/$(head -n 1 "$app/cgroup.procs")/attr/current" || fail "AppArmor does not confine the container"

podctl delete limited hello
[ ! -e "$pod" ] || fail "$pod is left"
podctl node down
echo "smoke: all is well"
