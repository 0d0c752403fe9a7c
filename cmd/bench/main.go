// Command bench compares podctl with the bare calls to the container runtime that any tool must make (the floor), and
// with other installed tools. All are timed in turn in one run. `make bench` calls it.
//
// The input is the programs to time and the archives of the images. The output is a page of tables. The bench is a
// separate module, imports no package of podctl, and uses podctl only as a program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
)

// options are the flags.
type options struct {
	podctl, before, containerd, images string
	podman, kubelet                    string
	only                               *regexp.Regexp
	rounds                             int
	agent                              bool
	docs                               string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, parse()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) // stop has been called
	}
}

func parse() *options {
	o := &options{only: regexp.MustCompile("")}
	flag.StringVar(&o.podctl, "podctl", "bin/podctl", "the podctl to time")
	flag.StringVar(&o.before, "before", "", "another podctl to compare it with, for example that of the commit before")
	flag.StringVar(&o.containerd, "containerd", "containerd", "the containerd of the private node")
	flag.StringVar(&o.images, "images", "bin", "directory of pause.tar and demo.tar")
	flag.StringVar(&o.podman, "podman", "podman", "podman and its global flags; left out if it is not installed")
	flag.StringVar(&o.kubelet, "kubelet", "",
		"with -agent: a kubelet to time, too; it manages cgroups and mounts of this machine, so it has no default")
	flag.Func("only", "regular expression of the workloads to run", func(text string) (err error) {
		o.only, err = regexp.Compile(text)
		return err
	})
	flag.IntVar(&o.rounds, "rounds", 0,
		"how often each contender of a workload runs; 0 means as often as the documentation needs")
	flag.BoolVar(&o.agent, "agent", false, "measure only podctl's agent, beside the kubelet if there is one")
	flag.StringVar(&o.docs, "docs", "", "directory of the documentation, whose pages get the tables and the ratios")
	flag.Parse()
	return o
}

// run measures and writes the pages.
func run(ctx context.Context, o *options) error {
	measure, target := benchCommands, "make bench"
	if o.agent {
		measure, target = benchAgent, "make bench-agent"
	}
	machine, results, err := measure(ctx, o)
	figures, ratios := tables(target, machine, results), summary(results)
	fmt.Print(figures, "\n", ratios)
	if o.docs == "" {
		return err
	}
	return errors.Join(err, save(o.docs, "benchmarks-tables.md", target, figures),
		save(o.docs, "benchmarks.md", target, ratios))
}
