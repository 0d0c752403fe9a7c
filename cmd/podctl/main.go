// Command podctl is the kubelet's pod sync as a command.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/podctl/podctl/cmd/podctl/early"
	_ "github.com/podctl/podctl/cmd/podctl/early/podtypes"
	"github.com/podctl/podctl/commands"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(commands.Main(ctx, commands.System(), os.Args[1:]))
}
