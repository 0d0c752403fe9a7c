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
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/imageaccess"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// Host has the facts of this machine and its runtime that do not depend on a manifest. Each is read once, until Renew.
type Host struct {
	client      *cri.Client
	seccompRoot string
	from        Sources
	identities  identityFile
	classes     state.SharedFile

	// asking queries the runtime, which may take long. mu is not held meanwhile.
	asking  singleflight.Group
	mu      sync.Mutex
	machine func() criconfig.Node
	// identity returns how the API server knows this machine; nil if it does not.
	identity func() *model.NodeIdentity
	kubelet  func() error
	facts    *RuntimeFacts
	// renewals counts the calls of Renew. answered is its value when facts were read. Until they are read again,
	// running passes use the old ones.
	renewals, answered int
}

// Sources are where facts of the machine come from.
type Sources struct {
	// CgroupRoot is the cgroup that contains the cgroups of pods; empty means the machine's own root.
	CgroupRoot string
	// PodPIDs limits the tasks of each pod, unless it is zero or negative.
	PodPIDs int64
	// SeccompDefault is set if containers that set no seccomp profile have the default one of the runtime.
	SeccompDefault bool
	// Images defines which images a pod of the API server must be able to pull although they are present.
	Images imageaccess.Policy
	// Machine reads the facts of the machine; nil reads those of this one.
	Machine func() criconfig.Node
	// BootID identifies the current start of the kernel; nil asks the kernel.
	BootID func() string
	// Kubelet returns an error if a kubelet uses the same runtime; nil looks for one.
	Kubelet func() error
}

// NewHost returns a Host.
func NewHost(client *cri.Client, layout state.Layout, from Sources) *Host {
	if from.Machine == nil {
		from.Machine = func() criconfig.Node {
			node := machine.Node("/")
			node.StorageBytes = machine.StorageBytes(layout.Root)
			return node
		}
	}
	if from.BootID == nil {
		from.BootID = sync.OnceValue(func() string { return machine.BootID("/") })
	}
	if from.Kubelet == nil {
		from.Kubelet = func() error { return findKubelet(client.Endpoint.Address) }
	}
	h := &Host{
		client: client, seccompRoot: layout.Seccomp(), from: from,
		identities: identityFile{statedir.Dir{Path: layout.Root}}, classes: state.ClusterClasses(layout),
	}
	h.Renew()
	return h
}

// Renew makes the Host read every fact again. A long-running process calls it when a runtime has come back, and from
// time to time.
func (h *Host) Renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.machine, h.kubelet = sync.OnceValue(h.from.Machine), sync.OnceValue(h.from.Kubelet)
	h.identity = sync.OnceValue(func() *model.NodeIdentity {
		// Like other facts that cannot be read, the identity is then unknown.
		identity, _ := h.identities.read()
		return identity
	})
	h.renewals++
	h.asking.Forget("")
}

// Node returns the facts of the machine that pod configuration depends on. It reads them once.
func (h *Host) Node() criconfig.Node {
	h.mu.Lock()
	machine := h.machine
	h.mu.Unlock()
	node := machine()
	node.CgroupRoot, node.PodPIDs = h.from.CgroupRoot, h.from.PodPIDs
	node.SeccompRoot, node.SeccompDefault = h.seccompRoot, h.from.SeccompDefault
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.facts != nil {
		node.SystemdCgroup = h.facts.systemdCgroup
		node.Handlers = handlerFeatures(h.facts)
		node.SupplementalGroupsPolicy = h.facts.Status.GetFeatures().GetSupplementalGroupsPolicy()
	}
	return node
}

// ImagePolicy defines which images a pod of the API server must be able to pull although they are present.
func (h *Host) ImagePolicy() imageaccess.Policy { return h.from.Images }

// NodeOf returns Node as a pod sees it. For a pod of the API server, it has the values of the Node in the API. desired
// may be nil.
func (h *Host) NodeOf(desired *podspec.Desired) criconfig.Node {
	node := h.Node()
	if desired == nil || !desired.FromCluster() {
		return node
	}
	h.mu.Lock()
	identity := h.identity
	h.mu.Unlock()
	node = node.As(identity())
	if ptr.Deref(desired.Pod.Spec.RuntimeClassName, "") != "" {
		// If the classes cannot be read, they are unknown. They change at any time.
		text, _ := h.classes.Read()
		node.Classes = model.DecodeRuntimeClasses(text).Of(desired.Pod)
	}
	return node
}

