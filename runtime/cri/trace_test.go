package cri

import (
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/metadata"
)

// TestPropagation checks that calls carry the current span, and no metadata without one.
func TestPropagation(t *testing.T) {
	if _, traced := metadata.FromOutgoingContext(propagate(t.Context())); traced {
		t.Error("without a span the runtime receives a trace")
	}
	ctx, span := trace.NewTracerProvider().Tracer("test").Start(t.Context(), "call")
	sent, _ := metadata.FromOutgoingContext(propagate(ctx))
	want := "00-" + span.SpanContext().TraceID().String() + "-" + span.SpanContext().SpanID().String() + "-01"
	if got := sent.Get("traceparent"); len(got) != 1 || got[0] != want {
		t.Errorf("traceparent is %v, want %s", got, want)
	}
}
