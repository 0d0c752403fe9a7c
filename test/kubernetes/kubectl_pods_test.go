package kubernetes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testRun checks how a pod and its events are shown, and edits of its metadata.
func (k *kubectl) testRun(t *testing.T) {
	k.start(t, "web", 2, "serve")
	wide := strings.Fields(strings.Split(k.must(t, "get", "pods", "-o", "wide"), "\n")[1])
	ip := k.get(t, "web", "{.status.podIP}")
	if !slices.Equal(slices.Delete(wide, 4, 5), []string{"web", "1/1", "Running", "0", ip, nodeName, "<none>", "<none>"}) {
		t.Errorf("%q", wide)
	}
	k.prints(t, "pod/web labeled\n", "label", "pod", "web", "tier=front")
	k.prints(t, "pod/web annotated\n", "annotate", "pod", "web", "note=1")
	k.prints(t, "pod/web\n", "get", "pods", "-l", "tier=front", "-o", "name")
	until(t, func() string {
		reasons := k.must(t, "get", "events", "--field-selector", "involvedObject.name=web", "--sort-by", ".reason",
			"-o", "custom-columns=R:.reason,F:.involvedObject.fieldPath,C:.source.component", "--no-headers")
		var want string
		for _, reason := range []string{"Created", "Pulled", "Started"} {
			want += fmt.Sprintf("%-9s spec.containers{web}   kubelet\n", reason)
		}
		if reasons != want {
			return fmt.Sprintf("events:\n%swant\n%s", reasons, want)
		}
		return ""
	})
	// Neither the label nor the annotation restarts a container.
	if got := k.get(t, "web", "{.metadata.generation} {.status.observedGeneration} {.status.containerStatuses[0].restartCount}"); got != "1 1 0" {
		t.Error(got)
	}
	out := k.mustWith(t, "typed\n", "run", "once", "-i", "--rm", "--restart", "Never", "--image", firstImage,
		"--overrides", overrides(2), "--", "cat")
	if !strings.Contains(out, "typed\n") || !strings.Contains(out, `pod "once" deleted`) {
		t.Error(out)
	}
	k.fails(t, 9, "pod default/failing terminated (Error)", "run", "failing", "--attach", "--rm", "--restart", "Never",
		"--image", firstImage, "--overrides", overrides(2), "--", "exit", "9")
}

// testDescribe checks the descriptions of pods and of the node.
func (k *kubectl) testDescribe(t *testing.T) {
	k.start(t, "web", 2, "serve")
	k.make(t, "large", object{"containers": []object{{
		"name": "main", "image": firstImage, "resources": object{"requests": object{"cpu": "1000"}},
	}}})
	k.await(t, "large", "jsonpath={.status.phase}=Failed")
	expected := map[string][]string{
		"pod/web": {
			`Node: +node/192.0.2.10`, `Start Time: +\w`, `Status: +Running`, `IP: +10\.`, `  web:`,
			`    Container ID: +containerd://[0-9a-f]{64}`, `    Image: +` + firstImage, `    Image ID: +sha256:[0-9a-f]{64}`,
			`    State: +Running`, `      Started: +\w`, `    Ready: +True`, `    Restart Count: +0`,
			`  PodReadyToStartContainers +True`, `  Initialized +True`, `  Ready +True`, `  ContainersReady +True`, `  PodScheduled +True`,
			`QoS Class: +BestEffort`, `  Normal +Started .* kubelet +spec.containers\{web\}: Container started`,
		},
		"pod/large": {
			`Status: +Failed`, `Reason: +OutOfcpu`,
			`Message: +Pod was rejected: Node didn't have enough resource: cpu, requested: 1000000, used: 0, capacity: \d+`,
			`  Warning +OutOfcpu .* kubelet +Node didn't have enough resource: cpu, requested: 1000000, used: 0, capacity: \d+`,
		},
		"node/" + nodeName: {
			`Labels: +beta.kubernetes.io/arch=`, ` +kubernetes.io/hostname=node`, `Taints: +<none>`, `Unschedulable: +false`,
			`  HolderIdentity: +node`, `  MemoryPressure +False .* KubeletHasSufficientMemory +kubelet has sufficient memory available`,
			`  Ready +True .* KubeletReady +kubelet is posting ready status`, `  InternalIP: +192.0.2.10`, `  Hostname: +node`,
			`  pods: +110`, `  Container Runtime Version: +containerd://[0-9.]+`, `  Kubelet Version: +v1\.36\.3`,
			`  default +web +0 \(0%\)`,
		},
	}
	for what, patterns := range expected {
		until(t, func() string { // the events arrive later
			text := k.must(t, "describe", what)
			for _, p := range patterns {
				if !regexp.MustCompile(`(?m)^` + p).MatchString(text) {
					return fmt.Sprintf("%s: no %s in\n%s", what, p, text)
				}
			}
			return ""
		})
	}
	k.fails(t, 1, `container "main" in pod "large" is not available`, "logs", "large")
}

