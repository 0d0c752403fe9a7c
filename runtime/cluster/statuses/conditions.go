package statuses

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/podstatus"
)

// mergeConditions sets the conditions. A mirror pod has no observed generation of its own.
func (m *Merge) mergeConditions(s *v1.PodStatus, ends bool) {
	merge := podstatus.ConditionMerge{Pod: m.API, API: m.API.Status.Conditions, Ends: ends, Now: m.Now}
	if m.Before != nil {
		merge.Before = m.Before.Conditions
	}
	if !podspec.IsMirror(m.API) {
		merge.Generation = m.applied()
	}
	s.Conditions = merge.Merge(s)
}
