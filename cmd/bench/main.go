// Command bench times podctl beside the bare calls to the container runtime that any
// tool would have to make (the floor), and beside other tools where they are installed,
// in one run and in turn. `make bench` calls it.
//
// In come the programs to be timed and the archives of the images; out go tables, as text,
// JSON and a page of the documentation. It knows podctl only as a program: it is a module of
// its own and imports nothing of the product.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	podctl, before, containerd, images string
	podman, crictl, kubelet            string
	only                               string
	rounds, running                    int
	agent                              bool
	pods                               []int
	window                             time.Duration
	json, markdown                     string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, parse()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

func parse() *options {
	o := &options{pods: []int{1, 10, 50, 110}}
	flag.StringVar(&o.podctl, "podctl", "bin/podctl", "the podctl to be timed")
	flag.StringVar(&o.before, "before", "", "another podctl to compare it with, for example that of the commit before; left out unless it is named")
	flag.StringVar(&o.containerd, "containerd", "containerd", "the containerd of the private node")
	flag.StringVar(&o.images, "images", "bin", "directory of pause.tar and demo.tar")
	flag.StringVar(&o.podman, "podman", "podman", "podman and its global flags; left out when it is not installed")
	flag.StringVar(&o.crictl, "crictl", "crictl", "crictl; left out when it is not installed")
	flag.StringVar(&o.kubelet, "kubelet", "", "a kubelet to be measured too; it manages cgroups and mounts of this machine, so it is left out unless it is named")
	flag.StringVar(&o.only, "only", "", "regular expression of the workloads to run")
	flag.IntVar(&o.rounds, "rounds", 15, "how often each contender of a workload runs")
	flag.IntVar(&o.running, "running", 400, "how many pods may run at once in the measurements of scale; those beyond have finished")
	flag.BoolVar(&o.agent, "agent", false, "measure podctl's agent, beside the kubelet if one is named, and nothing else")
	flag.Func("pods", "with -agent: numbers of pods at which each is measured idle, as 1,10,50,110", func(list string) (err error) {
		o.pods, err = numbers(list)
		return err
	})
	flag.DurationVar(&o.window, "window", time.Minute, "with -agent: how long they are measured idle")
	flag.StringVar(&o.json, "json", "", "file for all figures")
	flag.StringVar(&o.markdown, "markdown", "", "file for the tables, as a page of the documentation")
	flag.Parse()
	o.running = max(o.running, 1) // The pod that is planned runs.
	return o
}

func run(ctx context.Context, o *options) (err error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	if o.agent {
		return runKeepers(ctx, o, only.MatchString)
	}
	n, err := newNode(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close(context.WithoutCancel(ctx))) }()
	report := &Report{Machine: n.machine(ctx), Rounds: o.rounds}
	report.Workloads, err = measureAll(ctx, (&suite{n}).workloads(), o.rounds, only.MatchString)
	if only.MatchString("startup") {
		var failure error
		report.Startup, failure = n.startup(ctx)
		err = errors.Join(err, failure)
	}
	return errors.Join(err, publish(o, report, "make bench", report.page()))
}

// measureAll measures the workloads whose names are wanted. What was measured is not lost if one fails.
func measureAll(ctx context.Context, all []*workload, rounds int, only func(string) bool) (results []Result, err error) {
	for _, w := range all {
		if !only(w.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, "bench:", w.name)
		if result, failure := w.measure(ctx, rounds); failure == nil {
			results = append(results, *result)
		} else {
			err = errors.Join(err, fmt.Errorf("%s: %w", w.name, failure))
		}
	}
	return results, err
}

// numbers reads a list such as 1,10,50, in which each is larger than the one before.
func numbers(list string) (found []int, err error) {
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		if n < 1 || len(found) > 0 && n <= found[len(found)-1] {
			return nil, fmt.Errorf("%d does not follow in a list of growing numbers", n)
		}
		found = append(found, n)
	}
	return found, nil
}
