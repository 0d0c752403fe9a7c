package controllers

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
)

// Ignores reports whether a pod belongs to a workload that was applied by hand, if such workloads are not kept.
func (s *Source) Ignores(d *podspec.Desired) bool {
	if s.ByHand || d.Owner != s.Name() || metav1.GetControllerOfNoCopy(d.Pod) == nil {
		return false
	}
	records, err := s.cachedRecords()
	for _, r := range records {
		if controller.OwnsPod(r.Key(), d) {
			return !s.declared.Provides(ownerOf(r, records))
		}
	}
	// While a record cannot be read, the workload of the pod is unknown.
	return err != nil
}

// cachedRecords returns the stored workloads. It reads them again only if one has changed, because Ignores is called
// for each pod in turn.
func (s *Source) cachedRecords() ([]*controller.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.Workloads.ChangedAt()
	if s.records != nil && s.readAt.Equal(at) {
		return s.records, nil
	}
	records, err := s.Workloads.All()
	if s.records, s.readAt = records, at; err != nil {
		s.records = nil
	}
	return records, err
}

// ownerOf returns the source that owns a workload, or of the CronJob that has created it. It is empty for one that was
// applied by hand.
func ownerOf(r *controller.Record, records []*controller.Record) string {
	for _, other := range records {
		if r.Workload.Job != nil && slices.Contains(controller.JobsOf(other.Key(), []*controller.Record{r}), r) {
			return other.Workload.Owner
		}
	}
	return r.Workload.Owner
}
