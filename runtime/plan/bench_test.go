package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

const fivePod = `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  initContainers:
  - {name: seed, image: i:1}
  containers:
  - {name: a, image: i:1, env: [{name: A, value: "1"}, {name: B, value: "2"}], volumeMounts: [{name: data, mountPath: /data}]}
  - {name: b, image: i:1, livenessProbe: {httpGet: {path: /healthz, port: 8080}}, resources: {limits: {memory: 64Mi, cpu: 500m}}}
  - {name: c, image: i:1, readinessProbe: {tcpSocket: {port: 80}}, ports: [{containerPort: 80}]}
  - {name: d, image: i:1, command: [sh, -c, "exec serve"], securityContext: {runAsUser: 1000}}
  - {name: e, image: i:1, args: [--verbose]}
  volumes:
  - {name: data, emptyDir: {}}
`

// five returns the input of a running pod with five containers, beside other records.
func five(tb testing.TB, others int) *Input {
	tb.Helper()
	m, err := load.Load(tb.Context(), input.Reader{Stdin: strings.NewReader(fivePod)}, "-")
	if err != nil || m.Err() != nil {
		tb.Fatal(err, m.Err())
	}
	w := modeltest.New(m.Pods[0]).Sandbox("s", 0, model.SandboxReady)
	w.Container("s", "seed", 0, model.Exited)
	for name := range strings.FieldsSeq("a b c d e") {
		w.Container("s", name, 0, model.Running)
	}
	for i := range others {
		w.Images[fmt.Sprintf("other:%d", i)] = model.Image{ID: "sha256:other"}
	}
	w.Volumes["data"] = model.Volume{Prepared: true}
	return inputOf(w)
}

// BenchmarkPlanUnchanged plans a pod that needs no change.
func BenchmarkPlanUnchanged(b *testing.B) {
	in := five(b, 0)
	if p := Make(in); !p.Complete {
		b.Fatalf("%+v", p)
	}
	b.ReportAllocs()
	for b.Loop() {
		Make(in)
	}
}

// BenchmarkPlanFresh plans a pod that does not exist yet.
func BenchmarkPlanFresh(b *testing.B) {
	in := five(b, 0)
	in.Observed.Sandboxes, in.Observed.Containers = nil, nil
	b.ReportAllocs()
	for b.Loop() {
		Make(in)
	}
}
