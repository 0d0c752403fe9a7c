//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// shop returns a Deployment of a program with probes and a word in its environment.
func shop(word string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 3
  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: registry.local/podctl/demo:1
        args: [serve, --http, ":8080"]
        env: [{name: WORD, value: %s}, {name: KEY, valueFrom: {secretKeyRef: {name: shop, key: key}}}]
        readinessProbe: {httpGet: {port: 8080, path: /readyz}, periodSeconds: 1}
---
apiVersion: v1
kind: Secret
metadata: {name: shop}
stringData: {key: hunter2}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: shop}
`, word)
}

const numbered = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      initContainers:
      - name: write
        image: registry.local/podctl/demo:1
        args: [write, /data/name, $(POD)]
        env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        volumeMounts: [{name: data, mountPath: /data}]
      containers:
      - {name: app, image: "registry.local/podctl/demo:1", args: [sleep], volumeMounts: [{name: data, mountPath: /data}]}
`

const batch = `apiVersion: batch/v1
kind: Job
metadata: {name: sums}
spec:
  completions: 3
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: app, image: "registry.local/podctl/demo:1", args: [print]}
`

// testWorkloads: a Deployment is updated one pod after the other while the others run. A StatefulSet keeps its data, a
// Job completes, and a deletion leaves nothing behind.
func testWorkloads(t *testing.T, m *machine) {
	file := write(t, shop("one"))
	r := m.must(t, "apply", "--wait", "--timeout", "2m", file)
	if !strings.Contains(r.stdout, "deployment default/shop: 3 of 3 pods available") ||
		!strings.Contains(r.stderr, "skipped: ServiceAccount/shop") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	before := []map[string]string{m.ids(t, "shop-0"), m.ids(t, "shop-1"), m.ids(t, "shop-2")}
	if r := m.run(t, "plan", "--exit-code", file); r.code != 0 {
		t.Errorf("a second plan: %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	edited := write(t, shop("two"))
	if r := m.must(t, "apply", edited); !strings.Contains(r.stdout, "of 3 pods updated") ||
		strings.Contains(r.stdout+r.stderr, "hunter2") {
		t.Errorf("one pass: %s%s", r.stdout, r.stderr)
	}
	changed := 0
	for i, name := range []string{"shop-0", "shop-1", "shop-2"} {
		if m.ids(t, name)["app"] != before[i]["app"] {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("the first pass of an update has replaced %d containers", changed)
	}
	m.must(t, "apply", "--all", "--wait", "--timeout", "2m")
	for i, name := range []string{"shop-0", "shop-1", "shop-2"} {
		if m.ids(t, name)["app"] == before[i]["app"] {
			t.Errorf("%s was not updated", name)
		}
	}
	m.must(t, "delete", "deployment/shop")

	set := write(t, numbered)
	m.must(t, "apply", "--wait", "--timeout", "1m", set)
	m.must(t, "scale", "--replicas=1", "sts/db", "--wait", "--timeout", "1m")
	if r := m.must(t, "get", "-o", "name"); r.stdout != "pod/db-0\n" {
		t.Errorf("after scale: %s", r.stdout)
	}
	if r := m.must(t, "get", "pvc", "-o", "name"); !strings.Contains(r.stdout, "persistentvolumeclaim/data-db-1") {
		t.Errorf("claims after scale: %s", r.stdout)
	}
	m.must(t, "delete", "--volumes", "-f", set)

	jobs := write(t, batch)
	if r := m.must(t, "apply", "--wait=completed", "--timeout", "1m", jobs); !strings.Contains(r.stdout,
		"job default/sums: 0 active, 3 succeeded, 0 failed") {
		t.Errorf("a Job: %s%s", r.stdout, r.stderr)
	}
	m.must(t, "delete", "job/sums")
	if r := m.must(t, "get", "-A", "-o", "name"); r.stdout != "" {
		t.Errorf("left: %s", r.stdout)
	}
	m.must(t, "prune", "--volumes")
}
