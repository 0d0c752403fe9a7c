#!/bin/sh
# What systemd and dpkg do with podctl, in the machine of `make test-vm`: the package is
# installed, its units keep pods, the machine reboots, everything is there again, and the
# package is removed.
set -eu

fail() {
	echo "system: $*"
	journalctl --no-pager -n 40 -u 'podctl*' || true
	exit 1
}

# until SECONDS COMMAND... waits for a command to succeed.
until_true() {
	limit=$(($(date +%s) + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$limit" ] || fail "in time it was not so: $what"
		sleep 2
	done
}

ready() { podctl get "$1" | grep -q 'Running'; }
restarts() { podctl get -o json "$1" | sed -n 's/.*"restartCount": *\([0-9]*\).*/\1/p' | head -n 1; }

before_reboot() {
	dpkg -i podctl.deb
	[ -e /etc/podctl/pods ] || fail "the package has no directory for pods"
	systemctl enable --now podctl-node.service
	podctl node up --load bin/demo.tar
	cp docs/examples/hello.yaml /etc/podctl/pods/web.yaml
	systemctl enable --now podctl@web.timer
	until_true 300 "the timer brings up hello" ready hello
	cat >/root/kept.yaml <<-END
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: kept}
		spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
		---
		apiVersion: v1
		kind: Pod
		metadata: {name: kept}
		spec:
		  terminationGracePeriodSeconds: 1
		  containers:
		  - name: app
		    image: registry.local/podctl/demo:1
		    args: [sleep]
		    volumeMounts: [{name: data, mountPath: /data}]
		  volumes: [{name: data, persistentVolumeClaim: {claimName: kept}}]
	END
	podctl apply --wait --timeout 5m /root/kept.yaml
	podctl exec kept -- /demo write /data/word survived
	podctl restart --timeout 5m kept
	[ "$(restarts kept)" = 1 ] || fail "after one restart the count is $(restarts kept)"
	touch /root/rebooted
	echo "system: rebooting"
	exit 77
}

after_reboot() {
	until_true 120 "podctl-node.service runs" systemctl is-active podctl-node.service
	until_true 300 "the timer brings hello back" ready hello
	podctl apply --all --timeout 5m
	until_true 300 "kept runs again" ready kept
	podctl exec kept -- /demo read /data/word | grep -q survived || fail "the claim lost its content"
	[ "$(restarts kept)" = 2 ] || fail "after a restart and a reboot the count is $(restarts kept)"
	journalctl --no-pager -b -u podctl@web.service | grep -q 'start *web' || fail "the journal does not say that web was started"
	systemctl disable --now podctl@web.timer podctl-node.service
	ready kept && fail "the node answers although its unit was stopped"
	pgrep -x demo >/dev/null || fail "a stop of the unit ended containers"
	podctl node up
	podctl delete --timeout 5m kept hello
	podctl node down
	dpkg --purge podctl
	[ ! -e /usr/bin/podctl ] || fail "the package left its program"
	echo "system: all is well"
}

if [ -e /root/rebooted ]; then after_reboot; else before_reboot; fi