// testImages checks that a container gets its new image by all commands that can change it.
func (k *kubectl) testImages(t *testing.T) {
	k.start(t, "web", 2, "serve")
	t.Setenv("EDITOR", "sed -i s/demo:1/demo:2/")
	for i, change := range [][]string{
		{"set", "image", "pod/web", "web=" + secondImage},
		{"patch", "pod", "web", "-p", `{"spec": {"containers": [{"name": "web", "image": "` + firstImage + `"}]}}`},
		{"edit", "pod", "web"},
	} {
		k.must(t, change...)
		k.await(t, "web", fmt.Sprintf("jsonpath={.status.containerStatuses[0].restartCount}=%d", i+1))
		k.ready(t, "web")
		image := []string{secondImage, firstImage}[i%2]
		want := fmt.Sprintf("%d %d %s", i+2, i+2, image)
		until(t, func() string {
			got := k.get(t, "web", "{.metadata.generation} {.status.observedGeneration} {.status.containerStatuses[0].image}")
			if got != want {
				return fmt.Sprintf("%s, want %s", got, want)
			}
			return ""
		})
		if second := strings.Contains(k.must(t, "exec", "web", "--", "/demo", "print"), "env VERSION=2\n"); second != (image == secondImage) {
			t.Errorf("the container runs with the second image: %t", second)
		}
	}
	k.prints(t, "serving http on :8080\ngot a signal, draining for 0s\n", "logs", "web", "--previous")
	k.must(t, "set", "image", "pod/web", "web=registry.local/podctl/absent:1")
	k.must(t, "wait", "pod/web", "--for", "jsonpath={.metadata.generation}=5")
	until(t, func() string {
		events := k.must(t, "events", "--for", "pod/web")
		if !strings.Contains(events, `Failed to pull image "registry.local/podctl/absent:1"`) {
			return events
		}
		return ""
	})
	k.must(t, "set", "image", "pod/web", "web="+firstImage)
	k.ready(t, "web")
}

// testDelete checks that grace periods of deletions count. The container goes on for an hour after the signal to stop.
func (k *kubectl) testDelete(t *testing.T) {
	const hour = 3600
	serve := []string{"serve", "--drain", "1h"}
	for _, flag := range []string{"--now", "--grace-period=2"} {
		k.start(t, "slow", hour, serve...)
		k.must(t, "delete", "pod", "slow", flag)
		k.fails(t, 1, `pods "slow" not found`, "get", "pod", "slow")
	}
	if k.left != nil { // A kubelet does not shorten a stop that has begun (SyncTerminatingPod).
		k.testShorterPeriod(t, hour, serve)
	}
	// A pod that is gone at once ends with its own period, beside a new pod with the same name.
	k.start(t, "slow", 2, serve...)
	k.must(t, "delete", "pod", "slow", "--grace-period=0", "--force")
	k.start(t, "slow", 2, "serve")
	k.prints(t, "serving http on :8080\n", "logs", "slow")

	// The final status comes before the end of the object.
	watch := startSession(t, k.command(t, "get", "pod", "slow", "--watch", "--output-watch-events", "-o",
		"jsonpath={.type} {.object.status.phase} {.object.status.containerStatuses[0].state.terminated.exitCode}{\"\\n\"}"))
	watch.expect(t, "ADDED Running", 1)
	text := k.must(t, "get", "pod", "slow", "-o", "json")
	k.must(t, "delete", "pod", "slow")
	watch.expect(t, "DELETED Succeeded 0", 1)
	k.mustWith(t, text, "replace", "--force", "-f", "-")
	k.ready(t, "slow")
}

// testShorterPeriod checks that a second deletion shortens the period of a container that is stopping. With force, the
// object is gone at once.
func (k *kubectl) testShorterPeriod(t *testing.T, grace int, serve []string) {
	t.Helper()
	for _, flags := range [][]string{{"--grace-period=1"}, {"--grace-period=0", "--force"}} {
		k.start(t, "slow", grace, serve...)
		k.must(t, "delete", "pod", "slow", "--wait=false")
		until(t, func() string {
			if log := k.must(t, "logs", "slow"); !strings.Contains(log, "got a signal") {
				return "the container has no signal: " + log
			}
			return ""
		})
		k.must(t, append([]string{"delete", "pod", "slow"}, flags...)...)
		until(t, func() string { return k.left(t) })
	}
}
