package references

import (
	"context"
	"log/slog"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/state"
)

// Services keep the variables of the cluster's Services in a file. Containers that start read it.
type Services struct {
	// Client is the REST client of core/v1.
	Client cache.Getter
	File   state.SharedFile
	// Confirm is called before each list and watch. An error keeps the file as it is. If nil, any server counts.
	Confirm func(ctx context.Context) error
	Log     *slog.Logger
}

// Run keeps the file up to date until the context ends. It writes nothing before the API server has answered.
func (s *Services) Run(ctx context.Context) {
	all := collection[*v1.Service]{
		what: "the Services", client: s.Client, resource: "services",
		object: &v1.Service{}, list: &v1.ServiceList{}, part: partOfService,
		encode: func(services []*v1.Service) ([]byte, error) { return service.InCluster(services).Encode() },
		file:   s.File, confirm: s.Confirm, log: s.Log,
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
