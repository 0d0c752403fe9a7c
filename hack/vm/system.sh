#!/bin/sh
# What systemd and dpkg do with podctl, in the machine of `make test-vm`: the package is
# installed, the agent keeps a pod of a file and one applied by hand, becomes a node of a cluster and leaves it, the machine
# reboots and everything
# is there again, the clock jumps, a second reboot waits until the pods have stopped, the agent starts
# them again, and the package is removed.
set -eu

fail() {
	echo "system: $*"
	journalctl --no-pager -n 40 -u 'podctl*' || true
	exit 1
}

# until_true SECONDS WHAT COMMAND... waits for a command to succeed, ten times as long as it usually takes at most.
until_true() {
	limit=$(($(date +%s) + 10 * $1)) what=$2
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
	systemctl enable --now podctl-containerd.service
	podctl node up --load bin/demo.tar
	cp docs/examples/hello.yaml /etc/podctl/pods/web.yaml
	systemctl enable --now podctl-agent.service
	until_true 300 "the agent brings up hello" ready hello
	joins
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
	podctl apply --wait --timeout 1h /root/kept.yaml
	podctl exec kept -- /demo write /data/word survived
	podctl restart --timeout 1h kept
	[ "$(restarts kept)" = 1 ] || fail "after one restart the count is $(restarts kept)"
	reboot_to agent_before_reboot
}

# runs_program PROGRAM: the main process of the agent's unit is this program.
runs_program() { [ "$(cat "/proc/$(systemctl show -P MainPID podctl-agent.service)/comm")" = "$1" ]; }

# joins: the configuration makes the agent a node of a cluster whose API server does not answer. The process stays the
# same, and so do the containers. A restart of the unit leads back to the other program.
joins() {
	hello=$(ids hello) process=$(systemctl show -P MainPID podctl-agent.service)
	(umask 077 && cat >/etc/podctl/kubeconfig) <<-END
		apiVersion: v1
		kind: Config
		clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
		users: [{name: u, user: {token: t}}]
		contexts: [{name: x, context: {cluster: c, user: u}}]
		current-context: x
	END
	cat >/etc/podctl/config.yaml <<-END
		agent:
		  kubeconfig: /etc/podctl/kubeconfig
		  node-name: n1
	END
	podctl agent reload
	until_true 120 "the agent is podctl-node" runs_program podctl-node
	until_true 120 "podctl-node answers" podctl agent status
	[ "$(systemctl show -P MainPID podctl-agent.service)" = "$process" ] || fail "the agent has another process"
	systemctl stop podctl-agent.service
	[ "$(systemctl show -P Result podctl-agent.service)" = success ] || fail "podctl-node did not end with success"
	rm /etc/podctl/config.yaml /etc/podctl/kubeconfig
	systemctl start podctl-agent.service
	runs_program podctl || fail "without a kubeconfig, the agent is another program than podctl"
	[ "$(ids hello)" = "$hello" ] || fail "hello has other containers"
}

after_reboot() {
	until_true 120 "podctl-containerd.service runs" systemctl is-active podctl-containerd.service
	until_true 120 "podctl-agent.service runs" systemctl is-active podctl-agent.service
	until_true 300 "the agent brings hello back" ready hello
	until_true 300 "the agent brings kept back" ready kept
	podctl exec kept -- /demo read /data/word | grep -q survived || fail "the claim lost its content"
	[ "$(restarts kept)" = 2 ] || fail "after a restart and a reboot the count is $(restarts kept)"
	# hello runs as soon as one of its two containers does.
	until_true 120 "the journal says that web was started" sh -c 'journalctl --no-pager -b -u podctl-agent.service | grep -q "step=\"start web\""'
	systemctl disable --now podctl-agent.service
	podctl delete --timeout 1h kept
	stop_node_unit
}

# stop_node_unit: a stop of the unit ends no container.
stop_node_unit() {
	systemctl stop podctl-containerd.service
	ready hello && fail "the node answers although its unit was stopped"
	pgrep -x demo >/dev/null || fail "a stop of the unit ended containers"
	systemctl start podctl-containerd.service
}

