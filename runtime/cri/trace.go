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

// tracerName is the name of the instrumentation that creates the spans.
const tracerName = "github.com/podctl/podctl/runtime"

// StartSpan starts a span of OpenTelemetry below the context's span, and a region in Go's execution trace. Without a
// recorded span in the context it creates no span. The returned function ends both and must be called on the same
// goroutine. It records only that an error occurred, because the text may have values of a Secret.
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

// PodAttributes returns the attributes of a pod for a span, with OpenTelemetry's names.
func PodAttributes(ref model.PodRef) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("k8s.namespace.name", ref.Namespace),
		attribute.String("k8s.pod.name", ref.Name),
		attribute.String("k8s.pod.uid", string(ref.UID)),
	}
}

// propagate adds the current span to a call (W3C traceparent), so that the runtime's spans appear below it.
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
