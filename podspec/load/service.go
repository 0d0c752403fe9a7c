package load

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
)

// convertService converts a new Service to the form that the API server validates (svcStrategy of
// registry/core/service).
func convertService(s *v1.Service, to *core.Service, scope conversion.Scope) error {
	if len(s.Spec.ClusterIPs) == 0 && s.Spec.ClusterIP != "" {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
	for i := range s.Spec.Ports {
		// A missing target port defaults to the port. Set a valid one, so that an invalid port is not reported twice.
		if p := &s.Spec.Ports[i]; p.TargetPort == intstr.FromInt32(p.Port) {
			p.TargetPort = intstr.FromInt32(1)
		}
	}
	spec := &s.Spec
	if spec.Type == v1.ServiceTypeLoadBalancer && spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal {
		// The API server assigns a port before it validates.
		spec.HealthCheckNodePort = cmp.Or(spec.HealthCheckNodePort, 1)
	}
	return corev1.Convert_v1_Service_To_core_Service(s, to, scope)
}

// noteService adds notes for Services without endpoints.
func (a *reading) noteService(o *object) {
	switch {
	case o.damaged:
	case o.Service.Spec.Type == v1.ServiceTypeExternalName:
		a.notes = append(a.notes, o.report.Note(o.String(), "spec.type", "Pods find Services in their hosts files, "+
			"which cannot map one name to another: add the address with hostAliases."))
	case len(o.Service.Spec.Selector) == 0:
		a.notes = append(a.notes, o.report.Note(o.String(), "spec.selector",
			"A Service without a selector has no endpoints: only its pods can be endpoints."))
	}
}
