// Package profile records CPU profiles, execution traces and OpenTelemetry spans of the process. It is for developers
// of podctl.
package profile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/pprof"
	"runtime/trace"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/podctl/podctl/runtime/safefs"
)

// Profile has the files to write. Its flags are hidden.
type Profile struct {
	cpu, trace, spans string
	// stops has a function for each started profile that ends it and commits the file.
	stops []func() error
}

// Register defines the flags.
func (p *Profile) Register(f *pflag.FlagSet) {
	f.StringVar(&p.cpu, "cpuprofile", "", "Write a CPU profile to this file, for go tool pprof")
	f.StringVar(&p.trace, "trace", "", "Write an execution trace to this file, for go tool trace")
	f.StringVar(&p.spans, "spans", "",
		"Write OpenTelemetry spans to this file, one JSON object each, below the one that TRACEPARENT names")
	for _, name := range []string{"cpuprofile", "trace", "spans"} {
		if err := f.MarkHidden(name); err != nil {
			panic(err) // the flag was defined just above
		}
	}
}

// Start starts the profiles that the flags request. The returned context contains the span of the command.
func (p *Profile) Start(ctx context.Context, command string, getenv func(string) string) (context.Context, error) {
	err := p.start(p.cpu, pprof.StartCPUProfile, func() error { pprof.StopCPUProfile(); return nil })
	if err == nil {
		err = p.start(p.trace, trace.Start, func() error { trace.Stop(); return nil })
	}
	if err == nil {
		ctx, err = p.beginSpans(ctx, command, getenv)
	}
	return ctx, err
}

// start opens a file and starts writing to it. An empty path is ignored. The file gets its name when Stop commits it.
func (p *Profile) start(path string, start func(io.Writer) error, stop func() error) error {
	if path == "" {
		return nil
	}
	f, err := safefs.Create(path)
	if err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	if err := start(f); err != nil {
		return errors.Join(fmt.Errorf("writing a profile: %w", err), f.Close())
	}
	p.stops = append(p.stops, func() error { return errors.Join(stop(), f.Commit(), f.Close()) })
	return nil
}

func (p *Profile) beginSpans(ctx context.Context, command string, getenv func(string) string) (context.Context, error) {
	if p.spans == "" {
		return ctx, nil
	}
	var provider *sdktrace.TracerProvider
	begin := func(w io.Writer) error {
		exporter, err := stdouttrace.New(stdouttrace.WithWriter(w))
		name := resource.NewSchemaless(attribute.String("service.name", "podctl"))
		provider = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(name))
		return err
	}
	end := func() error { return nil }
	if err := p.start(p.spans, begin, func() error { return end() }); err != nil {
		return ctx, err
	}
	// Programs use these variables to pass a trace to child processes.
	parent := propagation.MapCarrier{"traceparent": getenv("TRACEPARENT"), "tracestate": getenv("TRACESTATE")}
	ctx = propagation.TraceContext{}.Extract(ctx, parent)
	ctx, span := provider.Tracer("github.com/podctl/podctl").Start(ctx, command)
	end = func() error {
		span.End()
		return provider.Shutdown(context.WithoutCancel(ctx))
	}
	return ctx, nil
}

// Stop ends all profiles and commits their files.
func (p *Profile) Stop() error {
	var errs []error
	for _, stop := range p.stops {
		errs = append(errs, stop())
	}
	p.stops = nil
	return errors.Join(errs...)
}
