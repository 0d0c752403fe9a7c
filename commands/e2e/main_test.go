package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// playEnv makes the test binary play podctl, for tests that kill it.
const playEnv = "PODCTL_TEST_PLAY"

func TestMain(m *testing.M) {
	runtimetest.BeTraced()
	if os.Getenv(playEnv) != "" {
		os.Exit(commands.Main(context.Background(), commands.System(), os.Args[1:])) //nolint:forbidigo // it is a main function
	}
	runtimetest.Main(m)
}
