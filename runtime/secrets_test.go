package runtime

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/runtimetest"
)

const repeated = `apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {word: SECRET}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: a
    image: i:1
    envFrom: [{secretRef: {name: s}}]
    livenessProbe: {exec: {command: [probe]}, failureThreshold: 1, periodSeconds: 1}
    lifecycle: {postStart: {exec: {command: [hook]}}, preStop: {exec: {command: [hook]}}}
`

// TestRepeatedSecretsAreRedacted checks that errors, events, plans and probe reports do not contain the value of a
// Secret that a runtime, a hook or a probe repeated. This includes the Secret that the container started with if the
// manifest has another one now.
func TestRepeatedSecretsAreRedacted(t *testing.T) {
	// Long, so that truncation would split a value, and with blanks, which a table removes.
	const before, after = "hunter2  hunter2-hunter2-hunter2-hunter2-hunter2-before", "swordfish-after"
	wantMessage := "it knows " + before + " and " + after + strings.Repeat(" "+before, 20)
	for name, disturb := range map[string]func(*lab){
		"the runtime cannot create": func(l *lab) {
			l.server.Fail(runtimetest.Fault{Method: "CreateContainer", Times: 1, Err: status.Error(codes.Unknown, wantMessage)})
		},
		"the runtime cannot start": func(l *lab) {
			l.server.Fail(runtimetest.Fault{Method: "StartContainer", Times: 1, Err: status.Error(codes.Unknown, wantMessage)})
		},
		"the runtime cannot stop": func(l *lab) {
			l.server.Fail(runtimetest.Fault{Method: "StopContainer", Times: 1, Err: status.Error(codes.Unknown, wantMessage)})
		},
		"the runtime cannot run a hook": func(l *lab) {
			l.server.Fail(runtimetest.Fault{Method: "ExecSync", Times: 4, Err: status.Error(codes.Unknown, wantMessage)})
		},
		"a hook or a probe fails": func(l *lab) {
			l.server.OnExec(func(string, []string) *runtimeapi.ExecSyncResponse {
				return &runtimeapi.ExecSyncResponse{ExitCode: 1, Stdout: []byte(wantMessage), Stderr: []byte(wantMessage)}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "i:1")
			first := loadText(t, strings.Replace(repeated, "SECRET", before, 1))
			second := loadText(t, strings.Replace(repeated, "SECRET", after, 1))
			if _, err := l.engine.Pods.Apply(t.Context(), first, executor.Options{}); err != nil {
				t.Fatal(err)
			}
			disturb(l)
			l.clock.Advance(10 * time.Second)
			var reported strings.Builder
			for range 2 {
				reports, err := l.engine.Prober.Probe(t.Context(), second, probe.Options{})
				fmt.Fprintf(&reported, "%+v %v\n", reports, err)
				outcome, err := l.engine.Pods.Apply(t.Context(), second, executor.Options{
					Report: func(ev executor.Event) { fmt.Fprintf(&reported, "%+v %+v\n", ev, ev.Step) },
				})
				fmt.Fprintf(&reported, "%v\n", err)
				if err == nil {
					fmt.Fprintf(&reported, "%v %+v\n", outcome.Err(), outcome.Plan)
				}
				p, err := l.engine.Pods.Plan(t.Context(), second, plan.Options{})
				fmt.Fprintf(&reported, "%+v %v\n", p, err)
			}
			pod := l.layout.Pod(second.Pod.UID)
			history, err := pod.History().Read()
			if err != nil {
				t.Fatal(err)
			}
			checkpoint, err := pod.Checkpoint().Read()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&reported, "%+v %+v %+v\n", history, checkpoint.StartErrors, checkpoint.Probes)
			if !strings.Contains(reported.String(), "it knows (secret) and (secret)") {
				t.Errorf("nothing was repeated:\n%s", reported.String())
			}
			for line := range strings.Lines(reported.String()) {
				if strings.Contains(line, "hunter2") || strings.Contains(line, "swordfish") {
					t.Errorf("a secret is revealed: %s", line)
				}
			}
		})
	}
}

func loadText(t *testing.T, text string) *podspec.Desired {
	t.Helper()
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	return m.Pods[0]
}
