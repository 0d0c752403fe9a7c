package references

import (
	"context"
	"log/slog"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// RuntimeClasses keep the handlers of the cluster's RuntimeClasses in a file. Passes of pods that name one read it.
type RuntimeClasses struct {
	// Client is the REST client of node.k8s.io/v1.
	Client cache.Getter
	File   state.SharedFile
	// Confirm is called before each list and watch. An error keeps the file as it is. If nil, any server counts.
	Confirm func(ctx context.Context) error
	// Changed is called after each change of the file.
	Changed func()
	Log     *slog.Logger
}

// Run keeps the file up to date until the context ends. It writes nothing before the API server has answered.
func (c *RuntimeClasses) Run(ctx context.Context) {
	all := collection[*nodev1.RuntimeClass]{
		what: "the RuntimeClasses", client: c.Client, resource: "runtimeclasses",
		object: &nodev1.RuntimeClass{}, list: &nodev1.RuntimeClassList{},
		part: partOfClass, encode: encodeClasses, file: c.File,
		confirm: c.Confirm, written: c.Changed, log: c.Log,
	}
	all.run(ctx)
}

// partOfClass returns the name and the handler of a RuntimeClass. Admission in the API server wrote its overhead into
// the pods.
func partOfClass(c *nodev1.RuntimeClass) *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: c.Name}, Handler: c.Handler}
}

// encodeClasses leaves out classes that no API server accepts: the file is small.
func encodeClasses(all []*nodev1.RuntimeClass) ([]byte, error) {
	classes := model.RuntimeClasses{}
	for _, c := range all {
		if len(validation.IsDNS1123Subdomain(c.Name)) == 0 && len(validation.IsDNS1123Label(c.Handler)) == 0 {
			classes[c.Name] = c.Handler
		}
	}
	return classes.Encode()
}
