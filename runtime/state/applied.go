package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// AppliedPod is a pod that podctl applied, as recorded in its checkpoint.
type AppliedPod struct {
	Desired    *podspec.Desired
	Checkpoint *Checkpoint
}

// Applied returns the pods that podctl applied, by namespace and name. Checkpoints that cannot be read are reported in
// unreadable and do not hide others.
func Applied(layout Layout) (pods []AppliedPod, unreadable []error, err error) {
	entries, err := layout.Pods().Checkpoints()
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		switch {
		case entry.Err != nil:
			unreadable = append(unreadable, entry.Err)
		case entry.Checkpoint.Applied != nil && entry.Checkpoint.Applied.Pod != nil:
			entry.Checkpoint.Applied.Stored = true
			pods = append(pods, AppliedPod{Desired: entry.Checkpoint.Applied, Checkpoint: entry.Checkpoint})
		}
	}
	slices.SortStableFunc(pods, func(a, b AppliedPod) int {
		return model.RefOf(a.Desired.Pod).Compare(model.RefOf(b.Desired.Pod))
	})
	return pods, unreadable, nil
}

// Troubles returns one line with the checkpoints that cannot be read and the reasons. It omits the advice to remove
// them, because here that would cause harm.
func Troubles(unreadable []error) string {
	texts := make([]string, 0, len(unreadable))
	for _, err := range unreadable {
		text := err.Error()
		if unusable := (*CheckpointError)(nil); errors.As(err, &unusable) {
			text = fmt.Sprintf("%s: %v", unusable.Path, unusable.Err)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// NotFoundError reports that podctl applied no pod with this name.
type NotFoundError struct{ Name string }

// Error includes advice, also for names with a kind before them as in kubectl.
func (e *NotFoundError) Error() string {
	before, name, _ := strings.Cut(e.Name, "/")
	first, _, _ := strings.Cut(name, ",")
	typed, named := podspec.KindOfWord(before), podspec.KindOfWord(first)
	text := "podctl has not applied a pod of that name (`podctl get -A` lists all)"
	switch {
	case named.Name == podspec.KindPod:
		text = "pods are named without their kind here"
	case named.NotInAll, typed.NotInAll:
		text = "this command takes pods; " +
			"`podctl get configmaps`, `get secrets` and `get pvc` show objects that pods use"
	case name == "all", named.Name != "", typed.Name != "":
		text = "this command takes names of pods (`podctl get` lists them)"
	}
	return fmt.Sprintf("no pod %s: %s", e.Name, text)
}

// shortestUID is the minimum length of a uid prefix. Shorter texts are taken for mistyped names.
const shortestUID = 8

// MatchesUID reports whether a text is a uid or a long enough prefix of it.
func MatchesUID(uid types.UID, text string) bool {
	return len(text) >= shortestUID && strings.HasPrefix(string(uid), text)
}

// AmbiguousError reports that several pods have the name of one. Pods of the API server can have the name of another
// pod.
type AmbiguousError struct {
	Name string
	Pods []*podspec.Desired
}

// Error lists the uids of the pods, with the sources of their manifests.
func (e *AmbiguousError) Error() string {
	uids := make([]string, 0, len(e.Pods))
	for _, d := range e.Pods {
		uid := string(d.Pod.UID)
		if d.Source != "" {
			uid += " (" + d.Source + ")"
		}
		uids = append(uids, uid)
	}
	return fmt.Sprintf("%d pods have the name %s: use the uid of one of them: %s",
		len(e.Pods), e.Name, strings.Join(uids, ", "))
}

// FindPod finds a pod by name, namespace/name, pod/name (the form of `get -o name`) or a unique prefix of its uid. If
// several pods have the name, the error is an *AmbiguousError.
func FindPod(pods []*podspec.Desired, namespace, name string) (*podspec.Desired, error) {
	wanted, uid := namespace+"/"+name, name
	if before, after, found := strings.Cut(name, "/"); found && before == "pod" {
		wanted, uid = namespace+"/"+after, after
	} else if found {
		wanted = name
	}
	var byName, byUID []*podspec.Desired
	for _, d := range pods {
		if model.RefOf(d.Pod).String() == wanted {
			byName = append(byName, d)
		}
		if MatchesUID(d.Pod.UID, uid) {
			byUID = append(byUID, d)
		}
	}
	switch {
	case len(byName) > 1:
		return nil, &AmbiguousError{Name: wanted, Pods: byName}
	case len(byName) == 1:
		return byName[0], nil
	case len(byUID) == 1:
		return byUID[0], nil
	case len(byUID) > 1:
		return nil, fmt.Errorf("%q is the prefix of %d uids; give more characters", name, len(byUID))
	}
	return nil, &NotFoundError{Name: wanted}
}
