// Command demo is the workload of podctl's examples and tests: one static program that needs no shell, with selectable
// health, exit code, signals and output.
//
//	demo serve   HTTP and TCP health that can be switched
//	demo exit    end with a code, after a while
//	demo sleep   run until a signal
//	demo print   show environment, arguments, files and names
//	demo write   write a file
//	demo read    show files; fails when one is missing
//	demo check   succeed or fail like a probe
//	demo log     write lines
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// exitError ends the program with a code.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := run(ctx, os.Args[1:])
	if code := exitError(0); errors.As(err, &code) {
		os.Exit(int(code))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		args = []string{"serve"}
	}
	verbs := map[string]func(context.Context, []string) error{
		"serve": serve, "exit": exit, "sleep": sleep, "print": printAll,
		"write": write, "read": read, "check": check, "log": writeLines,
		"cat": cat, "get": get,
	}
	verb, ok := verbs[args[0]]
	if !ok {
		return fmt.Errorf("unknown verb %q", args[0])
	}
	return verb(ctx, args[1:])
}
