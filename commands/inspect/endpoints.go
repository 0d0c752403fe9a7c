//nolint:staticcheck // kubectl get endpoints prints v1.Endpoints, although clusters now use EndpointSlices themselves
package inspect

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/service"
)

// endpointWords returns the names of the kind endpoints. podctl computes endpoints from Services and does not store
// them.
func endpointWords() []string { return []string{"endpoints", "endpoint", "ep"} }

// endpointArgs converts arguments that name endpoints, endpoints [NAME...] or endpoints/NAME..., to arguments that name
// their Services. ok is false if the arguments name something else.
func endpointArgs(args []string) (services []string, ok bool) {
	isWord := func(word string) bool { return slices.Contains(endpointWords(), strings.ToLower(word)) }
	if len(args) > 0 && isWord(args[0]) {
		return append([]string{"services"}, args[1:]...), true
	}
	for _, arg := range args {
		word, name, typed := strings.Cut(arg, "/")
		if !typed || !isWord(word) {
			return nil, false
		}
		services = append(services, "service/"+name)
	}
	return services, len(services) > 0
}

// endpointsOf returns the endpoints of Services from the observed pods. With a non-nil result, the error lists the pods
// that could not be observed.
func endpointsOf(ctx context.Context, sess *session.Session, services []*v1.Service) ([]*v1.Endpoints, error) {
	applied, err := selection.Applied(sess)
	if err != nil {
		return nil, err
	}
	applied = slices.DeleteFunc(applied, func(d *podspec.Desired) bool {
		return !slices.ContainsFunc(services, func(s *v1.Service) bool { return service.Selects(s, d.Pod) })
	})
	var pods []*v1.Pod
	var unknown error
	if len(applied) > 0 {
		engine, err := sess.Engine()
		if err != nil {
			return nil, err
		}
		if pods, unknown = engine.Lister.List(ctx, applied); pods == nil {
			return nil, unknown
		}
	}
	found := make([]*v1.Endpoints, 0, len(services))
	for _, s := range services {
		found = append(found, service.Endpoints(s, pods))
	}
	return found, unknown
}

// endpointTexts returns the addresses of ready and of not ready pods with their ports. A nil port selects all ports.
func endpointTexts(e *v1.Endpoints, port *v1.ServicePort) (ready, notReady []string) {
	for i := range e.Subsets {
		subset := &e.Subsets[i]
		number := uint16(0)
		if len(subset.Ports) > 0 {
			number = uint16(subset.Ports[0].Port) // the API server allows 1 to 65535
			if p := &subset.Ports[0]; port != nil && (p.Name != port.Name || p.Protocol != port.Protocol) {
				continue
			}
		}
		ready = append(ready, addressTexts(subset.Addresses, number)...)
		notReady = append(notReady, addressTexts(subset.NotReadyAddresses, number)...)
	}
	return ready, notReady
}

func addressTexts(addresses []v1.EndpointAddress, port uint16) []string {
	var texts []string
	for i := range addresses {
		addr, err := netip.ParseAddr(addresses[i].IP)
		switch {
		case err != nil:
		case port == 0:
			texts = append(texts, addr.String())
		default:
			texts = append(texts, netip.AddrPortFrom(addr, port).String())
		}
	}
	return texts
}
