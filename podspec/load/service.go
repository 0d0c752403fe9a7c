package load

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
)

// newService decodes a Service; nil for another kind.
func newService(r *report, version string) *object {
	if version != "v1" || r.Kind != podspec.KindService {
		return nil
	}
	o := &object{report: r, service: &v1.Service{}}
	o.meta = &o.service.ObjectMeta
	r.decodeInto(o.service)
	return o
}

// validateService fills in the defaults of a new Service, and applies the API server's own rules for creating one
// (svcStrategy of registry/core/service).
func (a *reading) validateService(o *object) {
	before := len(o.report.kept)
	corev1.SetObjectDefaults_Service(o.service)
	errs, err := serviceErrors(o.service.DeepCopy())
	if err != nil {
		o.report.refuse(document.ClassInvalid, "", err.Error())
	}
	slices.SortFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Detail, b.Detail))
	})
	for _, err := range errs {
		if !isNameCompleted(o.meta, err) && !o.report.follows(err) {
			o.report.refuse(document.ClassInvalid, servicePlace(o.service, err), o.report.fieldDetail(err))
		}
	}
	checkGeneratedName(o.report, o.meta)
	o.damaged = o.damaged || len(o.report.kept) > before
	a.notes = append(a.notes, classify(o)...)
	a.noteService(o)
}

// servicePlace is where the document has what an error is about: the first address may be given in either of two fields, and
// the API server writes one field with a capital.
func servicePlace(s *v1.Service, err *field.Error) string {
	if err.Field == "spec.clusterIPs[0]" && len(s.Spec.ClusterIPs) == 0 {
		return "spec.clusterIP"
	}
	return strings.Replace(err.Field, "spec.LoadBalancerSourceRanges", "spec.loadBalancerSourceRanges", 1)
}

// serviceErrors is what the API server finds wrong with a new Service.
func serviceErrors(s *v1.Service) (field.ErrorList, error) {
	s.Name = completed(&s.ObjectMeta)
	if len(s.Spec.ClusterIPs) == 0 && s.Spec.ClusterIP != "" {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
	for i := range s.Spec.Ports {
		// A target port that is not given is that of the Service, and so would be what is wrong with it.
		if p := &s.Spec.Ports[i]; p.TargetPort == intstr.FromInt32(p.Port) {
			p.TargetPort = intstr.FromInt32(1)
		}
	}
	internal := &core.Service{}
	if s.Spec.Type == v1.ServiceTypeLoadBalancer && s.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal {
		// The server gives it a port before it looks.
		s.Spec.HealthCheckNodePort = cmp.Or(s.Spec.HealthCheckNodePort, 1)
	}
	err := corev1.Convert_v1_Service_To_core_Service(s, internal, nil)
	return validation.ValidateServiceCreate(internal), err
}

// noteService notes Services that lead nowhere.
func (a *reading) noteService(o *object) {
	switch {
	case o.damaged:
	case o.service.Spec.Type == v1.ServiceTypeExternalName:
		a.notes = append(a.notes, o.report.Note(o.String(), "spec.type", "Pods find Services in their hosts files, which have no names for other names: give a pod the address with hostAliases."))
	case len(o.service.Spec.Selector) == 0:
		a.notes = append(a.notes, o.report.Note(o.String(), "spec.selector", "A Service without a selector leads nowhere: the endpoints of a Service are its pods."))
	}
}
