package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"
)

// peersStart are the other tools that can start a pod.
func (n *node) peersStart(f *floor, manifest string) []contender {
	var peers []contender
	if n.crictl != nil {
		peers = append(peers, f.byCrictl())
	}
	if n.podman != nil {
		peers = append(peers, contender{name: "podman kube play", run: n.timedPodman("kube", "play", manifest), after: n.doPodman("kube", "down", manifest)})
	}
	return peers
}

// peersDelete are the other tools that can take a pod down.
func (n *node) peersDelete(manifest string) []contender {
	if n.podman == nil {
		return nil
	}
	return []contender{{name: "podman kube down", before: n.doPodman("kube", "play", manifest), run: n.timedPodman("kube", "down", manifest)}}
}

// tryPodman gives podman the image, and sees that it can run a pod here at all: it wants
// capabilities that the container of a build may lack.
func (n *node) tryPodman(ctx context.Context) error {
	if n.podman == nil {
		return nil
	}
	manifest, err := n.write("try.yaml", shape{containers: 1}.manifest("podctl-bench-try"))
	if err != nil {
		return err
	}
	if _, err = n.runPodman(ctx, "load", "-q", "-i", filepath.Join(n.o.images, "demo.tar")); err != nil {
		return err
	}
	_, err = n.runPodman(ctx, "kube", "play", manifest)
	return errors.Join(err, n.doPodman("kube", "down", manifest)(ctx))
}

func (n *node) timedPodman(args ...string) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) { return n.runPodman(ctx, args...) }
}

func (n *node) doPodman(args ...string) func(context.Context) error {
	return func(ctx context.Context) error { _, err := n.runPodman(ctx, args...); return err }
}

func (n *node) runPodman(ctx context.Context, args ...string) (sample, error) {
	return timed(ctx, n.podman[0], append(n.podman[1:len(n.podman):len(n.podman)], args...)...)
}

// byCrictl makes the pod as a user of crictl does: one call after the other, with files
// that somebody has written before.
func (f *floor) byCrictl() contender {
	return contender{name: "crictl by hand", before: f.prepare, after: f.discard, run: func(ctx context.Context) (sample, error) {
		sandbox, err := f.n.writeMessage("sandbox.json", f.sandbox)
		if err != nil {
			return sample{}, err
		}
		sum, id, err := f.n.timedCrictl(ctx, "runp", sandbox)
		f.sandboxID = id
		for i := 0; i < len(f.containers) && err == nil; i++ {
			var create, start sample
			var file string
			if file, err = f.n.writeMessage("container.json", f.containers[i]); err != nil {
				break
			}
			if create, id, err = f.n.timedCrictl(ctx, "create", "--no-pull", f.sandboxID, file, sandbox); err != nil {
				break
			}
			start, _, err = f.n.timedCrictl(ctx, "start", id)
			sum.wall, sum.cpu = sum.wall+create.wall+start.wall, sum.cpu+create.cpu+start.cpu
		}
		return sum, err
	}}
}

func (n *node) writeMessage(name string, message proto.Message) (string, error) {
	text, err := json.Marshal(message)
	if err != nil {
		return "", err
	}
	return n.write(name, string(text))
}

// timedCrictl runs crictl, whose answer is an id.
func (n *node) timedCrictl(ctx context.Context, args ...string) (sample, string, error) {
	all := append(n.crictl[1:len(n.crictl):len(n.crictl)], "--runtime-endpoint", "unix://"+n.socket())
	cmd := exec.CommandContext(ctx, n.crictl[0], append(all, args...)...)
	var out []byte
	s, err := clocked(func() (err error) { out, err = cmd.Output(); return err })
	if err != nil {
		return s, "", fmt.Errorf("crictl %s: %w %s", strings.Join(args, " "), err, stderrOf(err))
	}
	s.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return s, strings.TrimSpace(string(out)), nil
}

// output is what a command prints.
func output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w %s", name, strings.Join(args, " "), err, stderrOf(err))
	}
	return string(out), nil
}

func stderrOf(err error) []byte {
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // it comes straight from exec
		return exit.Stderr
	}
	return nil
}
