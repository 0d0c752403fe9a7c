package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// Host has the facts of this machine and its runtime that no manifest decides. Each is asked
// for once, until Renew.
type Host struct {
	client      *cri.Client
	seccompRoot string
	from        Sources

	// asking asks the runtime, which may take long. mu is not held meanwhile.
	asking  singleflight.Group
	mu      sync.Mutex
	machine func() criconfig.Node
	kubelet func() error
	facts   *RuntimeFacts
	// renewals counts the calls of Renew, and facts are of the time after as many as answered. Until they are asked for again,
	// passes that run go on with the old ones.
	renewals, answered int
}

// Sources are where facts of the machine come from.
type Sources struct {
	// CgroupRoot is the cgroup below which those of pods are made; empty means the machine's
	// own root.
	CgroupRoot string
	// Machine reads the facts of the machine; nil reads those of this one.
	Machine func() criconfig.Node
	// Kubelet is an error when a kubelet uses the same runtime; nil looks for one.
	Kubelet func() error
}

// NewHost makes a Host.
func NewHost(client *cri.Client, layout state.Layout, from Sources) *Host {
	if from.Machine == nil {
		from.Machine = func() criconfig.Node {
			node := machine.Node("/")
			node.StorageBytes = machine.StorageBytes(layout.Root)
			return node
		}
	}
	if from.Kubelet == nil {
		from.Kubelet = func() error { return findKubelet(client.Endpoint.Address) }
	}
	h := &Host{client: client, seccompRoot: layout.Seccomp(), from: from}
	h.Renew()
	return h
}

// Renew lets every fact be asked for again. What lives longer than one command calls it when a
// runtime has come back, and from time to time.
func (h *Host) Renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.machine, h.kubelet = sync.OnceValue(h.from.Machine), sync.OnceValue(h.from.Kubelet)
	h.renewals++
	h.asking.Forget("")
}

// Node gathers the facts of the machine that pod configuration depends on, once
// per invocation.
func (h *Host) Node() criconfig.Node {
	h.mu.Lock()
	machine := h.machine
	h.mu.Unlock()
	node := machine()
	node.CgroupRoot, node.SeccompRoot = h.from.CgroupRoot, h.seccompRoot
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.facts != nil {
		node.SystemdCgroup = h.facts.systemdCgroup
		node.Handlers = handlerFeatures(h.facts)
		node.SupplementalGroupsPolicy = h.facts.Status.GetFeatures().GetSupplementalGroupsPolicy()
	}
	return node
}

// Unfit says why this machine, with labels that are given it, is no node for a pod; see admission.Unfit.
func (h *Host) Unfit(pod *v1.Pod, given map[string]string) string {
	node := h.Node()
	machine := snapshot.MachineOf(&node)
	return admission.Unfit(pod, &machine, given)
}

// RuntimeFacts is what a runtime says of itself. All but whether its network is ready does not change
// during an invocation.
type RuntimeFacts struct {
	snapshot.Runtime
	systemdCgroup bool
}

