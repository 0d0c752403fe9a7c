package kubernetes

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// replicas is the number of pods of the Deployment.
const replicas = 3

// testRollout replaces the pods of a Deployment one by one. There is no controller, so the test creates the ReplicaSets
// and the pods. Then it drains the node, which needs no force because the pods have a controller.
func (k *kubectl) testRollout(t *testing.T) {
	k.must(t, "create", "deployment", "web", "--image", firstImage, "--replicas", fmt.Sprint(replicas))
	deployment := k.must(t, "get", "deployment", "web", "-o", "jsonpath={.metadata.uid}")
	before := k.makeReplicaSet(t, "web-1", deployment, firstImage)
	for i := range replicas {
		k.makeReplica(t, before, fmt.Sprintf("web-1-%d", i))
	}
	after := k.makeReplicaSet(t, "web-2", deployment, secondImage)
	for i := range replicas {
		k.makeReplica(t, after, fmt.Sprintf("web-2-%d", i))
		k.must(t, "delete", "pod", fmt.Sprintf("web-1-%d", i))
		if ready := k.readyReplicas(t); ready != replicas {
			t.Errorf("%d pods are ready, want %d", ready, replicas)
		}
	}
	for pod := range strings.FieldsSeq(k.must(t, "get", "pods", "-l", "app=web", "-o", "name")) {
		if out := k.must(t, "exec", pod, "--", "/demo", "print"); !strings.Contains(out, "env VERSION=2\n") {
			t.Errorf("%s runs\n%s", pod, out)
		}
	}
	k.must(t, "set", "image", "pods", "-l", "app=web", "demo="+firstImage)
	for i := range replicas {
		k.await(t, fmt.Sprintf("web-2-%d", i), "jsonpath={.status.containerStatuses[0].restartCount}=1")
	}
	k.must(t, "drain", nodeName, "--timeout", patience.String())
	k.prints(t, "", "get", "pods", "-o", "name")
	if got := k.must(t, "get", "nodes", "--no-headers"); !strings.Contains(got, " Ready,SchedulingDisabled ") {
		t.Error(got)
	}
	k.prints(t, "node/"+nodeName+" uncordoned\n", "uncordon", nodeName)
	k.must(t, "delete", "deployment,replicaset", "--all")
}

// owner returns metadata with a controller.
func owner(name, kind, of, uid string) object {
	return object{"name": name, "labels": object{"app": "web"}, "ownerReferences": []object{{
		"apiVersion": "apps/v1", "kind": kind, "name": of, "uid": uid, "controller": true, "blockOwnerDeletion": true,
	}}}
}

// makeReplicaSet creates a ReplicaSet of the Deployment, and returns the ReplicaSet with its uid.
func (k *kubectl) makeReplicaSet(t *testing.T, name, deployment, image string) object {
	t.Helper()
	labels := object{"app": "web"}
	k.create(t, object{
		"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": owner(name, "Deployment", "web", deployment),
		"spec": object{"replicas": replicas, "selector": object{"matchLabels": labels}, "template": object{
			"metadata": object{"labels": labels},
			"spec": object{
				"nodeName": nodeName, "dnsPolicy": "Default", "terminationGracePeriodSeconds": 2,
				"containers": []object{{
					"name": "demo", "image": image, "args": []string{"serve"},
					"readinessProbe": object{"httpGet": object{"path": "/readyz", "port": 8080}, "periodSeconds": 1},
				}},
			},
		}},
	})
	var set object
	if err := json.Unmarshal([]byte(k.must(t, "get", "replicaset", name, "-o", "json")), &set); err != nil {
		t.Fatal(err)
	}
	return set
}

// makeReplica creates a pod of a ReplicaSet, and waits until it is ready.
func (k *kubectl) makeReplica(t *testing.T, set object, name string) {
	t.Helper()
	spec, _ := set["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	k.create(t, object{
		"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
		"metadata": owner(name, "ReplicaSet", set.at("metadata", "name"), set.at("metadata", "uid")),
	})
	k.ready(t, name)
}

// readyReplicas returns the number of ready pods.
func (k *kubectl) readyReplicas(t *testing.T) int {
	t.Helper()
	return strings.Count(k.must(t, "get", "pods", "-l", "app=web", "-o",
		`jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`), "True\n")
}

// testNode checks the node's server behind the API server's proxy.
func (k *kubectl) testNode(t *testing.T) {
	k.start(t, "web", 2, "serve")
	const proxy = "/api/v1/nodes/" + nodeName + "/proxy"
	k.prints(t, "ok", "get", "--raw", proxy+"/healthz")
	k.prints(t, "ok", "get", "--raw", proxy+"/healthz/syncloop")
	k.prints(t, "serving http on :8080\n", "get", "--raw", proxy+"/containerLogs/default/web/web?tailLines=1")
	k.fails(t, 1, "(NotFound)", "get", "--raw", proxy+"/containerLogs/default/absent/web")
	k.fails(t, 1, "(NotFound)", "get", "--raw", proxy+"/containerLogs/default/web/absent")
	k.fails(t, 1, "(BadRequest)", "get", "--raw", proxy+"/containerLogs/default/web/web?tailLines=x")
	uid := k.get(t, "web", "{.metadata.uid}")
	for _, list := range []string{"/pods", "/runningpods/"} {
		pods := items(t, []byte(k.must(t, "get", "--raw", proxy+list)))
		if len(pods) != 1 || pods[0].at("metadata", "name") != "web" || pods[0].at("metadata", "uid") != uid {
			t.Errorf("%s: %v", list, pods)
		}
	}
	var configuration struct {
		KubeletConfig object `json:"kubeletconfig"`
	}
	if err := json.Unmarshal([]byte(k.must(t, "get", "--raw", proxy+"/configz")), &configuration); err != nil {
		t.Fatal(err)
	}
	c := configuration.KubeletConfig
	if c.at("kind") != "KubeletConfiguration" || c.at("apiVersion") != "kubelet.config.k8s.io/v1beta1" || c["port"] != 10250.0 {
		t.Errorf("%v", c)
	}
	features := k.must(t, "get", "node", nodeName, "-o", "jsonpath={.status.declaredFeatures}")
	if want := `["ExtendWebSocketsToKubelet","InPlacePodLevelResourcesVerticalScaling",` +
		`"InPlacePodVerticalScalingInitContainers","RestartAllContainersOnContainerExits"]`; features != want {
		t.Error(features)
	}
}
