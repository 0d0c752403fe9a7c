package e2e

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/commands/program"
	"github.com/podctl/podctl/runtime/cluster/node"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// playEnv makes the test binary run as podctl, for tests that kill it.
const playEnv = "PODCTL_TEST_PLAY"

func TestMain(m *testing.M) {
	runtimetest.BeTraced()
	if os.Getenv(playEnv) != "" {
		ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		os.Exit(play(ctx, commands.System(), os.Args[1:])) //nolint:forbidigo // it is a main function
	}
	runtimetest.Main(m)
}

// play runs a command as podctl, or as podctl-node if it has a kubeconfig.
func play(ctx context.Context, env *commands.Env, args []string) int {
	if slices.Contains(args, "--kubeconfig") {
		return program.NodeMain(ctx, env, args, node.Program())
	}
	return commands.Main(ctx, env, args)
}
