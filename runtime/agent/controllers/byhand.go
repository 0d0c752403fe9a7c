package controllers

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
)

// Leaves reports whether a pod is one of a workload that was applied by hand, where those are not kept.
func (s *Source) Leaves(d *podspec.Desired) bool {
	owner := metav1.GetControllerOfNoCopy(d.Pod)
	if s.ByHand || d.Keeper != s.Name() || owner == nil {
		return false
	}
	records, err := s.lately()
	for _, r := range records {
		if controller.Owns(r.Key(), d.Pod) {
			return !s.declared.Brings(keeperOf(r, records))
		}
	}
	// Whose it is cannot be known while a record cannot be read.
	return err != nil
}

// lately are the stored workloads, read anew only if one has changed: all pods are asked for one after the other.
func (s *Source) lately() ([]*controller.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.Workloads.ChangedAt()
	if s.read != nil && s.readAt.Equal(at) {
		return s.read, nil
	}
	records, err := s.Workloads.All()
	if s.read, s.readAt = records, at; err != nil {
		s.read = nil
	}
	return records, err
}

// keeperOf is the source that brought a workload, or the CronJob that has made it; empty for one that was applied by hand.
func keeperOf(r *controller.Record, records []*controller.Record) string {
	for _, other := range records {
		if r.Workload.Job != nil && slices.Contains(controller.JobsOf(other.Key(), []*controller.Record{r}), r) {
			return other.Workload.Keeper
		}
	}
	return r.Workload.Keeper
}
