//go:build e2e

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The files of a directory, as a chart would generate them: a Deployment whose pods return their names, its Service and
// its ConfigMap, a Job and a CronJob, and kinds without effect.
const (
	webFile = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      volumes: [{name: me, downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]
      containers:
      - name: app
        image: registry.local/podctl/demo:1
        args: [serve, --http, ":8080", --greeting, /me/name]
        envFrom: [{configMapRef: {name: words}}]
        volumeMounts: [{name: me, mountPath: /me}]
        readinessProbe: {httpGet: {port: 8080, path: /readyz}, periodSeconds: 1, failureThreshold: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
`
	wordsFile = `apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {WORD: one}
`
	batchFile = `apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  ttlSecondsAfterFinished: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: app, image: "registry.local/podctl/demo:1", args: [print]}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: yearly}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: app, image: "registry.local/podctl/demo:1", args: [print]}]
`
	clientFile = `apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: app, image: "registry.local/podctl/demo:1", args: [sleep]}]
`
)

// testAgentSources: a directory may contain everything that apply accepts. An edit is rolled out. A renamed file and a
// killed agent change nothing. A file takes precedence over commands, and its objects are deleted with it. A Job runs
// once, even if the agent is killed.
func testAgentSources(t *testing.T, m *machine) {
	a, c := startAgent(t, m, t.TempDir()), client{m}
	for name, text := range map[string]string{
		"web.yaml": webFile, "words.yaml": wordsFile, "batch.yaml": batchFile, "client.yaml": clientFile,
	} {
		a.put(t, name, text)
	}
	rolled := func() bool { return m.run(t, "rollout", "status", "deployment/web").code == 0 }
	until(t, "the Deployment is rolled out", rolled)
	until(t, "its Service sends traffic to it",
		func() bool { return strings.HasPrefix(c.get(t, "http://web"), "web-") })
	until(t, "the Job is done and its pods are gone", func() bool {
		return strings.Contains(m.run(t, "get", "job/once").stdout, "Complete") &&
			!strings.Contains(m.must(t, "get", "-o", "name").stdout, "once")
	})
	if n := strings.Count(a.log.String(), "skipped: ServiceAccount/web"); n != 1 {
		t.Errorf("the skipped object is reported %d times", n)
	}
	ids := func() map[string]string {
		all := m.ids(t, "web-0")
		for name, id := range m.ids(t, "web-1") {
			all[name+"1"] = id
		}
		return all
	}
	word := func() string { return m.run(t, "exec", "web-1", "--", "/demo", "print").stdout }
	first := ids()
	a.put(t, "words.yaml", strings.ReplaceAll(wordsFile, "one", "two"))
	until(t, "an edit of the ConfigMap is rolled out",
		func() bool { return strings.Contains(word(), "WORD=two") && rolled() })
	if second := ids(); second["app"] == first["app"] || second["app1"] == first["app1"] {
		t.Error("containers with the old word still run")
	}

	before := ids()
	if err := os.Rename(filepath.Join(a.dir, "web.yaml"), filepath.Join(a.dir, "shop.yaml")); err != nil {
		t.Fatal(err)
	}
	until(t, "the file has another name",
		func() bool { return strings.Contains(m.must(t, "agent", "status").stdout, "shop.yaml") })
	time.Sleep(3 * time.Second)
	a.kill(t)
	a = startAgent(t, m, a.dir)
	time.Sleep(4 * time.Second)
	if after := ids(); !maps.Equal(after, before) {
		t.Errorf("a renamed file and an agent that was killed: %v, then %v", before, after)
	}
	if r := m.must(t, "get", "-o", "name"); strings.Contains(r.stdout, "once") {
		t.Errorf("the Job runs again: %s", r.stdout)
	}
	sourcesRule(t, a, rolled)
	a.kill(t)
	a.put(t, "words.yaml", strings.ReplaceAll(wordsFile, "one", "three"))
	a = startAgent(t, m, a.dir)
	until(t, "edits made without an agent are rolled out",
		func() bool { return strings.Contains(word(), "WORD=three") && rolled() })
	sourcesEnd(t, a)
}

// sourcesRule: commands do not change objects of a file, and their messages name the file.
func sourcesRule(t *testing.T, a *agentProcess, rolled func() bool) {
	t.Helper()
	m, file := a.m, filepath.Join(a.dir, "shop.yaml")
	if r := m.run(t, "apply", write(t, strings.ReplaceAll(webFile, "replicas: 2", "replicas: 1"))); r.code != 5 ||
		!strings.Contains(r.stderr, file) {
		t.Errorf("apply of another version: %d %s", r.code, r.stderr)
	}
	if r := m.run(t, "scale", "--replicas=1", "deployment/web"); r.code != 1 || !strings.Contains(r.stderr, file) {
		t.Errorf("scale: %d %s", r.code, r.stderr)
	}
	if r := m.run(t, "rollout", "undo", "deployment/web"); r.code != 1 || !strings.Contains(r.stderr, file) {
		t.Errorf("undo: %d %s", r.code, r.stderr)
	}
	before := m.ids(t, "web-1")
	m.must(t, "rollout", "restart", "deployment/web")
	until(t, "a restart is rolled out", func() bool { return m.ids(t, "web-1")["app"] != before["app"] && rolled() })
	r := m.must(t, "delete", "deployment/web", "service/web")
	if !strings.Contains(r.stderr, "the agent recreates deployment default/web") ||
		!strings.Contains(r.stderr, "the agent recreates service default/web") || !strings.Contains(r.stderr, file) {
		t.Errorf("delete: %s%s", r.stdout, r.stderr)
	}
	until(t, "the agent recreates the deleted objects",
		func() bool { return rolled() && m.run(t, "get", "service/web").code == 0 })
	a.put(t, "zzz.yaml", webFile)
	until(t, "a second manifest of it is reported", func() bool {
		return strings.Contains(m.must(t, "agent", "status").stdout,
			"Deployment default/web is given twice, first in "+file)
	})
	until(t, "it is an event of a pod",
		func() bool { return strings.Contains(m.must(t, "events", "web-0").stdout, "DuplicateManifest") })
	if err := os.Remove(filepath.Join(a.dir, "zzz.yaml")); err != nil {
		t.Fatal(err)
	}
	if r := m.must(t, "agent", "status"); !strings.Contains(r.stdout, "deployment/web") ||
		!strings.Contains(r.stdout, "cronjob/yearly") {
		t.Errorf("status: %s", r.stdout)
	}
}

// sourcesEnd: objects without a file are deleted, even if the agent is killed meanwhile. Their Service then has no
// endpoints.
func sourcesEnd(t *testing.T, a *agentProcess) {
	t.Helper()
	m := a.m
	a.put(t, "shop.yaml", "kind: [")
	time.Sleep(3 * time.Second)
	if names := m.must(t, "get", "-o", "name").stdout; !strings.Contains(names, "web-1") {
		t.Errorf("with an incomplete file: %s", names)
	}
	for _, name := range []string{"shop.yaml", "words.yaml"} {
		if err := os.Remove(filepath.Join(a.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	a.kill(t)
	a = startAgent(t, m, a.dir)
	until(t, "the Deployment ends", func() bool { return m.must(t, "get", "-o", "name").stdout == "pod/client\n" })
	r := m.must(t, "get", "deployments,services,configmaps", "-o", "name")
	if slices.Contains(strings.Fields(r.stdout), "configmap/words") || strings.Contains(r.stdout, "/web") {
		t.Errorf("left: %s", r.stdout)
	}
	if out := m.must(t, "exec", "client", "--", "/demo", "read", "/etc/hosts").stdout; strings.Contains(out, "\tweb") {
		t.Errorf("the name of the Service still resolves:\n%s", out)
	}
	for _, name := range []string{"batch.yaml", "client.yaml"} {
		if err := os.Remove(filepath.Join(a.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "nothing is left", func() bool {
		return m.must(t, "get", "-A", "-o", "name").stdout == "" &&
			m.must(t, "get", "jobs", "-o", "name").stdout == "" &&
			m.must(t, "get", "cronjobs", "-o", "name").stdout == ""
	})
	a.stop(t)
}

// testAgentOwnSources: with --applied=false, the agent keeps the workloads of its sources and does not touch those that
// were applied by hand. A pod that was applied by hand is not replaced by the workload of a file.
func testAgentOwnSources(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "1m", write(t, shop("one")))
	m.must(t, "apply", write(t, strings.ReplaceAll(clientFile, "client", "late-0")))
	taken := m.ids(t, "late-0")
	a := startAgent(t, m, t.TempDir(), "--applied=false")
	a.put(t, "web.yaml", webFile+"---\n"+wordsFile)
	late := strings.NewReplacer("name: web", "name: late", "app: web", "app: late", "replicas: 2", "replicas: 1")
	a.put(t, "late.yaml", late.Replace(webFile))
	rolled := func() bool { return m.run(t, "rollout", "status", "deployment/web").code == 0 }
	until(t, "the Deployment of the file is there", rolled)
	until(t, "a name that is in use is reported", func() bool {
		return strings.Contains(m.must(t, "agent", "status").stdout,
			"pod default/late-0 is not created: a pod that was applied by hand has its name")
	})
	before := m.ids(t, "shop-0")
	m.must(t, "delete", "shop-1", "web-1")
	until(t, "the pod of the file is recreated", rolled)
	a.kill(t)
	a = startAgent(t, m, a.dir, "--applied=false")
	time.Sleep(4 * time.Second)
	names := m.must(t, "get", "-o", "name").stdout
	if strings.Contains(names, "shop-1") || !strings.Contains(names, "shop-2") ||
		!maps.Equal(m.ids(t, "shop-0"), before) || !maps.Equal(m.ids(t, "late-0"), taken) {
		t.Errorf("the agent changed a pod that was applied by hand: %s", names)
	}
	a.put(t, "shop.yaml", shop("two"))
	until(t, "the agent takes over a workload from a file", func() bool {
		return m.run(t, "rollout", "status", "deployment/shop").code == 0 && m.ids(t, "shop-0")["app"] != before["app"]
	})
	for _, name := range []string{"shop.yaml", "web.yaml", "late.yaml"} {
		if err := os.Remove(filepath.Join(a.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "only objects that were applied by hand are left",
		func() bool { return m.must(t, "get", "-o", "name").stdout == "pod/late-0\n" })
	m.must(t, "delete", "late-0")
	a.stop(t)
}
