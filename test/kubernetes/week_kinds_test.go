package kubernetes

import (
	"fmt"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
)

// chatter writes 40 KB to its log each second.
const chatter = "i=0; while :; do i=$((i+1)); head -c 20000 /dev/zero | tr '\\0' x; echo $i; sleep .5; done"

// weekKind is a kind of pod of TestWeek, with its state at rest.
type weekKind struct {
	name string
	// script is what the container app runs, and spec the other fields of the pod.
	script string
	spec   object
	// phase and reason are the expected ones; an empty phase is any. ready is set for pods that must be ready.
	phase  v1.PodPhase
	reason string
	ready  bool
	// crashes is set if containers end by themselves and start again.
	crashes bool
}

func weekKinds() []*weekKind {
	never := object{"restartPolicy": "Never"}
	return []*weekKind{
		{name: "steady", script: stay, spec: steadySpec(), phase: v1.PodRunning, ready: true},
		{name: "host", script: stay, spec: object{"hostNetwork": true}, phase: v1.PodRunning, ready: true},
		{name: "deaf", script: "trap '' TERM; while :; do sleep 5; done", phase: v1.PodRunning, ready: true},
		{name: "chatty", script: chatter, phase: v1.PodRunning, ready: true},
		{name: "crashing", script: "sleep 3; exit 1", phase: v1.PodRunning, crashes: true},
		{name: "once", script: "sleep 2", spec: never, phase: v1.PodSucceeded},
		{name: "failing", script: "sleep 2; exit 3", spec: never, phase: v1.PodFailed},
		{name: "second", script: "[ -e /data/again ] || { touch /data/again; exit 1; }", spec: object{
			"restartPolicy": "OnFailure", "volumes": []object{{"name": "data", "emptyDir": object{}}},
		}, phase: v1.PodSucceeded, crashes: true},
		{name: "late", script: stay, spec: object{"activeDeadlineSeconds": 15}, phase: v1.PodFailed, reason: "DeadlineExceeded"},
		{name: "large", script: "head -c 20000000 /dev/zero >/data/file; trap 'exit 1' TERM; sleep infinity & wait", spec: object{
			"volumes": []object{{"name": "data", "emptyDir": object{"sizeLimit": "10Mi"}}},
		}, phase: v1.PodFailed, reason: "Evicted"},
		{name: "sidecar", script: stay, spec: object{"initContainers": []object{
			{"name": "first", "image": webImage, "command": []string{"sleep", "1"}},
			{"name": "beside", "image": webImage, "command": []string{"sh", "-c", stay}, "restartPolicy": "Always"},
		}}, phase: v1.PodRunning, ready: true},
		{name: "absent", script: stay, spec: object{"volumes": []object{
			{"name": "data", "configMap": object{"name": "absent"}},
		}}, phase: v1.PodPending},
	}
}

// steadySpec has volumes of all objects of the API server, probes and hooks.
func steadySpec() object {
	return object{
		"volumes": []object{
			{"name": "data", "emptyDir": object{"medium": "Memory"}},
			{"name": "settings", "configMap": object{"name": "settings"}},
			{"name": "secret", "secret": object{"secretName": "settings"}},
			{"name": "token", "projected": object{"sources": []object{
				{"serviceAccountToken": object{"path": "token", "expirationSeconds": 600, "audience": "week"}},
				{"configMap": object{"name": "settings"}},
			}}},
		},
		"probe": object{"exec": object{"command": []string{"test", "-d", "/data"}}, "periodSeconds": 5, "failureThreshold": 30},
		"lifecycle": object{
			"postStart": object{"exec": object{"command": []string{"touch", "/data/started"}}},
			"preStop":   object{"exec": object{"command": []string{"sh", "-c", "rm /data/started"}}},
		},
	}
}

// document returns the manifest of a pod of this kind.
func (k *weekKind) document(namespace, name, image string) object {
	spec := object{"terminationGracePeriodSeconds": 3, "automountServiceAccountToken": k.name == "steady"}
	maps.Copy(spec, k.spec)
	app := object{"name": "app", "image": image, "command": []string{"sh", "-c", k.script}}
	if volumes, _ := spec["volumes"].([]object); volumes != nil {
		var mounts []object
		for _, v := range volumes {
			mounts = append(mounts, object{"name": v["name"], "mountPath": fmt.Sprintf("/%s", v["name"])})
		}
		app["volumeMounts"] = mounts
	}
	if probe := spec["probe"]; probe != nil {
		app["livenessProbe"], app["readinessProbe"], app["lifecycle"] = probe, probe, spec["lifecycle"]
	}
	delete(spec, "probe")
	delete(spec, "lifecycle")
	spec["containers"] = []object{app}
	return object{"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": object{
		"name": name, "namespace": namespace, "labels": object{"kind": k.name, "week": "yes"},
	}}
}

// weekPod is a pod that TestWeek has created.
type weekPod struct {
	*weekKind

	image string
	// restarts is the number of restarts that the test has caused: kills and edits.
	restarts int32
	// restored is set for a pod that the node had ended before a backup with it was restored.
	restored bool
	// applied is when a pod that does not come from the API server was first applied. earlier is the number of restarts
	// that a mirror pod from before that time may have: it shows the pod of that name before, whose removal the API
	// server has not seen.
	applied time.Time
	earlier int32
}

// setImage expects another image. A container with the old one is replaced, which counts as a restart.
func (p *weekPod) setImage(image string) {
	if p.image != image {
		p.image = image
		p.restarts++
	}
}
