package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/podctl/podctl/runtime/runtimetest"
)

// trials returns the number of trials from PODCTL_TRIALS, with few as the default. The seed is from PODCTL_SEED.
func trials(few int) (count int, seed uint64) {
	count, err := strconv.Atoi(os.Getenv("PODCTL_TRIALS"))
	if err != nil {
		count = few
	}
	seed, err = strconv.ParseUint(os.Getenv("PODCTL_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	return count, seed
}

// randomFault returns a fault of one of the next calls.
func randomFault(r *rand.Rand, die func()) runtimetest.Disturbance {
	all := []runtimetest.Disturbance{
		{Fail: codes.Unavailable},
		{Fail: codes.DeadlineExceeded},
		{Fail: codes.Internal},
		{Fail: codes.ResourceExhausted},
		{Fail: codes.Unknown},
		{Lose: codes.Unavailable},
		{Lose: codes.Internal},
		{Delay: time.Hour},
		{Hang: true},
		{Delay: 100 * time.Millisecond},
		{Kill: die},
		{KillAfter: die},
	}
	methods := []string{
		"", "RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer",
		"StopPodSandbox", "RemovePodSandbox",
		"ExecSync", "PodSandboxStatus", "ContainerStatus", "ListContainers", "ImageStatus",
	}
	d := all[r.IntN(len(all))]
	d.Method, d.Nth = methods[r.IntN(len(methods))], 1+r.IntN(3)
	if d.Method == "" {
		d.Nth = 1 + r.IntN(40)
	}
	return d
}

func faultText(d *runtimetest.Disturbance) string {
	return fmt.Sprintf("fault %s %d: fail %v lose %v delay %v hang %t kill %t after %t", d.Method, d.Nth, d.Fail,
		d.Lose, d.Delay, d.Hang, d.Kill != nil, d.KillAfter != nil)
}
