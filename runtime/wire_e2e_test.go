//go:build e2e

package runtime

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// wireRow is a pod and the messages a kubelet sent for it.
type wireRow struct {
	Name          string            `json:"name"`
	Manifest      *v1.Pod           `json:"manifest"`
	SandboxConfig json.RawMessage   `json:"sandboxConfig"`
	Containers    []json.RawMessage `json:"containers"`
}

// recordedNode is the machine of the recording.
func recordedNode() criconfig.Node {
	return criconfig.Node{
		Name: "node", MemoryBytes: 24 << 30, CPUs: 2, SwapController: true, HugePageSizes: []string{"2MB", "1GB"},
		ResolvConf: []byte("nameserver 10.255.255.53\n"), SeccompRoot: "$ROOT/seccomp",
		Handlers: map[string]criconfig.Handler{"": {UserNamespaces: true}},
	}
}

// TestAppliedPodsSendTheKubeletsMessages applies complete recorded pods, including volumes, and compares every received
// message.
func TestAppliedPodsSendTheKubeletsMessages(t *testing.T) {
	rows := 0
	podspectest.EachRow(t, "criconfig/testdata/cri_config.train.jsonl.gz", func(line []byte) {
		var r wireRow
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		rows++
		t.Run(r.Name, func(t *testing.T) { r.compare(t) })
	})
	if rows < 80 {
		t.Errorf("only %d pods were applied", rows)
	}
}

func (r *wireRow) compare(t *testing.T) {
	t.Helper()
	l := newLab(t, imagesOf(r.Manifest)...)
	l.restart(l.engine.Client, func(s *Settings) { s.Machine = recordedNode })
	d := l.manifest(r.Manifest)
	shareHostPaths(t, d.Pod)
	l.complete(d)
	t.Cleanup(func() {
		if _, err := l.engine.Pods.Delete(context.Background(), model.RefOf(d.Pod), executor.Options{}); err != nil {
			t.Error(err)
		}
	})
	sent := l.server.Created()
	if len(sent.Sandboxes) != 1 {
		t.Fatalf("%d sandboxes were created", len(sent.Sandboxes))
	}
	l.diff(r.SandboxConfig, &runtimeapi.PodSandboxConfig{}, sent.Sandboxes[0])
	for _, want := range r.Containers {
		config := &runtimeapi.ContainerConfig{}
		if err := protojson.Unmarshal(want, config); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(sent.Containers, func(c *runtimeapi.ContainerConfig) bool {
			return c.GetMetadata().GetName() == config.GetMetadata().GetName()
		})
		if i < 0 {
			t.Errorf("container %s was not created", config.GetMetadata().GetName())
			continue
		}
		l.diff(want, config, sent.Containers[i])
	}
	if len(sent.Containers) != len(r.Containers) {
		t.Errorf("%d containers were created, the kubelet created %d", len(sent.Containers), len(r.Containers))
	}
}

func imagesOf(pod *v1.Pod) []string {
	names := podspec.ImageNames(pod)
	for i, name := range names {
		if tagged, err := images.WithTag(name); err == nil {
			names[i] = tagged
		}
	}
	return names
}

// complete makes passes until all containers have been created; init containers succeed after a second.
func (l *lab) complete(d *podspec.Desired) {
	l.t.Helper()
	for _, ref := range podspec.InitContainers(d.Pod) {
		if ref.Type == podspec.Init {
			l.server.Behave(ref.Name, runtimetest.Behaviour{After: time.Second})
		}
	}
	for range 30 {
		p, err := l.pass(d)
		if err != nil {
			l.t.Fatal(err)
		}
		if p.Complete && len(p.Steps) == 0 {
			return
		}
		l.clock.Advance(time.Second)
	}
	l.t.Fatal("the pod does not become complete")
}

// diff compares a message with the recorded one after normalizing both: placeholders for paths and IDs, without
// podctl's own annotations.
func (l *lab) diff(recorded json.RawMessage, want, got proto.Message) {
	l.t.Helper()
	text, err := protojson.Marshal(got)
	if err != nil {
		l.t.Fatal(err)
	}
	same := proto.Clone(want)
	proto.Reset(same)
	for _, one := range []struct {
		text []byte
		into proto.Message
	}{{recorded, want}, {l.normalised(text), same}} {
		if err := protojson.Unmarshal(normalForm(one.text), one.into); err != nil {
			l.t.Fatal(err)
		}
		tidy(one.into)
	}
	if diff := cmp.Diff(want, same, protocmp.Transform(), protocmp.IgnoreEmptyMessages()); diff != "" {
		l.t.Errorf("-kubelet +podctl\n%s", diff)
	}
}

// normalised replaces this lab's paths by the names of the recording.
func (l *lab) normalised(text []byte) []byte {
	replaced := strings.NewReplacer(l.layout.Root, "$ROOT", l.layout.LogRoot, "$LOGS").Replace(string(text))
	return regexp.MustCompile(`(/containers/[^/"]+/)[0-9a-f]{8}"`).ReplaceAll([]byte(replaced), []byte(`${1}$$TERMLOG"`))
}

var (
	imageID = regexp.MustCompile(`"sha256:[^"]+"`)
	podIP   = regexp.MustCompile(`^10\.\d+\.\d+\.\d+$`)
)

func normalForm(text []byte) []byte { return imageID.ReplaceAll(text, []byte(`"IMAGE"`)) }

// tidy removes accidental differences: the order of variables and options, the pod's address, the name that a static
// pod gets, and podctl's own annotations.
func tidy(m proto.Message) {
	switch m := m.(type) {
	case *runtimeapi.PodSandboxConfig:
		slices.Sort(m.GetDnsConfig().GetOptions())
		dropMarks(m.GetAnnotations())
	case *runtimeapi.ContainerConfig:
		dropMarks(m.GetAnnotations())
		for _, e := range m.GetEnvs() {
			e.Value = []byte(strings.ReplaceAll(string(e.GetValue()), "-node1", ""))
			if podIP.Match(e.GetValue()) {
				e.Value = []byte("POD_IP")
			}
		}
		slices.SortFunc(m.GetEnvs(), func(a, b *runtimeapi.KeyValue) int { return strings.Compare(a.GetKey(), b.GetKey()) })
		for _, mount := range m.GetMounts() {
			dropMarks(mount.GetImage().GetAnnotations())
		}
	}
}

func dropMarks(annotations map[string]string) {
	for key := range annotations {
		if strings.HasPrefix(key, "io.podctl.") || strings.HasPrefix(key, "kubernetes.io/config.") {
			delete(annotations, key)
		}
	}
}
