package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/podctl/podctl/podspec"
)

// desiredDigest identifies what is wanted: the pod with its defaults, and the
// ConfigMaps and Secrets it uses.
func desiredDigest(d *podspec.Desired) string {
	if d == nil {
		return ""
	}
	return digestOf(struct {
		Pod     any
		Objects any
	}{d.Pod, d.WithoutSecrets().Objects})
}

// DesiredDigest identifies a manifest: two manifests with the same digest ask
// for the same pod.
func DesiredDigest(d *podspec.Desired) string { return desiredDigest(d) }

// readContainer is what a decision reads of a container record: everything but
// its times.
type readContainer struct {
	ID, SandboxID, Name, State, Reason, Hash, SpecHash string
	RestartCount                                       uint32
	ExitCode                                           int32
	Probes                                             map[ProbeType]ProbeResult
}

// readSandbox is what a decision reads of a sandbox.
type readSandbox struct {
	ID, State, SpecHash string
	Attempt             uint32
	HostNetwork         bool
	IPs                 []string
}

// observedDigest identifies what was read to make a plan: ids, states, exit
// codes, hashes, verdicts, delays, the images needed and the resources applied.
// Times, ages and other pods are no part of it, so that only a change of the
// world makes a saved plan stale, and not the mere passing of time.
func observedDigest(v *view) string {
	read := struct {
		Sandboxes  []readSandbox
		Containers []readContainer
		Images     map[string]string
		Volumes    map[string]Volume
		Backoffs   map[string]string
		Actuated   *Actuated
		Reserved   map[string]uint32
		Cgroup     *bool
		Completed  bool
	}{
		Sandboxes:  v.readSandboxes(),
		Containers: v.readContainers(),
		Images:     map[string]string{},
		Volumes:    v.obs.Volumes,
		Backoffs:   map[string]string{},
		Actuated:   v.obs.Journal.Actuated,
		Reserved:   v.obs.Journal.Reserved,
		Cgroup:     v.obs.CgroupExists,
		Completed:  v.obs.Journal.Completion != nil,
	}
	for image, state := range v.obs.Images {
		read.Images[image] = state.ID
	}
	for name, b := range v.obs.Journal.Backoffs {
		read.Backoffs[name] = b.Duration.String()
	}
	return digestOf(read)
}

func (v *view) readSandboxes() []readSandbox {
	read := make([]readSandbox, 0, len(v.sandboxes))
	for i := range v.sandboxes {
		s := &v.sandboxes[i]
		read = append(read, readSandbox{
			ID: s.ID, State: string(s.State), SpecHash: s.SpecHash, Attempt: s.Attempt,
			HostNetwork: s.HostNetwork, IPs: s.IPs,
		})
	}
	slices.SortFunc(read, func(a, b readSandbox) int { return cmp.Compare(a.ID, b.ID) })
	return read
}

func (v *view) readContainers() []readContainer {
	read := make([]readContainer, 0, len(v.containers))
	for _, c := range v.containers {
		probes := map[ProbeType]ProbeResult{}
		for t, record := range v.obs.Journal.Probes[c.ID] {
			probes[t] = record.Result
		}
		read = append(read, readContainer{
			ID: c.ID, SandboxID: c.SandboxID, Name: c.Name, State: string(c.State), Reason: c.Reason,
			Hash: c.Hash, SpecHash: c.SpecHash, RestartCount: c.RestartCount, ExitCode: c.ExitCode, Probes: probes,
		})
	}
	slices.SortFunc(read, func(a, b readContainer) int { return cmp.Compare(a.ID, b.ID) })
	return read
}

func digestOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