// Unfit explains why this machine, with additional labels, is no node for a pod; see admission.Unfit.
func (h *Host) Unfit(pod *v1.Pod, given map[string]string) string {
	node := h.Node()
	machine := snapshot.MachineOf(&node)
	return admission.Unfit(pod, &machine, given)
}

// RuntimeFacts is a runtime's information about itself. Only the readiness of its network changes during an invocation.
type RuntimeFacts struct {
	snapshot.Runtime
	systemdCgroup bool
}

// RuntimeFacts queries the runtime about itself, once. While its network is not ready, each call queries again, because
// a booting node becomes ready within seconds. Concurrent calls share one answer.
func (h *Host) RuntimeFacts(ctx context.Context) (RuntimeFacts, error) {
	h.mu.Lock()
	facts, renewals := h.facts, h.renewals
	known := facts != nil && h.answered == renewals && facts.networkReady()
	h.mu.Unlock()
	if known {
		return *facts, nil
	}
	answer := h.asking.DoChan("", func() (any, error) {
		// Other callers wait for the same answer, so the query must not end with this caller.
		f, err := h.queryRuntime(context.WithoutCancel(ctx))
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

// networkReady reports whether the runtime does not report its network as not ready.
func (f *RuntimeFacts) networkReady() bool {
	return !slices.ContainsFunc(f.Status.GetStatus().GetConditions(), func(c *runtimeapi.RuntimeCondition) bool {
		return c.GetType() == runtimeapi.NetworkReady && !c.GetStatus()
	})
}

func (h *Host) queryRuntime(ctx context.Context) (RuntimeFacts, error) {
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
	// Info is long, and contains more about a machine than a snapshot may publish.
	f.Status.Info = nil
	return f, nil
}

// usesSystemdCgroup reports whether the runtime uses the systemd cgroup driver. A runtime that is too old to report it
// (containerd before 2.0) may have it in its configuration. Otherwise it is assumed to use cgroupfs, as in the kubelet.
func usesSystemdCgroup(config *runtimeapi.RuntimeConfigResponse, info func() cri.Info) bool {
	if config != nil {
		return config.GetLinux().GetCgroupDriver() == runtimeapi.CgroupDriver_SYSTEMD
	}
	return info().SystemdCgroup()
}

// handlers returns the runtime's handlers. For a runtime that is too old to report them (containerd before 1.7) it
// takes them from its configuration. It returns nil if neither has them.
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

// LiveKubeletError reports that a kubelet uses the same container runtime. It kills every pod that it does not know.
type LiveKubeletError struct{ machine.Kubelet }

// Error names the kubelet and the possible fixes.
func (e *LiveKubeletError) Error() string {
	return fmt.Sprintf("%s (pid %d) uses %s and would kill containers that podctl starts there: "+
		"use another runtime (podctl node up), stop it, "+
		"or put the manifest into its static pod directory (podctl export); --allow-kubelet continues anyway",
		e.Process, e.PID, e.Endpoint)
}

// CheckKubelet returns a *LiveKubeletError if a kubelet of this machine uses the same runtime. The next call then looks
// for it again.
func (h *Host) CheckKubelet() error {
	h.mu.Lock()
	kubelet := h.kubelet
	h.mu.Unlock()
	err := kubelet()
	if err != nil {
		h.ForgetKubelet() // It may be stopped at any moment.
	}
	return err
}

// ForgetKubelet makes the next CheckKubelet look for a kubelet again.
func (h *Host) ForgetKubelet() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kubelet = sync.OnceValue(h.from.Kubelet)
}

func findKubelet(endpoint string) error {
	if k, found := machine.FindKubelet("/proc", endpoint); found {
		return &LiveKubeletError{k}
	}
	return nil
}

// prefetchTimeout limits the prefetch: a slower answer saves no time.
const prefetchTimeout = time.Second

// Prefetch queries facts that every pass needs and that do not depend on a manifest. It is called while the manifests
// are read. If a query fails, the caller that needs the fact repeats it and reports the error.
func (h *Host) Prefetch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, prefetchTimeout)
	defer cancel()
	go h.Node()
	_, _ = h.RuntimeFacts(ctx)
}