// RuntimeFacts asks the runtime about itself, once. While its network is not ready, each call asks again: a
// node that boots becomes ready within seconds. Calls that come together take the same answer.
func (h *Host) RuntimeFacts(ctx context.Context) (RuntimeFacts, error) {
	h.mu.Lock()
	facts, renewals := h.facts, h.renewals
	known := facts != nil && h.answered == renewals && facts.networkReady()
	h.mu.Unlock()
	if known {
		return *facts, nil
	}
	answer := h.asking.DoChan("", func() (any, error) {
		// Others wait for the answer too, so that the end of this caller does not end the question.
		f, err := h.askRuntime(context.WithoutCancel(ctx))
		if err != nil {
			return f, err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.facts, h.answered = &f, renewals
		return f, nil
	})
	select {
	case r := <-answer:
		f, _ := r.Val.(RuntimeFacts)
		return f, r.Err
	case <-ctx.Done():
		return RuntimeFacts{}, cri.Wrap("asking for the runtime's version", context.Cause(ctx))
	}
}

// networkReady reports whether nothing is known against the runtime's network.
func (f *RuntimeFacts) networkReady() bool {
	return !slices.ContainsFunc(f.Status.GetStatus().GetConditions(), func(c *runtimeapi.RuntimeCondition) bool {
		return c.GetType() == runtimeapi.NetworkReady && !c.GetStatus()
	})
}

func (h *Host) askRuntime(ctx context.Context) (RuntimeFacts, error) {
	var f RuntimeFacts
	var config *runtimeapi.RuntimeConfigResponse
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		reply, err := h.client.Version(ctx, &runtimeapi.VersionRequest{})
		f.Name, f.Version = reply.GetRuntimeName(), reply.GetRuntimeVersion()
		return cri.Wrap("asking for the runtime's version", err)
	})
	group.Go(func() (err error) {
		f.Status, err = h.client.Status(ctx, &runtimeapi.StatusRequest{Verbose: true})
		return cri.Wrap("asking for the runtime's status", err)
	})
	group.Go(func() (err error) {
		config, err = h.client.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
		if cri.IsUnimplemented(err) {
			config = nil
			return nil
		}
		return cri.Wrap("asking for the runtime's cgroup driver", err)
	})
	if err := group.Wait(); err != nil {
		return RuntimeFacts{}, err
	}
	info := sync.OnceValue(func() cri.Info { return cri.ReadInfo(f.Status.GetInfo()) })
	f.systemdCgroup = usesSystemdCgroup(config, info)
	f.Status.RuntimeHandlers = handlers(f.Status, info)
	// It is long, and more than a snapshot may tell of a machine.
	f.Status.Info = nil
	return f, nil
}

// usesSystemdCgroup reports which cgroup driver the runtime uses. One that is too old
// to say it (containerd before 2.0) may have it in its configuration; else it is taken
// to use cgroupfs, as the kubelet takes it.
func usesSystemdCgroup(config *runtimeapi.RuntimeConfigResponse, info func() cri.Info) bool {
	if config != nil {
		return config.GetLinux().GetCgroupDriver() == runtimeapi.CgroupDriver_SYSTEMD
	}
	return info().SystemdCgroup()
}

// handlers are the runtime's handlers. One that is too old to say them (containerd before
// 1.7) has them in its configuration; of another that does not, none are known.
func handlers(status *runtimeapi.StatusResponse, info func() cri.Info) []*runtimeapi.RuntimeHandler {
	if listed := status.GetRuntimeHandlers(); len(listed) > 0 {
		return listed
	}
	configured := info().Config.Containerd.Runtimes
	if len(configured) == 0 {
		return nil
	}
	found := []*runtimeapi.RuntimeHandler{{}}
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		found = append(found, &runtimeapi.RuntimeHandler{Name: name})
	}
	return found
}

func handlerFeatures(f *RuntimeFacts) map[string]criconfig.Handler {
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
// same runtime. The next call looks for it again then.
func (h *Host) CheckKubelet() error {
	h.mu.Lock()
	kubelet := h.kubelet
	h.mu.Unlock()
	err := kubelet()
	if err != nil {
		// It may be stopped at any moment.
		h.mu.Lock()
		h.kubelet = sync.OnceValue(h.from.Kubelet)
		h.mu.Unlock()
	}
	return err
}

func findKubelet(endpoint string) error {
	if k, found := machine.FindKubelet("/proc", endpoint); found {
		return &LiveKubeletError{k}
	}
	return nil
}

// prefetchTimeout bounds what is asked ahead: an answer that takes longer is no gain.
const prefetchTimeout = time.Second

// Prefetch asks what every pass needs and no manifest decides, so that it is known once
// the manifests have been read: it is called beside that. What fails is asked again, and told, by
// whoever needs it.
func (h *Host) Prefetch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, prefetchTimeout)
	defer cancel()
	go h.Node()
	_, _ = h.RuntimeFacts(ctx)
}
