package observe

import (
	"fmt"

	"github.com/podctl/podctl/runtime/model"
)

// Others are the pods of the state directory beside one that take something of the node. One
// whose checkpoint cannot be read holds up no other.
func (o *Observer) Others(ref model.PodRef) ([]model.Admitted, error) {
	all, err := o.taken.All()
	if err != nil {
		return nil, fmt.Errorf("pod %s: looking at what other pods take: %w", ref, err)
	}
	others := []model.Admitted{}
	for _, taken := range all {
		if taken != nil && taken.Pod.UID != ref.UID {
			others = append(others, *taken)
		}
	}
	return others, nil
}
