package plan

import (
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

// facts are what a decision read of the world, by the object they are about: ids,
// states, exit codes, hashes, verdicts, delays, the images needed and the
// resources applied. Times, ages and other pods are no part of them, so that only
// a change of the world makes a saved plan stale, and not the mere passing of
// time.
type facts map[string]string

func (v *view) facts() facts {
	f := facts{}
	for i := range v.sandboxes {
		f.addSandbox(&v.sandboxes[i])
	}
	for _, c := range v.containers {
		f.addContainer(c, v.obs.Memory.Probes[c.ID])
	}
	f.addDisk(v.obs)
	f.addJournal(&v.obs.Memory, v.obs.Reserved)
	return f
}

// digest identifies the facts.
func (f facts) digest() string { return digestOf(f) }

func (f facts) addSandbox(s *model.Sandbox) {
	network := "POD"
	if s.HostNetwork {
		network = "NODE"
	}
	f["sandbox "+model.ShortID(s.ID)] = words(string(s.State), "attempt "+strconv.Itoa(int(s.Attempt)), network,
		strings.Join(s.IPs, ","), s.SpecHash, s.ID)
}

func (f facts) addContainer(c *model.Container, probes map[model.ProbeType]model.ProbeRecord) {
	text := words(string(c.State), "restarts "+strconv.Itoa(int(c.RestartCount)), c.Hash, c.SpecHash, c.ID, c.SandboxID)
	if c.State == model.Exited {
		text = words(text, "exit code "+strconv.Itoa(int(c.ExitCode)), c.Reason)
	}
	if c.LogFull {
		text = words(text, "log full")
	}
	for _, t := range model.ProbeTypes() {
		if r, ok := probes[t]; ok {
			text = words(text, string(t)+" "+string(r.Result))
		}
	}
	f[fmt.Sprintf("container %s (%s)", c.Name, model.ShortID(c.ID))] = text
}

func (f facts) addDisk(o *model.Observed) {
	for name, image := range o.Images {
		f["image "+name] = firstOf(image.ID, "absent")
	}
	for name, vol := range o.Volumes {
		f["volume "+name] = words("prepared "+strconv.FormatBool(vol.Prepared), vol.Digest, vol.Wanted)
	}
	if o.CgroupExists != nil {
		f["cgroup"] = "exists " + strconv.FormatBool(*o.CgroupExists)
	}
	for name, n := range o.LogAttempts {
		f["log of "+name] = "attempt " + strconv.Itoa(int(n))
	}
}

func (f facts) addJournal(j *model.Memory, reserved map[string]uint32) {
	for name, b := range j.Backoffs {
		f["back-off of "+name] = b.Duration.String()
	}
	for name, n := range reserved {
		f["reserved attempt of "+firstOf(name, "sandbox")] = strconv.Itoa(int(n))
	}
	if j.LastRun != nil {
		f["left running"] = digestOf(j.LastRun)
	}
	if j.Completion != nil {
		f["completion"] = string(j.Completion.Phase)
	}
	if j.Actuated != nil {
		f["resources applied"] = digestOf(j.Actuated)
	}
}

// words joins what is not empty.
func words(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}

// changesTo says what is different in other facts, object by object.
func (f facts) changesTo(now facts) []string {
	all := maps.Clone(f)
	if all == nil {
		all = facts{}
	}
	maps.Copy(all, now)
	var changes []string
	for _, object := range slices.Sorted(maps.Keys(all)) {
		before, was := f[object]
		after, is := now[object]
		switch {
		case !was:
			changes = append(changes, newFact(object, after))
		case !is:
			changes = append(changes, object+": gone")
		case before != after:
			changes = append(changes, factChange(object, before, after))
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
