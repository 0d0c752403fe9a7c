package cri

import (
	"context"
	"runtime/trace"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/podctl/podctl/runtime/model"
)

// tracerName names who makes the spans.
const tracerName = "github.com/podctl/podctl/runtime"

// StartSpan begins a part of the work: a span of OpenTelemetry below the context's, and
// a region of Go's execution trace. Nothing is made when the context has no span that is
// recorded. The function that is returned ends it, on the same goroutine. Of an error
// only that there was one is kept: its words may have a Secret in them.
func StartSpan(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, func(error)) {
	region := trace.StartRegion(ctx, name)
	parent := oteltrace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, func(error) { region.End() }
	}
	ctx, span := parent.TracerProvider().Tracer(tracerName).Start(ctx, name, oteltrace.WithAttributes(attributes...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, "failed")
		}
		span.End()
		region.End()
	}
}

// PodAttributes say which pod a span is about, in OpenTelemetry's words.
func PodAttributes(ref model.PodRef) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("k8s.namespace.name", ref.Namespace),
		attribute.String("k8s.pod.name", ref.Name),
		attribute.String("k8s.pod.uid", string(ref.UID)),
	}
}

// propagate tells the runtime in which span a call is made (W3C traceparent), so that
// its own spans come below it.
func propagate(ctx context.Context) context.Context {
	if !oteltrace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	for key, value := range carrier {
		ctx = metadata.AppendToOutgoingContext(ctx, key, value)
	}
	return ctx
}
