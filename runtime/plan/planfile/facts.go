package planfile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/podctl/podctl/runtime/model"
)

// The networks that a sandbox can be in.
const (
	podNetwork  = "POD"
	nodeNetwork = "NODE"
)

// facts are the observed values that a decision read, by object: IDs, states, exit codes, hashes, verdicts, delays, the
// needed images and the applied resources. Times, ages and other pods are not included, so that the passing of time
// alone does not make a saved plan stale. Each object's facts are a line of terms, both in files and in digests.
type facts map[string]string

func factsOf(o *model.Observed) facts {
	f := facts{}
	for _, s := range model.SortedSandboxes(o.Sandboxes) {
		f.addSandbox(&s)
	}
	for _, c := range o.NewestFirst() {
		f.addContainer(c, o.Memory.Probes[c.ID])
	}
	f.addDisk(o)
	f.addMemory(&o.Memory)
	for name, n := range o.Reserved {
		f["reserved attempt of "+cmp.Or(name, "sandbox")] = strconv.Itoa(int(n))
	}
	return f
}

func (f facts) addSandbox(s *model.Sandbox) {
	network := podNetwork
	if s.HostNetwork {
		network = nodeNetwork
	}
	f["sandbox "+model.ShortID(s.ID)] = line(
		string(s.State), number(attempt, s.Attempt), network, strings.Join(s.IPs, ","), s.SpecHash, s.ID)
}

func (f facts) addContainer(c *model.Container, probes map[model.ProbeType]model.ProbeRecord) {
	terms := []string{string(c.State), number(restarts, c.RestartCount), c.Hash, c.SpecHash, c.ID, c.SandboxID}
	if c.State == model.Exited {
		terms = append(terms, number(exitCode, c.ExitCode), c.Reason)
	}
	if c.LogFull {
		terms = append(terms, "log full")
	}
	if c.Starting {
		terms = append(terms, "hook running")
	}
	for _, t := range model.ProbeTypes() {
		if r, ok := probes[t]; ok {
			terms = append(terms, string(t)+" "+string(r.Result))
		}
	}
	f[fmt.Sprintf("container %s (%s)", c.Name, model.ShortID(c.ID))] = line(terms...)
}

func (f facts) addDisk(o *model.Observed) {
	for name, image := range o.Images {
		f["image "+name] = cmp.Or(image.ID, "absent")
	}
	for name, vol := range o.Volumes {
		f["volume "+name] = line(truth(prepared, vol.Prepared), vol.Digest, vol.Wanted)
	}
	if o.VolumesRemain {
		f["volumes"] = truth(exists, true)
	}
	if o.CgroupExists != nil {
		f["cgroup"] = truth(exists, *o.CgroupExists)
	}
	for name, fault := range o.Faults {
		f["fault of "+cmp.Or(name, "sandbox")] = line(string(fault.Reason), fault.Message)
	}
	for name, n := range o.LogAttempts {
		f["log of "+name] = number(attempt, n)
	}
}

func (f facts) addMemory(m *model.Memory) {
	for name, b := range m.Backoffs {
		f["back-off of "+name] = b.Duration.String()
	}
	if m.LastRun != nil {
		f["left running"] = digestOf(m.LastRun)
	}
	if m.Completion != nil {
		f["completion"] = string(m.Completion.Phase)
	}
	if m.Rejection != nil {
		f["admission"] = line(string(m.Rejection.Reason), m.Rejection.Message)
	}
	if m.Eviction != nil {
		f["eviction"] = line(m.Eviction.Signal, m.Eviction.Message)
	}
	if m.End != nil {
		f["end"] = digestOf(m.End)
	}
	if len(m.Adopted) > 0 {
		f["adopted"] = digestOf(m.Adopted)
	}
	if m.Actuated != nil {
		f["resources applied"] = digestOf(m.Actuated)
	}
}

// changesTo lists the differences to other facts, object by object.
func (f facts) changesTo(now facts) []string {
	all := facts{}
	maps.Copy(all, f)
	maps.Copy(all, now)
	var changes []string
	for _, object := range slices.Sorted(maps.Keys(all)) {
		before, was := f[object]
		after, is := now[object]
		switch {
		case !was:
			changes = append(changes, object+": "+newFact(after))
		case !is:
			changes = append(changes, object+": gone")
		case before != after:
			changes = append(changes, object+": "+changedFact(object, before, after))
		}
	}
	return changes
}

func digestOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
