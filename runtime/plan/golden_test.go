package plan

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/podctl/podctl/podspec"
)

// goldenRow is a recorded situation and what a kubelet decided in it.
type goldenRow struct {
	ID        string   `json:"id"`
	Group     string   `json:"group"`
	Tags      []string `json:"tags"`
	Now       int64    `json:"now"`
	Pod       *v1.Pod  `json:"pod"`
	Defaulted bool     `json:"podDefaulted"`
	CRI       struct {
		Sandboxes  []goldenSandbox   `json:"sandboxes"`
		Containers []goldenContainer `json:"containers"`
	} `json:"cri"`
	Probes       map[ProbeType]map[string]ProbeResult `json:"probes"`
	Actuated     *Actuated                            `json:"actuated"`
	RestartAll   bool                                 `json:"restartAllContainers"`
	KubeletPhase v1.PodPhase                          `json:"kubeletPhase"`
	Expect       goldenActions                        `json:"expect"`
}

type goldenSandbox struct {
	ID        string  `json:"id"`
	Attempt   uint32  `json:"attempt"`
	State     string  `json:"state"`
	CreatedAt int64   `json:"createdAt"`
	Network   string  `json:"network"`
	IP        *string `json:"ip"`
}

type goldenContainer struct {
	ID           string `json:"id"`
	SandboxID    string `json:"sandboxId"`
	Name         string `json:"name"`
	Attempt      uint32 `json:"attempt"`
	RestartCount uint32 `json:"restartCount"`
	State        string `json:"state"`
	CreatedAt    int64  `json:"createdAt"`
	StartedAt    int64  `json:"startedAt"`
	FinishedAt   int64  `json:"finishedAt"`
	ExitCode     int32  `json:"exitCode"`
	Reason       string `json:"reason"`
	Image        string `json:"image"`
	Hash         string `json:"hash"`
}

type goldenActions struct {
	KillPod         bool     `json:"killPod"`
	CreateSandbox   bool     `json:"createSandbox"`
	SandboxID       string   `json:"sandboxId"`
	Attempt         uint32   `json:"attempt"`
	InitStarts      []string `json:"nextInitContainersToStart"`
	Starts          []string `json:"containersToStart"`
	EphemeralStarts []string `json:"ephemeralContainersToStart"`
	Kills           []struct {
		ID string `json:"id"`
	} `json:"containersToKill"`
}

// observed puts a recorded situation into the planner's words.
func (r *goldenRow) observed() Observed {
	o := Observed{Journal: Journal{Probes: map[string]map[ProbeType]ProbeRecord{}, Actuated: r.Actuated, Backoffs: map[string]Backoff{}}}
	for _, s := range r.CRI.Sandboxes {
		out := Sandbox{
			ID: s.ID, Attempt: s.Attempt, State: SandboxState(s.State), CreatedAt: time.Unix(0, s.CreatedAt),
			HostNetwork: s.Network == "NODE", NoNetwork: s.IP == nil,
		}
		if s.IP != nil && *s.IP != "" {
			out.IPs = []string{*s.IP}
		}
		o.Sandboxes = append(o.Sandboxes, out)
	}
	for _, c := range r.CRI.Containers {
		hash := ""
		if n, err := strconv.ParseUint(c.Hash, 16, 64); err == nil && n != 0 {
			hash = strconv.FormatUint(n, 16)
		}
		o.Containers = append(o.Containers, Container{
			ID: c.ID, SandboxID: c.SandboxID, Name: c.Name, Attempt: c.Attempt, RestartCount: c.RestartCount,
			State: ContainerState(c.State), CreatedAt: time.Unix(0, c.CreatedAt), StartedAt: time.Unix(0, c.StartedAt),
			FinishedAt: time.Unix(0, c.FinishedAt), ExitCode: c.ExitCode, Reason: c.Reason, Image: c.Image, Hash: hash,
		})
	}
	for t, results := range r.Probes {
		for id, result := range results {
			if o.Journal.Probes[id] == nil {
				o.Journal.Probes[id] = map[ProbeType]ProbeRecord{}
			}
			o.Journal.Probes[id][t] = ProbeRecord{Result: result}
		}
	}
	return o
}

func names(starts []start) []string {
	list := []string{}
	for _, s := range starts {
		list = append(list, s.ref.Name)
	}
	return list
}

// decided is what podctl decides in the situation, in the kubelet's words.
func (r *goldenRow) decided() goldenActions {
	in := &Input{Pod: RefOf(r.Pod), Desired: &podspec.Desired{Pod: r.Pod}, Observed: r.observed(), Now: time.Unix(0, r.Now)}
	v := newView(in)
	v.phase = v1.PodRunning
	d := decide(v)
	got := goldenActions{
		KillPod: d.killPod, CreateSandbox: d.createSandbox, SandboxID: d.sandboxID, Attempt: d.attempt,
		InitStarts: names(d.initStart), Starts: names(d.regularStart), EphemeralStarts: names(d.ephemeralStart),
	}
	for _, k := range d.kills {
		got.Kills = append(got.Kills, struct {
			ID string `json:"id"`
		}{k.container.ID})
	}
	return got
}

func (a *goldenActions) equal(b *goldenActions) bool {
	ids := func(x *goldenActions) []string {
		var list []string
		for _, k := range x.Kills {
			list = append(list, k.ID)
		}
		slices.Sort(list)
		return list
	}
	return a.KillPod == b.KillPod && a.CreateSandbox == b.CreateSandbox && a.SandboxID == b.SandboxID && a.Attempt == b.Attempt &&
		slices.Equal(a.InitStarts, b.InitStarts) && slices.Equal(a.Starts, b.Starts) &&
		slices.Equal(a.EphemeralStarts, b.EphemeralStarts) && slices.Equal(ids(a), ids(b))
}

func readGolden(t *testing.T, file string, visit func(line []byte)) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		visit(lines.Bytes())
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
}

// differing reads the rows in which podctl decides otherwise, each with the rule
// that makes it so.
func differing(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "actions.differ.txt"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if id, rule, ok := strings.Cut(strings.TrimSpace(line), " "); ok && id != "#" {
			rows[id] = rule
		}
	}
	return rows
}

func TestDecisionsAgreeWithTheKubelets(t *testing.T) {
	rules := differing(t)
	counts := map[string]int{}
	readGolden(t, "actions.train.jsonl.gz", func(line []byte) {
		var r goldenRow
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Group == "deleting" {
			return
		}
		corev1.SetObjectDefaults_Pod(r.Pod)
		got := r.decided()
		rule, listed := rules[r.ID]
		switch agrees := got.equal(&r.Expect); {
		case agrees && listed:
			t.Errorf("%s: agrees with the kubelet and is listed as differing (%s)", r.ID, rule)
		case !agrees && !listed:
			t.Errorf("%s (%s %v):\nkubelet %+v\npodctl  %+v", r.ID, r.Group, r.Tags, r.Expect, got)
		case agrees:
			counts["agree"]++
		default:
			counts[rule]++
		}
	})
	if counts["agree"] < 3000 {
		t.Errorf("only %d rows were compared", counts["agree"])
	}
	t.Logf("rows: %v", counts)
}
