package selection

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Applied lists the pods that podctl applied, in all namespaces. It prints a note for each unreadable checkpoint.
func Applied(sess *session.Session) ([]*podspec.Desired, error) {
	pods, unreadable, err := podsApplied(sess)
	for _, one := range unreadable {
		sess.IO.NoteOnce("note: %v", one)
	}
	return pods, err
}

func podsApplied(sess *session.Session) ([]*podspec.Desired, []error, error) {
	applied, unreadable, err := state.Applied(sess.Flags.Layout())
	if err != nil {
		return nil, nil, err
	}
	return DesiredOf(applied), unreadable, nil
}

// DesiredOf returns applied pods without their checkpoints.
func DesiredOf(applied []state.AppliedPod) []*podspec.Desired {
	pods := make([]*podspec.Desired, 0, len(applied))
	for _, p := range applied {
		pods = append(pods, p.Desired)
	}
	return pods
}

// Named finds an applied pod by its name. If there is none, the error describes other places where the pod may be.
func Named(sess *session.Session, applied []*podspec.Desired, name string) (*podspec.Desired, error) {
	d, err := state.FindPod(applied, sess.Flags.Namespace, name)
	return d, addLocationHint(sess, name, err)
}

// One finds the single pod that an argument names. For a workload or Service it returns the first of several pods, with
// a note.
func One(ctx context.Context, sess *session.Session, purpose Purpose, arg string) (*podspec.Desired, error) {
	pods, err := Selection{For: purpose}.Pods(ctx, sess, arg)
	if err != nil {
		return nil, err
	}
	if _, ok := manyNamed(arg, sess.Flags.Namespace); ok && len(pods) > 1 {
		var names []string
		for _, d := range pods {
			names = append(names, d.Pod.Name)
		}
		sess.IO.Note("Defaulted pod %s out of: %s", pods[0].Pod.Name, strings.Join(names, ", "))
		return pods[0], nil
	}
	if len(pods) != 1 {
		return nil, exit.Usagef("%s contains %d pods; name one of them", arg, len(pods))
	}
	return pods[0], nil
}

// Running finds one pod, applied by podctl or not, with the debug containers that were added to it.
func Running(ctx context.Context, sess *session.Session, arg string) (*podspec.Desired, *runtime.Engine, error) {
	d, err := One(ctx, sess, Show, arg)
	if err != nil {
		return nil, nil, err
	}
	engine, err := sess.Engine()
	if err != nil {
		return nil, nil, err
	}
	d, err = engine.Sessions.WithDebug(ctx, d)
	return d, engine, err
}

// Refs returns the references of pods. podctl finds a pod by its checkpoint even if its manifest no longer exists.
func Refs(pods []*podspec.Desired) []model.PodRef {
	out := make([]model.PodRef, 0, len(pods))
	for _, d := range pods {
		out = append(out, model.RefOf(d.Pod))
	}
	return out
}

// UIDs returns the set of the pods' uids.
func UIDs(pods []*podspec.Desired) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, d := range pods {
		uids[d.Pod.UID] = true
	}
	return uids
}

// ContainerNames lists the names of a pod's containers as text.
func ContainerNames(d *podspec.Desired) string {
	var names []string
	for _, ref := range podspec.Containers(d.Pod) {
		names = append(names, ref.Name)
	}
	return strings.Join(names, ", ")
}

// Container selects a container by flags.
type Container struct {
	Name string
	// Quiet omits the note about the default container.
	Quiet bool
}

// Register defines -c and -q. The usage of -q is given, because commands omit different output.
func (c *Container) Register(f *pflag.FlagSet, quiet string) {
	f.StringVarP(&c.Name, "container", "c", "", "Container (default: the pod's default container, or the first one)")
	f.BoolVarP(&c.Quiet, "quiet", "q", false, quiet)
}

// defaultContainer is the annotation that names a pod's default container (kubectl:
// util/podcmd.DefaultContainerAnnotationName).
const defaultContainer = "kubectl.kubernetes.io/default-container"

// Choose returns the container given by -c, else the default container of the pod, else the first one.
func (c *Container) Choose(io *terminal.IO, d *podspec.Desired) (string, error) {
	name := c.Name
	if name == "" {
		name = d.Pod.Annotations[defaultContainer]
	}
	if name == "" && len(d.Pod.Spec.Containers) == 0 {
		return "", fmt.Errorf("pod %s/%s has no containers in the runtime", d.Pod.Namespace, d.Pod.Name)
	}
	if name == "" {
		name = d.Pod.Spec.Containers[0].Name
		if len(d.Pod.Spec.Containers) > 1 && !c.Quiet {
			io.Note("Defaulted container %q out of: %s", name, ContainerNames(d))
		}
	}
	if _, ok := podspec.FindContainer(d.Pod, name); !ok {
		return "", exit.Usagef("pod %s/%s has no container %q; it has %s",
			d.Pod.Namespace, d.Pod.Name, name, ContainerNames(d))
	}
	return name, nil
}
