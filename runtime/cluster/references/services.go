package references

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/service"
)

// KeepServices keeps the variables of the cluster's Services in a file until the context ends. Containers that start
// read it. It writes nothing before the API server has answered.
func KeepServices(ctx context.Context, c Collection) {
	all := collection[*v1.Service]{
		Collection: c, what: "the Services", resource: "services",
		object: &v1.Service{}, list: &v1.ServiceList{}, part: partOfService,
		encode: func(services []*v1.Service) ([]byte, error) { return service.InCluster(services).Encode() },
	}
	all.run(ctx)
}

// partOfService returns the parts of a Service that variables depend on.
func partOfService(s *v1.Service) *v1.Service {
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name},
		Spec:       v1.ServiceSpec{Type: s.Spec.Type, ClusterIP: s.Spec.ClusterIP, Ports: s.Spec.Ports},
	}
}
