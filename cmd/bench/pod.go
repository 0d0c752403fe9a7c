package main

import (
	"fmt"
	"strings"
)

const (
	// demoImage is the image of all containers, and demoArchive its file.
	demoImage   = "registry.local/podctl/demo:1"
	demoArchive = "demo.tar"
	// regularPrefix is the prefix of the names of regular containers.
	regularPrefix = "c"
	// graceSeconds is the grace period of all pods; the demo program obeys SIGTERM at once.
	graceSeconds = 5
)

// shape is a pod of demo containers.
type shape struct {
	inits, containers int
	// sleep is the duration of each init container. If empty, they end at once.
	sleep string
	// host puts the pod into the machine's network.
	host bool
	// mark is in the environment of the last container. Another mark replaces the container.
	mark string
	// probed probes its only container three times in ten seconds.
	probed bool
}

func (s shape) manifest(name string) string {
	var inits, containers strings.Builder
	after := ""
	if s.sleep != "" {
		after = "-after, " + s.sleep + ", "
	}
	for i := range s.inits {
		fmt.Fprintf(&inits, "\n  - {name: i%d, image: %q, args: [exit, %s\"0\"]}", i, demoImage, after)
	}
	rest := "args: [sleep]"
	if s.probed {
		const probe = "httpGet: {path: /healthz, port: 8080}}"
		rest = `args: [serve, --http, ":8080"]` +
			", livenessProbe: {periodSeconds: 10, " + probe +
			", readinessProbe: {periodSeconds: 5, " + probe
	}
	for i := range s.containers {
		if i == s.containers-1 && s.mark != "" {
			rest += fmt.Sprintf(", env: [{name: MARK, value: %q}]", s.mark)
		}
		fmt.Fprintf(&containers, "\n  - {name: %s%d, image: %q, %s}", regularPrefix, i, demoImage, rest)
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: %d
  hostNetwork: %t
  initContainers:%s
  containers:%s
`, name, graceSeconds, s.host, inits.String(), containers.String())
}

// podNames returns the names of count pods.
func podNames(prefix string, count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%d", prefix, i))
	}
	return names
}
