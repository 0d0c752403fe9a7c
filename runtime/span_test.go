package runtime

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/metadata"
)

// TestSpansOfAPass: below the span of the caller there is one for the pass, below that
// one for each step, and below the step the calls to the runtime.
func TestSpansOfAPass(t *testing.T) {
	l := newLab(t, "i:1")
	recorder := tracetest.NewSpanRecorder()
	ctx, root := trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test").Start(t.Context(), "root")
	desired := (&faultLab{lab: l}).load("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: 'i:1'}]}\n")
	if _, err := l.engine.Apply(ctx, desired, Options{}); err != nil {
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
	for _, want := range []string{"root/pass", "pass/observe", "observe/ListContainers", "pass/RunSandbox", "RunSandbox/RunPodSandbox", "StartContainer/CreateContainer"} {
		if !strings.Contains(all, want) {
			t.Errorf("there is no span %s among %s", want, all)
		}
	}
}

// TestPropagation: the runtime is told the span of a call, and nothing without one.
func TestPropagation(t *testing.T) {
	if _, told := metadata.FromOutgoingContext(propagate(t.Context())); told {
		t.Error("without a span the runtime is told something")
	}
	ctx, span := trace.NewTracerProvider().Tracer("test").Start(t.Context(), "call")
	sent, _ := metadata.FromOutgoingContext(propagate(ctx))
	want := "00-" + span.SpanContext().TraceID().String() + "-" + span.SpanContext().SpanID().String() + "-01"
	if got := sent.Get("traceparent"); len(got) != 1 || got[0] != want {
		t.Errorf("traceparent is %v, want %s", got, want)
	}
}
