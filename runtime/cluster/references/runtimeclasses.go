package references

import (
	"context"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podctl/podctl/runtime/model"
)

// KeepRuntimeClasses keeps the handlers of the cluster's RuntimeClasses in a file until the context ends. Passes of
// pods that name one read it. It writes nothing before the API server has answered.
func KeepRuntimeClasses(ctx context.Context, c Collection) {
	all := collection[*nodev1.RuntimeClass]{
		Collection: c, what: "the RuntimeClasses", resource: "runtimeclasses",
		object: &nodev1.RuntimeClass{}, list: &nodev1.RuntimeClassList{}, part: partOfClass, encode: encodeClasses,
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
