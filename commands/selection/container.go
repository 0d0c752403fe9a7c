package selection

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
)

// Container is the container that a command line names.
type Container struct {
	Name string
	// Quiet leaves out the note on which container was chosen.
	Quiet bool
}

// Register defines -c and -q, which says what it leaves out.
func (c *Container) Register(f *pflag.FlagSet, quiet string) {
	f.StringVarP(&c.Name, "container", "c", "", "Container (default: the pod's default container, or the first one)")
	f.BoolVarP(&c.Quiet, "quiet", "q", false, quiet)
}

// defaultContainer is the annotation that names a pod's default container
// (kubectl: util/podcmd.DefaultContainerAnnotationName).
const defaultContainer = "kubectl.kubernetes.io/default-container"

// Choose chooses a container of a pod: the one that is named, else the pod's default one, else
// the first.
func (c *Container) Choose(io *terminal.IO, d *podspec.Desired) (string, error) {
	name := c.Name
	if name == "" {
		name = d.Pod.Annotations[defaultContainer]
	}
	if name == "" && len(d.Pod.Spec.Containers) == 0 {
		return "", fmt.Errorf("the runtime has no container of pod %s/%s", d.Pod.Namespace, d.Pod.Name)
	}
	if name == "" {
		name = d.Pod.Spec.Containers[0].Name
		if len(d.Pod.Spec.Containers) > 1 && !c.Quiet {
			io.Note("Defaulted container %q out of: %s", name, ContainerNames(d))
		}
	}
	if _, ok := podspec.FindContainer(d.Pod, name); !ok {
		return "", exit.Usagef("pod %s/%s has no container %q; it has %s", d.Pod.Namespace, d.Pod.Name, name, ContainerNames(d))
	}
	return name, nil
}
