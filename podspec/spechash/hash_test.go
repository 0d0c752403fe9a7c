package spechash

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/podspectest"
)

// TestSpecHash checks the effect of edits on both hashes.
func TestSpecHash(t *testing.T) {
	base := podspectest.Desired(t, podspectest.WithEnv)
	container, sandbox := Container(base, &base.Pod.Spec.Containers[0]), Sandbox(base)
	cases := map[string]struct {
		before, after      string
		container, sandbox bool
	}{
		"another image":                {"app:1", "app:2", true, false},
		"another literal value":        {"value: plain", "value: other", true, false},
		"another ConfigMap value":      {"mode: fast", "mode: slow", true, false},
		"an unused ConfigMap value":    {`level: "3"`, `level: "4"`, false, false},
		"another secret value":         {"hunter2", "hunter3", true, false},
		"a probe":                      {"port: 80", "port: 81", false, false},
		"cpu":                          {"cpu: 100m", "cpu: 200m", false, false},
		"a default written out":        {"    image:", "    terminationMessagePath: /dev/termination-log\n    image:", false, false},
		"the default restart policy":   {"spec:\n", "spec:\n  restartPolicy: Always\n", false, false},
		"the default DNS policy":       {"spec:\n", "spec:\n  dnsPolicy: ClusterFirst\n", false, false},
		"the medium of a mounted dir":  {"emptyDir: {}", "emptyDir: {medium: Memory}", true, false},
		"a hostname":                   {"spec:\n", "spec:\n  hostname: other\n", false, true},
		"a published port":             {"    image:", "    ports: [{containerPort: 80, hostPort: 8080}]\n    image:", false, true},
		"a port that is not published": {"    image:", "    ports: [{containerPort: 80}]\n    image:", false, false},
		"the QoS class":                {"resources: {requests: {cpu: 100m}}", "resources: {}", false, true},
		"a label":                      {"metadata: {name: web}", "metadata: {name: web, labels: {a: b}}", false, false},
		"the pod's seccomp profile":    {"spec:\n", "spec:\n  securityContext: {seccompProfile: {type: RuntimeDefault}}\n", true, false},
		"the pod's user":               {"spec:\n", "spec:\n  securityContext: {runAsUser: 5}\n", false, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := podspectest.Desired(t, strings.Replace(podspectest.WithEnv, c.before, c.after, 1))
			if got := Container(d, &d.Pod.Spec.Containers[0]) != container; got != c.container {
				t.Errorf("the container's hash changed: %t", got)
			}
			if got := Sandbox(d) != sandbox; got != c.sandbox {
				t.Errorf("the sandbox's hash changed: %t", got)
			}
		})
	}
}

// TestSpecHashIsFrozen checks that the hashes stay the same, because a changed hash restarts all containers.
func TestSpecHashIsFrozen(t *testing.T) {
	d := podspectest.Desired(t, podspectest.WithEnv)
	c := &d.Pod.Spec.Containers[0]
	if got, want := Container(d, c), "v2:877f2a0264f3562e390451fa916d242b:a386e194:bc4d7e51b0ffb0d859387956db2bcfbe"; got != want {
		t.Errorf("container: %s, frozen as %s", got, want)
	}
	plain := podspectest.Desired(t, podspectest.Minimal)
	if got, want := Container(plain, &plain.Pod.Spec.Containers[0]), "v1:ce0f0925c13dd7193cdc77a3e4cf4d5b"; got != want {
		t.Errorf("a container without Secrets: %s, frozen as %s", got, want)
	}
	if got, want := Sandbox(d), "v1:bdd67f6b36493702cb366653819cc3da"; got != want {
		t.Errorf("sandbox: %s, frozen as %s", got, want)
	}
	published := podspectest.Desired(t, `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: a
    image: i
    ports:
    - {containerPort: 80, hostPort: 8080, hostIP: 127.0.0.1}
    - {containerPort: 81}
    - {containerPort: 53, hostPort: 53, protocol: UDP}
  - {name: b, image: i, ports: [{containerPort: 90, hostPort: 9090}]}
`)
	if got, want := Sandbox(published), "v1:c028af8ffe83a696afbacb3b0ba1e6fb"; got != want {
		t.Errorf("sandbox with published ports: %s, frozen as %s", got, want)
	}
}

// TestSpecHashOfVolumes checks the effect of an edit of a mounted volume. The hash with a claim that is not read-only
// must not change.
func TestSpecHashOfVolumes(t *testing.T) {
	hash := func(source string) string {
		d := podspectest.Desired(t, strings.Replace(podspectest.WithEnv, "emptyDir: {}", source, 1))
		return Container(d, &d.Pod.Spec.Containers[0])
	}
	const claim, file = "persistentVolumeClaim: {claimName: c}", "hostPath: {path: /a, type: File}"
	if got, want := hash(claim), "v2:ecf7e17afa69288dbd6ee1c51ecac7a8:a386e194:bc4d7e51b0ffb0d859387956db2bcfbe"; got != want {
		t.Errorf("a claim: %s, frozen as %s", got, want)
	}
	if hash(strings.Replace(claim, "c}", "c, readOnly: false}", 1)) != hash(claim) {
		t.Error("readOnly: false changed the hash")
	}
	if hash(strings.Replace(claim, "c}", "c, readOnly: true}", 1)) == hash(claim) {
		t.Error("readOnly: true did not change the hash")
	}
	if hash(strings.Replace(file, "File", "Socket", 1)) != hash(file) {
		t.Error("a check before the mount changed the hash")
	}
}

