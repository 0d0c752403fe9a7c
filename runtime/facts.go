package runtime

import (
	"fmt"

	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/machine"
)

// node gathers the facts of the machine that pod configuration depends on, once
// per invocation.
func (e *Engine) node() criconfig.Node {
	node := e.machine()
	node.CgroupRoot, node.SeccompRoot = e.cgroupRoot, e.layout.Seccomp()
	e.factsLock.Lock()
	defer e.factsLock.Unlock()
	if e.facts != nil {
		node.SystemdCgroup = e.facts.systemdCgroup
		node.Handlers = handlerFeatures(e.facts)
		node.SupplementalGroupsPolicy = e.facts.Status.GetFeatures().GetSupplementalGroupsPolicy()
	}
	return node
}

// machine is what the machine itself tells, without the runtime.
func (e *Engine) machine() criconfig.Node {
	e.nodeOnce.Do(func() { e.nodeFacts = machine.Node("/") })
	return e.nodeFacts
}

func handlerFeatures(f *runtimeFacts) map[string]criconfig.Handler {
	handlers := map[string]criconfig.Handler{}
	for _, h := range f.Status.GetRuntimeHandlers() {
		handlers[h.GetName()] = criconfig.Handler{
			RecursiveReadOnlyMounts: h.GetFeatures().GetRecursiveReadOnlyMounts(),
			UserNamespaces:          h.GetFeatures().GetUserNamespaces(),
		}
	}
	return handlers
}

// LiveKubeletError says that a kubelet runs on the same container runtime: it
// kills every pod that it does not know.
type LiveKubeletError struct{ machine.Kubelet }

// Error says what the way out is.
func (e *LiveKubeletError) Error() string {
	return fmt.Sprintf("%s (pid %d) runs on %s and would kill what podctl starts there: use another runtime (podctl node up), "+
		"stop it, or put the manifest into its static pod directory (podctl export); --allow-kubelet goes on all the same",
		e.Process, e.PID, e.Endpoint)
}

// CheckKubelet is a *LiveKubeletError when a kubelet of this machine uses the
// engine's runtime.
func (e *Engine) CheckKubelet() error { return e.kubelet() }

func checkKubelet(endpoint string) error {
	if k, found := machine.FindKubelet("/proc", endpoint); found {
		return &LiveKubeletError{k}
	}
	return nil
}
