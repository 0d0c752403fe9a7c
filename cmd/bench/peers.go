package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
)

// peersStart returns the other tools that can start a pod.
func (n *node) peersStart(f *floor, manifest string) (peers []contender) {
	if n.crictl != nil {
		peers = append(peers, contender{name: "crictl by hand", before: f.prepare, run: f.byCrictl, after: f.discard})
	}
	if n.podman != nil {
		peers = append(peers, contender{
			name:  "podman kube play",
			run:   n.timedPodman("kube", "play", manifest),
			after: n.doPodman("kube", "down", manifest),
		})
	}
	return peers
}

// peersDelete returns the other tools that can remove a pod.
func (n *node) peersDelete(manifest string) []contender {
	if n.podman == nil {
		return nil
	}
	return []contender{{
		name:   "podman kube down",
		before: n.doPodman("kube", "play", manifest),
		run:    n.timedPodman("kube", "down", manifest),
	}}
}

// tryPodman loads the image into podman, and checks whether podman can run a pod. It needs capabilities that the
// container of a build may not have.
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

func (n *node) doPodman(args ...string) step {
	return func(ctx context.Context) error { _, err := n.runPodman(ctx, args...); return err }
}

func (n *node) runPodman(ctx context.Context, args ...string) (sample, error) {
	s, _, err := timed(ctx, n.podman[0], slices.Concat(n.podman[1:], args)...)
	return s, err
}

// byCrictl creates the pod like a user of crictl: one call after the other, with existing files.
func (f *floor) byCrictl(ctx context.Context) (sum sample, err error) {
	// crictl adds its time to the sum, and returns the id that it prints.
	crictl := func(args ...string) string {
		if err != nil {
			return ""
		}
		args = slices.Concat(f.crictl[1:], []string{"--runtime-endpoint", "unix://" + f.socket()}, args)
		s, id, failed := timed(ctx, f.crictl[0], args...)
		sum.wall, sum.cpu, err = sum.wall+s.wall, sum.cpu+s.cpu, failed
		return strings.TrimSpace(id)
	}
	sandbox, err := f.writeMessage("sandbox.json", f.sandbox)
	f.sandboxID = crictl("runp", sandbox)
	for _, c := range f.containers {
		file, failed := f.writeMessage("container.json", c)
		err = errors.Join(err, failed)
		crictl("start", crictl("create", "--no-pull", f.sandboxID, file, sandbox))
	}
	return sum, err
}

func (n *node) writeMessage(name string, message proto.Message) (string, error) {
	text, err := json.Marshal(message)
	if err != nil {
		return "", err
	}
	return n.write(name, string(text))
}