// TestClaimsInCluster checks that the path of a claim of the API server is not in the hash: it may be unknown.
func TestClaimsInCluster(t *testing.T) {
	hash := func(source string, volumes map[string]*podspec.HostVolume) string {
		d := podspectest.FromAPI(t, strings.Replace(podspectest.WithEnv, "emptyDir: {}", source, 1))
		d.Objects.Volumes = volumes
		return Container(d, &d.Pod.Spec.Containers[0])
	}
	const claim, readOnly = "persistentVolumeClaim: {claimName: c}", "persistentVolumeClaim: {claimName: c, readOnly: true}"
	bound := map[string]*podspec.HostVolume{"c": {Name: "pv", Path: "/a"}}
	if hash(claim, nil) != hash(claim, bound) || hash(readOnly, nil) != hash(readOnly, bound) {
		t.Error("the volume of the claim changed the hash")
	}
	if hash(claim, bound) == hash(readOnly, bound) || hash(claim, nil) == hash("persistentVolumeClaim: {claimName: d}", nil) {
		t.Error("another claim has the same hash")
	}
}

func TestProjectionHidesSecrets(t *testing.T) {
	d := podspectest.Desired(t, podspectest.WithEnv)
	text, err := json.Marshal(ContainerProjection(d, &d.Pod.Spec.Containers[0]))
	if err != nil || strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), digest.SecretPrefix) {
		t.Errorf("%s %v", text, err)
	}
}

// TestHashesInCluster checks that the hash of a container of the API server has the references of its environment
// instead of their values, and that Start has the values.
func TestHashesInCluster(t *testing.T) {
	base := podspectest.FromAPI(t, podspectest.WithEnv)
	container, sandbox, start := Container(base, &base.Pod.Spec.Containers[0]), Sandbox(base), Start(base, &base.Pod.Spec.Containers[0])
	for name, c := range map[string]struct {
		before, after             string
		container, sandbox, start bool
	}{
		"another ConfigMap value":   {"mode: fast", "mode: slow", false, false, true},
		"another secret value":      {"hunter2", "hunter3", false, false, true},
		"an unused ConfigMap value": {`level: "3"`, `level: "4"`, false, false, false},
		"a missing key":             {"mode: fast, ", "", false, false, true},
		"a missing ConfigMap":       {"metadata: {name: settings}", "metadata: {name: others}", false, false, true},
		"another key":               {"key: mode", "key: level", true, false, true},
		"another literal value":     {"value: plain", "value: other", true, false, true},
		"another image":             {"app:1", "app:2", true, false, true},
		"a hostname":                {"spec:\n", "spec:\n  hostname: other\n", false, true, false},
		"a probe":                   {"port: 80", "port: 81", false, false, false},
	} {
		text := strings.Replace(podspectest.WithEnv, c.before, c.after, 1)
		if name == "a missing ConfigMap" {
			text = strings.Replace(text, "name: settings}", "name: others}", 1)
		}
		d := podspectest.FromAPI(t, text)
		one := &d.Pod.Spec.Containers[0]
		if got := Container(d, one) != container; got != c.container {
			t.Errorf("%s: the container's hash changed: %t", name, got)
		}
		if got := Sandbox(d) != sandbox; got != c.sandbox {
			t.Errorf("%s: the sandbox's hash changed: %t", name, got)
		}
		if got := digest.Compare(Start(d, one), start) == digest.Different; got != c.start {
			t.Errorf("%s: the hash of the start changed: %t", name, got)
		}
	}
	other := podspectest.Desired(t, podspectest.WithEnv)
	if one := &other.Pod.Spec.Containers[0]; Start(other, one) != Container(other, one) {
		t.Error("the hashes of another pod differ")
	}
}

// TestEnvFromInCluster checks that the hash has the references of envFrom, not their keys.
func TestEnvFromInCluster(t *testing.T) {
	text := podspectest.Minimal + "    envFrom: [{configMapRef: {name: settings}}]\n"
	cm := func(data string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {" + data + "}\n"
	}
	hash := func(text string) string {
		d := podspectest.FromAPI(t, text)
		return Container(d, &d.Pod.Spec.Containers[0])
	}
	without := hash(text)
	if one, other := hash(text+cm("a: b")), hash(text+cm("a: c, d: e")); one != without || other != without {
		t.Errorf("%s, %s and %s", without, one, other)
	}
	if renamed := hash(strings.Replace(text, "settings", "others", 1)); renamed == without {
		t.Error("another reference is no change")
	}
	if plain := hash(podspectest.Minimal); plain == without {
		t.Error("a removed reference is no change")
	}
}
