// Command podctl-node is podctl's agent with the code that makes it a node of a cluster. The process of `podctl agent
// --kubeconfig FILE` becomes this program. It is a program of its own so that no other command pays for the clients of
// an API server.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/podctl/podctl/cmd/podctl-node/early"
	_ "github.com/podctl/podctl/cmd/podctl/early/podtypes"
	"github.com/podctl/podctl/commands/program"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/cluster/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(program.NodeMain(ctx, terminal.System(), os.Args[1:], node.Program()))
}
