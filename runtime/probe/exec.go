package probe

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	kprobe "k8s.io/kubernetes/pkg/probe"

	"github.com/podctl/podctl/podspec/expand"
)

// outputMax is how much of a command's output is read, in bytes (kubelet: exec.maxReadLength).
const outputMax = 10 << 10

// execCheck runs a command in the container. It succeeds if the command exits with zero. It fails if the command
// exceeds the timeout.
func (r Runner) execCheck(action *v1.ExecAction, t Target) check {
	command, wrong := expand.StaticCommand(t.Container, action.Command)
	return check{
		handler: fmt.Sprintf("exec %v", command),
		run: func(ctx context.Context, timeout time.Duration) answer {
			if wrong != nil {
				return answer{verdict: kprobe.Unknown, err: fmt.Errorf("exec.%w", wrong)}
			}
			got, err := r.Exec(ctx, t.ContainerID, command, timeout)
			if status.Code(err) == codes.DeadlineExceeded {
				text := fmt.Sprintf("command timed out: %q timed out after %s", strings.Join(command, " "), timeout)
				return answer{verdict: kprobe.Failure, output: text}
			}
			if err != nil {
				return answer{verdict: kprobe.Unknown, err: err}
			}
			if got.ExitCode == 0 {
				return answer{verdict: kprobe.Success}
			}
			output := string(append(got.Stdout, got.Stderr...))
			return answer{
				verdict: kprobe.Failure,
				output:  output[:min(len(output), outputMax)],
				note:    fmt.Sprintf("exit code %d: ", got.ExitCode),
			}
		},
	}
}
