package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/netfilter"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// Lister adds the status to pods.
type Lister interface {
	List(ctx context.Context, pods []*podspec.Desired) ([]*v1.Pod, error)
}

// Services provides the Services that were applied.
type Services interface {
	// Services reads all Services. With an error some are missing.
	Services() ([]*v1.Service, error)
}

// Kernel manages the rules for the traffic of Services.
type Kernel interface {
	// Write replaces the rules under a name. The record holds the interfaces that podctl has opened to 127.0.0.1.
	Write(name string, rules netfilter.Rules, opened netfilter.Record) error
	// Guard adds the guard of 127.0.0.1 to the rules under a name.
	Guard(name string) error
	// Open reports whether an interface accepts packets for 127.0.0.1, so that the kernel needs the guard.
	Open() bool
	// Watch calls removed when another program has removed some of the rules, until the context ends.
	Watch(ctx context.Context, removed func()) error
}

// World is the environment of a Proxy.
type World struct {
	Locker   *state.Locker
	Services Services
	Lister   Lister
	// Kernel receives the rules. It is nil for a node on which names lead to the pods themselves.
	Kernel Kernel
}

// Proxy keeps rules and names up to date with Services and pods.
type Proxy struct {
	World
	// Failed is called after each sync with its error, or nil. Set it before the first sync. It may be nil.
	Failed func(error)
	worker worker

	// syncMu serializes syncs.
	syncMu sync.Mutex
	// mu guards the following fields. known are the pods as last observed. changed are the pods that may have changed
	// since the current sync began.
	mu      sync.Mutex
	known   map[types.UID]*v1.Pod
	changed map[types.UID]bool
}

// New returns a Proxy.
func New(w World) *Proxy {
	p := &Proxy{World: w, known: map[types.UID]*v1.Pod{}, changed: map[types.UID]bool{}}
	p.worker.do, p.worker.onResult = p.Sync, func(err error) {
		if p.Failed != nil {
			p.Failed(err)
		}
	}
	return p
}

// Sync reads Services and pods, and updates everything that depends on them. Concurrent processes wait for each other,
// so that the last one uses the latest state. An unreadable Service or pod does not affect others.
func (p *Proxy) Sync(ctx context.Context) (err error) {
	p.syncMu.Lock()
	defer p.syncMu.Unlock()
	before, err := p.Locker.Layout.ServiceNames().Read()
	if err != nil {
		return err
	}
	services, unreadable := p.Services.Services()
	if len(services) == 0 && before == nil && !p.open() {
		return unreadable
	}
	lock, err := p.Locker.LockServices(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if services, unreadable = p.Services.Services(); len(services) == 0 {
		return errors.Join(unreadable, p.clear(ctx))
	}
	pods, own, err := p.pods(ctx)
	if err != nil {
		return err
	}
	names := p.names(services, pods)
	return errors.Join(
		unreadable,
		p.writeKnown(service.NewKnown(services, names)),
		p.writeHosts(own, names),
		p.writeRules(services, pods),
	)
}

// names returns the names of Services. Without rules of the kernel, all of them lead to pods.
func (p *Proxy) names(services []*v1.Service, pods []*v1.Pod) []service.Name {
	if p.Kernel != nil {
		return service.Names(services, pods)
	}
	headless := make([]*v1.Service, 0, len(services))
	for _, s := range services {
		s = s.DeepCopy()
		s.Spec.ClusterIP, s.Spec.ClusterIPs = v1.ClusterIPNone, nil
		headless = append(headless, s)
	}
	return service.Names(headless, pods)
}

// clear removes the leftovers of Services.
func (p *Proxy) clear(ctx context.Context) error {
	pods, own, err := p.pods(ctx)
	err = errors.Join(err, p.writeHosts(own, nil), p.writeRules(nil, pods))
	if err != nil {
		return err
	}
	return p.Locker.Layout.ServiceNames().Remove()
}

// Guard protects the node's 127.0.0.1 before the network of a pod with hostPorts is set up, because the CNI plugin
// portmap opens the node's interface to it. Errors are reported through Failed.
func (p *Proxy) Guard() {
	if p.Kernel == nil {
		return
	}
	if err := p.Kernel.Guard(p.table()); err != nil && p.Failed != nil {
		p.Failed(err)
	}
}

// Left reports whether the kernel has rules of the state directory, or is open to 127.0.0.1 for it.
func Left(layout state.Layout) bool {
	names, err := record{layout.Localnet()}.Interfaces()
	return err != nil || len(names) > 0 || netfilter.Kernel{}.Has(tableOf(layout))
}

// Remove removes the rules of the state directory from the kernel, even if there are Services.
func Remove(layout state.Layout) error {
	return netfilter.Kernel{}.Remove(tableOf(layout), record{layout.Localnet()})
}

// table returns the name of the rules of the state directory.
func (p *Proxy) table() string { return tableOf(p.Locker.Layout) }

func tableOf(layout state.Layout) string {
	root := layout.Root
	if abs, err := filepath.Abs(root); err == nil {
		root = abs
	}
	h := fnv.New32a()
	h.Write([]byte(root))
	return fmt.Sprintf("podctl-%08x", h.Sum32())
}

// pods returns all applied pods with their status. own are those that podctl's Services have names for: not the pods
// of the API server, which have the Services of their cluster. It does not query unchanged pods again. A pod that
// cannot be observed is not ready.
func (p *Proxy) pods(ctx context.Context) (pods, own []*v1.Pod, err error) {
	applied, _, err := state.Applied(p.Locker.Layout)
	if err != nil {
		return nil, nil, err
	}
	all, unknown := p.begin(applied)
	if len(unknown) > 0 {
		var found []*v1.Pod
		if found, err = p.Lister.List(ctx, unknown); len(found) == 0 && err != nil {
			return nil, nil, fmt.Errorf("listing the pods of Services: %w", err)
		}
		for _, pod := range found {
			all[pod.UID] = pod
		}
		p.remember(found)
	}
	for _, a := range applied {
		pod := all[a.Desired.Pod.UID]
		if pod == nil {
			continue
		}
		if pods = append(pods, pod); !a.Desired.FromCluster() {
			own = append(own, pod)
		}
	}
	return pods, own, nil
}

// begin starts a sync. It returns the known pods and the unknown ones. It forgets pods that are no longer applied.
func (p *Proxy) begin(applied []state.AppliedPod) (all map[types.UID]*v1.Pod, unknown []*podspec.Desired) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all = make(map[types.UID]*v1.Pod, len(applied))
	for _, a := range applied {
		if pod := p.known[a.Desired.Pod.UID]; pod != nil {
			all[pod.UID] = pod
		} else {
			unknown = append(unknown, a.Desired)
		}
	}
	p.known, p.changed = maps.Clone(all), map[types.UID]bool{}
	return all, unknown
}

