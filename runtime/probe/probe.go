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

// Verdict is the result of one run of a probe.
type Verdict string

// The verdicts of one run.
const (
	Success Verdict = "Success"
	// Warning counts as success: a redirect was not followed.
	Warning Verdict = "Warning"
	Failure Verdict = "Failure"
	// Unknown means that the probe itself could not run. It counts neither as success nor as failure.
	Unknown Verdict = "Unknown"
)

// maxAttempts is how often a probe that cannot run is tried. A failure is a result and is not retried (kubelet:
// maxProbeRetries).
const maxAttempts = 3

// Target is the container to probe.
type Target struct {
	ContainerID string
	Container   *v1.Container
	// PodIP is the pod's address. It is empty if the pod has none. A handler without a host then fails, because a
	// request without a host would go to the node.
	PodIP string
}

// errNoAddress is the reason why a pod cannot be reached.
var errNoAddress = errors.New("the pod has no address: its sandbox is not ready, or has no network")

// host returns the host for a handler's request: the named host, or the pod.
func (t Target) host(named string) (string, error) {
	host := cmp.Or(named, t.PodIP)
	if host == "" {
		return "", errNoAddress
	}
	return host, nil
}

// Result is the result of one run.
type Result struct {
	Verdict Verdict
	// Handler describes the request, for example http-get http://10.88.0.7:8080/healthz.
	Handler string
	// Message is the answer on one line and safe to print. It never contains the body of a response.
	Message string
	// Output is Message without podctl's additions, as in a kubelet's event.
	Output   string
	Latency  time.Duration
	Attempts int
}

// Judged converts the verdict for the planner.
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

// ExecResult is the output and exit code of a command.
type ExecResult struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// Runner runs probes.
type Runner struct {
	// Exec is used for probes of type exec.
	Exec ExecFunc
	// Clean removes secret values from an answer, before it is cut to one short line. If nil, the answer is not
	// changed.
	Clean func(string) string
}

// check is one way to run a probe.
type check struct {
	handler string
	run     func(ctx context.Context, timeout time.Duration) answer
}

// Run runs a probe once, with the probe's own timeout for each attempt.
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

func (r Runner) handler(p *v1.Probe, t Target) (check, error) {
	switch {
	case p.Exec != nil:
		return r.execCheck(p.Exec, t), nil
	case p.HTTPGet != nil:
		return httpCheck(p.HTTPGet, t)
	case p.TCPSocket != nil:
		return tcpCheck(p.TCPSocket, t)
	case p.GRPC != nil:
		return grpcCheck(p.GRPC, t), nil
	}
	return check{}, fmt.Errorf("the probe has no handler")
}

// unreachable returns the check for a pod without an address. It fails, as a request to an unused address does.
func unreachable(handler string, err error) check {
	return check{handler: handler, run: func(context.Context, time.Duration) answer {
		return answer{verdict: kprobe.Failure, output: err.Error()}
	}}
}

// answer is the result of a check.
type answer struct {
	verdict kprobe.Result
	// output is the answer. note is podctl's text before it.
	output, note string
	err          error
}

// newAnswer converts the result of one of the kubelet's probers.
func newAnswer(verdict kprobe.Result, output string, err error) answer {
	return answer{verdict: verdict, output: output, err: err}
}

// inTime runs a check, and returns early when the context ends.
func inTime(ctx context.Context, a check, timeout time.Duration) answer {
	got := make(chan answer, 1)
	go func() { got <- a.run(ctx, timeout) }()
	select {
	case one := <-got:
		return one
	case <-ctx.Done():
		return answer{verdict: kprobe.Unknown, err: context.Cause(ctx)}
	}
}

// judge sets the verdict and the texts from an answer. Only the event shows the body of a redirect.
func (r Runner) judge(result *Result, a answer) {
	switch {
	case a.err != nil:
		result.Verdict, result.Output = Unknown, r.oneLine(a.err.Error())
	case a.verdict == kprobe.Success:
		result.Verdict, result.Output = Success, ""
	case a.verdict == kprobe.Warning:
		result.Verdict, result.Output = Warning, r.oneLine(a.output)
		result.Message = "redirected to another host"
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

// messageMax is the maximum length of a message, in bytes.
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
