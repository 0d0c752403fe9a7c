package e2e

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// playEnv makes the test binary run as podctl, for tests that kill it.
const playEnv = "PODCTL_TEST_PLAY"

func TestMain(m *testing.M) {
	runtimetest.BeTraced()
	if os.Getenv(playEnv) != "" {
		ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		os.Exit(commands.Main(ctx, commands.System(), os.Args[1:])) //nolint:forbidigo // it is a main function
	}
	runtimetest.Main(m)
}