// remember stores the observed pods, except those that have changed in the meantime.
func (p *Proxy) remember(found []*v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pod := range found {
		if !p.changed[pod.UID] && pod.Status.Phase != v1.PodUnknown {
			p.known[pod.UID] = pod
		}
	}
}

// writeKnown writes the file that containers use when they start.
func (p *Proxy) writeKnown(known service.Known) error {
	text, err := known.Encode()
	if err != nil {
		return err
	}
	before, err := p.Locker.Layout.ServiceNames().Read()
	if err == nil && bytes.Equal(before, text) {
		return nil
	}
	return p.Locker.Layout.ServiceNames().Write(text)
}

// writeHosts writes the names into the hosts files of the pods that have one.
func (p *Proxy) writeHosts(pods []*v1.Pod, names []service.Name) error {
	// Without a host name, no name of a Service can conflict with that of the node.
	node, _ := os.Hostname()
	var errs []error
	for _, pod := range pods {
		lines := service.Hosts(pod, node, names)
		err := volume.ChangeEtcHosts(p.Locker.Layout.Pod(pod.UID), func(before []byte) []byte {
			return service.WithHosts(before, lines)
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
	}
	return errors.Join(errs...)
}

// writeRules writes the rules of the traffic.
func (p *Proxy) writeRules(services []*v1.Service, pods []*v1.Pod) error {
	kernel := p.Kernel
	if kernel == nil {
		if !Left(p.Locker.Layout) {
			return nil
		}
		// podctl wrote rules before this setting was turned off. Without removal they would always lead to the pods of
		// that time.
		kernel, services = netfilter.Kernel{}, nil
	}
	rules := netfilter.Rules{Routes: service.Routes(services, pods)}
	for _, pod := range pods {
		if !pod.Spec.HostNetwork {
			rules.Pods = append(rules.Pods, service.PodAddresses(pod)...)
			rules.HostPorts = rules.HostPorts || publishes(pod)
		}
	}
	return kernel.Write(p.table(), rules, record{p.Locker.Layout.Localnet()})
}

// open reports whether the guard of 127.0.0.1 may be needed although there are no Services.
func (p *Proxy) open() bool { return p.Kernel != nil && p.Kernel.Open() }

// publishes reports whether a pod has a hostPort.
func publishes(pod *v1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c v1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(port v1.ContainerPort) bool { return port.HostPort > 0 })
	})
}

// record stores the interfaces on which podctl has set route_localnet in a file.
type record struct{ file state.SharedFile }

// Interfaces returns the recorded names.
func (r record) Interfaces() (names []string, err error) {
	text, err := r.file.Read()
	if err != nil || text == nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &names); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", r.file.Path(), err)
	}
	return names, nil
}

// Replace replaces the recorded names.
func (r record) Replace(names []string) error {
	if len(names) == 0 {
		return r.file.Remove()
	}
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	return r.file.Write(text)
}
