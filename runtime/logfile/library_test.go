package logfile

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	crilogs "k8s.io/cri-client/pkg/logs"
	"k8s.io/klog/v2"
)

// randomLog returns a log as written by runtimes, with invalid lines in between.
func randomLog(r *rand.Rand) string {
	var b strings.Builder
	began := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	docker := r.IntN(4) == 0
	for i := range r.IntN(40) {
		text := strings.Repeat(string(rune('a'+i%26)), []int{0, 1, 7, 30, 300, 5000, 70_000}[min(r.IntN(7), r.IntN(8))*min(r.IntN(10), 1)])
		stream := []string{"stdout", "stderr"}[r.IntN(2)]
		at := began.Add(time.Duration(i) * time.Second).Add(time.Duration(r.IntN(1_000_000_000)))
		if r.IntN(3) == 0 {
			at = at.In(time.FixedZone("", 3600*r.IntN(12)))
		}
		switch tag := []string{"F", "F", "F", "P", "P:x", "F:P", "", "X"}[r.IntN(8)]; {
		case r.IntN(30) == 0 && i > 0:
			b.WriteString([]string{
				"garbage", "", " ", "2026-05-04T12:00:00Z", "2026-05-04T12:00:00Z stdout",
				"2026-05-04T12:00:00Z stdout F", "2026-05-04T12:00:00Z stdlog F x", "x stdout F y", "null", "\x00\x00",
			}[r.IntN(10)] + "\n")
		case docker:
			fmt.Fprintf(&b, "{\"log\":%q,\"stream\":%q,\"time\":%q}\n",
				text+strings.Repeat("\n", r.IntN(2)), stream, at.Format(time.RFC3339Nano))
		default:
			fmt.Fprintf(&b, "%s %s %s %s\n", at.Format(time.RFC3339Nano), stream, tag, text)
		}
	}
	if text := b.String(); r.IntN(3) == 0 {
		return text[:len(text)-min(r.IntN(10), len(text))]
	}
	return b.String()
}

func randomOptions(r *rand.Rand) *Options {
	opts := &Options{Timestamps: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		n := int64(r.IntN(45))
		opts.Tail = &n
	}
	if r.IntN(3) == 0 {
		n := int64(r.IntN(3000))
		opts.LimitBytes = &n
	}
	if r.IntN(3) == 0 {
		opts.Since = time.Date(2026, 5, 4, 12, 0, r.IntN(40), 0, time.UTC)
	}
	return opts
}

// both collects the output to two streams, separately and in order.
type both struct{ stdout, stderr, all bytes.Buffer }

type tee struct{ one, all *bytes.Buffer }

func (t tee) Write(p []byte) (int, error) {
	t.all.Write(p)
	return t.one.Write(p)
}

func (b *both) out() tee { return tee{&b.stdout, &b.all} }
func (b *both) err() tee { return tee{&b.stderr, &b.all} }

// TestOutputAgreesWithTheLibrary checks that the output is equal to that of k8s.io/cri-client for all options.
func TestOutputAgreesWithTheLibrary(t *testing.T) {
	const seeds = 1000
	path := filepath.Join(t.TempDir(), "0.log")
	ctx := klog.NewContext(t.Context(), logr.Discard())
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(1, seed))
		text, opts := randomLog(r), randomOptions(r)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var want, got both
		wantErr := crilogs.ReadLogs(ctx, path, "", &crilogs.LogOptions{
			TailLines: opts.Tail, LimitBytes: opts.LimitBytes, Since: opts.Since, Timestamp: opts.Timestamps,
		}, nil, want.out(), want.err())
		err := Log{path}.Read(t.Context(), opts, nil, got.out(), got.err())
		if got.stdout.String() != want.stdout.String() || got.stderr.String() != want.stderr.String() ||
			got.all.String() != want.all.String() || (err == nil) != (wantErr == nil) {
			t.Fatalf("seed %d, %+v:\n%.3000q\n%v\n%.3000q\nthe library: %v\n%.3000q",
				seed, opts, text, err, got.all.String(), wantErr, want.all.String())
		}
	}
}

// TestTailAgreesWithTheLibrary checks the last lines within a span.
func TestTailAgreesWithTheLibrary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	ctx := klog.NewContext(t.Context(), logr.Discard())
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(2, seed))
		if err := os.WriteFile(path, []byte(randomLog(r)), 0o600); err != nil {
			t.Fatal(err)
		}
		var want, got bytes.Buffer
		n := int64(r.IntN(50))
		wantErr := crilogs.ReadLogs(ctx, path, "", &crilogs.LogOptions{TailLines: &n}, nil, &want, &want)
		err := Log{path}.End(t.Context(), n, 4<<20, &got)
		if got.String() != want.String() || (err == nil) != (wantErr == nil) {
			t.Fatalf("seed %d, %d lines: %v\n%.2000q\nthe library: %v\n%.2000q", seed, n, err, got.String(), wantErr, want.String())
		}
	}
	// With a small span, only whole lines within it are shown.
	if err := os.WriteFile(path, []byte(line("one")+line("two")+line("three")), 0o600); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := (Log{path}).End(t.Context(), 5, int64(len(line("two")+line("three"))+3), &got); err != nil || got.String() != "two\nthree\n" {
		t.Errorf("%q %v", got.String(), err)
	}
}

func line(text string) string { return "2026-05-04T12:00:00.000000001Z stdout F " + text + "\n" }

// BenchmarkRead compares both with a log of 100 MB.
func BenchmarkRead(b *testing.B) {
	path := filepath.Join(b.TempDir(), "0.log")
	text := strings.Repeat(line(strings.Repeat("x", 60)), 1000)
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	for n := 0; n < 100<<20; n += len(text) {
		if _, err = f.WriteString(text); err != nil {
			b.Fatal(err)
		}
	}
	if err = f.Close(); err != nil {
		b.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close() //nolint:errcheck // nothing is kept
	for name, read := range map[string]func(context.Context) error{
		"podctl": func(ctx context.Context) error { return Log{path}.Read(ctx, &Options{}, nil, null, null) },
		"library": func(ctx context.Context) error {
			return crilogs.ReadLogs(ctx, path, "", &crilogs.LogOptions{}, nil, null, null)
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := read(klog.NewContext(b.Context(), logr.Discard())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