# departing NAME PRIORITY ARGUMENTS: a pod of the agent that writes into its claim when it gets the stop signal.
departing() {
	cat >"/etc/podctl/pods/$1.yaml" <<-END
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1}
		spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
		---
		apiVersion: v1
		kind: Pod
		metadata: {name: $1}
		spec:
		  $2
		  containers:
		  - name: app
		    image: registry.local/podctl/demo:1
		    args: [$3]
		    lifecycle: {preStop: {exec: {command: [/demo, write, /data/word, goodbye]}}}
		    volumeMounts: [{name: data, mountPath: /data}]
		  volumes: [{name: data, persistentVolumeClaim: {claimName: $1}}]
	END
}

# said_goodbye NAME prints when a departing pod wrote into its claim, in seconds.
said_goodbye() {
	file=/var/lib/podctl/claims/default/$1/word
	grep -q goodbye "$file" && stat -c %Y "$file"
}

# ids NAME prints the ids of the containers of a pod.
ids() { podctl get -o 'jsonpath={.status.containerStatuses[*].containerID}' "$1" | sed 's#containerd://##g'; }

# another NAME IDS: other containers run than these.
another() { ready "$1" && [ "$(ids "$1")" != "$2" ]; }

# jump HOURS: the clock jumps. No container is touched for it, and one that dies after it starts again.
jump() {
	hello=$(ids hello) leaving=$(ids leaving)
	date -s "$1 hours"
	sleep 100
	[ "$(ids hello)" = "$hello" ] || fail "after a jump of the clock by $1 hours hello has other containers"
	[ "$(ids leaving)" = "$leaving" ] || fail "after a jump of the clock by $1 hours leaving has another container"
	ready hello || fail "after a jump of the clock by $1 hours hello does not run"
	ctr --address /var/lib/podctl/node/containerd.sock --namespace k8s.io tasks kill --signal SIGKILL "$leaving"
	until_true 120 "leaving starts again after a jump of the clock by $1 hours" another leaving "$leaving"
}

agent_before_reboot() {
	after_reboot
	cat >/etc/podctl/config.yaml <<-END
		agent:
		  shutdown-grace: 4m
	END
	departing leaving "" "sleep, --drain, 3s"
	departing critical "priorityClassName: system-node-critical" sleep
	systemctl enable --now podctl-agent.service
	until_true 300 "the agent brings up leaving" ready leaving
	until_true 300 "the agent brings up critical" ready critical
	until_true 60 "the agent keeps hello" ready hello
	systemctl is-active podctl-agent.service || fail "podctl-agent.service does not run"
	until_true 60 "a shutdown waits for the agent" sh -c 'systemd-inhibit --list | grep podctl | grep -q delay'
	delay=$(busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager InhibitDelayMaxUSec)
	[ "${delay#t }" -ge 240000000 ] || fail "logind waits for $delay µs only"
	jump +2
	jump -4
	reboot_to agent_after_reboot
}

agent_after_reboot() {
	until_true 300 "podctl-agent.service runs" systemctl is-active podctl-agent.service
	until_true 300 "the agent brings leaving back" ready leaving
	until_true 300 "the agent brings hello back" ready hello
	until_true 300 "the agent brings critical back" ready critical
	left=$(said_goodbye leaving) || fail "the machine went down before leaving had stopped"
	last=$(said_goodbye critical) || fail "the machine went down before critical had stopped"
	[ "$last" -ge $((left + 3)) ] || fail "critical was stopped $((last - left)) s after leaving, which takes 3 s to end"
	rm /etc/podctl/pods/leaving.yaml /etc/podctl/pods/critical.yaml
	until_true 120 "the agent deletes leaving" sh -c '! podctl get leaving'
	until_true 120 "the agent deletes critical" sh -c '! podctl get critical'
	systemctl disable --now podctl-agent.service
	ready hello || fail "a stop of the agent ended a pod"
	podctl delete --timeout 1h hello
	systemctl disable --now podctl-containerd.service
	podctl node down
	dpkg --purge podctl
	[ ! -e /usr/bin/podctl ] || fail "the package left its program"
	echo "system: all is well"
}

# reboot_to FUNCTION reboots and goes on there.
reboot_to() {
	echo "$1" >/root/next
	echo "system: rebooting to $1"
	exit 77
}

step=$(cat /root/next 2>/dev/null || echo before_reboot)
"$step"
