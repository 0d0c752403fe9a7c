package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	v1 "k8s.io/api/core/v1"
	kprobe "k8s.io/kubernetes/pkg/probe"

	"github.com/podctl/podctl/runtime/model"
)

// Verdict is what one run of a probe came to.
type Verdict string

// The verdicts of one run.
const (
	Success Verdict = "Success"
	// Warning counts as success: a redirect that was not followed.
	Warning Verdict = "Warning"
	Failure Verdict = "Failure"
	// Unknown means that the probe itself could not be asked. It counts neither
	// way.
	Unknown Verdict = "Unknown"
)

// maxAttempts is how often a probe that could not be asked is tried; a failure
// is an answer and is not tried again (kubelet: maxProbeRetries).
const maxAttempts = 3

// Target is the container that is asked.
type Target struct {
	ContainerID string
	Container   *v1.Container
	// PodIP is the pod's address; empty when it has none. A handler that names no host of
	// its own has nobody to ask then: without a host a request would go to the node.
	PodIP string
}

// errNoAddress is why a pod cannot be reached.
var errNoAddress = errors.New("the pod has no address: its sandbox is not ready, or has no network")

// host is where a handler's request goes: to the host that it names, or to the pod.
func (t Target) host(named string) (string, error) {
	host := cmp.Or(named, t.PodIP)
	if host == "" {
		return "", errNoAddress
	}
	return host, nil
}

// Result is the answer of one run.
type Result struct {
	Verdict Verdict
	// Handler says what was asked, for example http-get
	// http://10.88.0.7:8080/healthz.
	Handler string
	// Message is what was said, on one line and safe to print. It never holds a
	// response's body.
	Message string
	// Output is the same without what podctl adds to it: what a kubelet's event says.
	Output   string
	Latency  time.Duration
	Attempts int
}

// Judged is the answer in the planner's words.
func (r *Result) Judged() model.ProbeResult {
	switch r.Verdict {
	case Success, Warning:
		return model.ProbeSuccess
	case Failure:
		return model.ProbeFailure
	case Unknown:
	}
	return model.ProbeUnknown
}

// ExecFunc runs a command in a container, as CRI ExecSync does.
type ExecFunc func(ctx context.Context, containerID string, command []string, timeout time.Duration) (ExecResult, error)

// ExecResult is what a command printed and how it ended.
type ExecResult struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// Runner asks probes.
type Runner struct {
	// Exec is used for probes of type exec.
	Exec ExecFunc
	// Clean takes out of an answer what nobody shall see, before it is cut to one short
	// line; nil leaves it as it is.
	Clean func(string) string
}

// ask is one way to ask a probe.
type ask struct {
	handler string
	run     func(ctx context.Context, timeout time.Duration) answer
}

// Run asks a probe once. The time it may take is the probe's own timeout.
func (r Runner) Run(ctx context.Context, p *v1.Probe, t Target) Result {
	a, err := r.handler(p, t)
	if err != nil {
		text := r.oneLine(err.Error())
		return Result{Verdict: Unknown, Handler: a.handler, Message: text, Output: text}
	}
	timeout := time.Duration(p.TimeoutSeconds) * time.Second
	result := Result{Handler: a.handler}
	began := time.Now()
	for result.Attempts < maxAttempts && ctx.Err() == nil {
		result.Attempts++
		one := inTime(ctx, a, timeout)
		r.judge(&result, one)
		if one.err == nil {
			break
		}
	}
	result.Latency = time.Since(began)
	if ctx.Err() != nil {
		result.Verdict, result.Message, result.Output = Unknown, "interrupted", "interrupted"
	}
	return result
}

func (r Runner) handler(p *v1.Probe, t Target) (ask, error) {
	switch {
	case p.Exec != nil:
		return r.execAsk(p.Exec, t), nil
	case p.HTTPGet != nil:
		return httpAsk(p.HTTPGet, t)
	case p.TCPSocket != nil:
		return tcpAsk(p.TCPSocket, t)
	case p.GRPC != nil:
		return grpcAsk(p.GRPC, t), nil
	}
	return ask{}, fmt.Errorf("the probe has no handler")
}

// unreachable is the probe of a pod that has no address: it fails, as a request to an address
// that nobody has any more does.
func unreachable(handler string, err error) ask {
	return ask{handler: handler, run: func(context.Context, time.Duration) answer {
		return answer{verdict: kprobe.Failure, output: err.Error()}
	}}
}

// answer is what a way of asking returned.
type answer struct {
	verdict kprobe.Result
	// output is what was said, note what podctl tells before it.
	output, note string
	err          error
}

// answered is what one of the kubelet's probers returned.
func answered(verdict kprobe.Result, output string, err error) answer {
	return answer{verdict: verdict, output: output, err: err}
}

// inTime asks, and gives up when the caller does.
func inTime(ctx context.Context, a ask, timeout time.Duration) answer {
	got := make(chan answer, 1)
	go func() { got <- a.run(ctx, timeout) }()
	select {
	case one := <-got:
		return one
	case <-ctx.Done():
		return answer{verdict: kprobe.Unknown, err: context.Cause(ctx)}
	}
}

// judge says what an answer means. The body of a redirect, which a kubelet tells, is not shown.
func (r Runner) judge(result *Result, a answer) {
	switch {
	case a.err != nil:
		result.Verdict, result.Output = Unknown, r.oneLine(a.err.Error())
	case a.verdict == kprobe.Success:
		result.Verdict, result.Output = Success, ""
	case a.verdict == kprobe.Warning:
		result.Verdict, result.Output, result.Message = Warning, "Probe terminated redirects", "redirected to another host"
		return
	default:
		result.Verdict, result.Output = Failure, r.oneLine(a.output)
	}
	result.Message = result.Output
	if a.note != "" {
		result.Message = r.oneLine(a.note + a.output)
	}
}

func (r Runner) oneLine(text string) string {
	if r.Clean != nil {
		text = r.Clean(text)
	}
	return oneLine(text)
}

// messageMax is the longest message that is passed on, in bytes.
const messageMax = 512

// oneLine makes a text safe for a terminal and for one line of a table.
func oneLine(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	clean = strings.Join(strings.Fields(clean), " ")
	if len(clean) > messageMax {
		return strings.ToValidUTF8(clean[:messageMax], "") + "…"
	}
	return clean
}
