package runtime

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/podctl/podctl/runtime/executor"
)

// TestSpansOfAPass checks the nesting of spans: the caller, the pass, each step, and the step's calls to the runtime.
func TestSpansOfAPass(t *testing.T) {
	l := newLab(t, "i:1")
	recorder := tracetest.NewSpanRecorder()
	ctx, root := trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test").Start(t.Context(), "root")
	desired := (&faultLab{lab: l}).load("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: 'i:1'}]}\n")
	if _, err := l.engine.Pods.Apply(ctx, desired, executor.Options{}); err != nil {
		t.Fatal(err)
	}
	root.End()
	names := map[string]string{}
	for _, s := range recorder.Ended() {
		names[s.SpanContext().SpanID().String()] = s.Name()
	}
	var paths []string
	for _, s := range recorder.Ended() {
		paths = append(paths, names[s.Parent().SpanID().String()]+"/"+s.Name())
	}
	all := strings.Join(paths, " ")
	for _, want := range []string{
		"root/pass", "pass/observe", "observe/ListContainers", "pass/RunSandbox", "RunSandbox/RunPodSandbox",
		"StartContainer/CreateContainer",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("there is no span %s among %s", want, all)
		}
	}
}
