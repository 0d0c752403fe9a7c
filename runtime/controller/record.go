package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// recordVersion is the version of a record's file format.
const recordVersion = 1

// Record is the stored state of a workload.
type Record struct {
	Version int `json:"version"`
	// Workload is the workload as applied last. Its template includes only objects from its own manifest.
	Workload *podspec.Workload `json:"workload"`
	// CreatedAt is when it was first applied.
	CreatedAt time.Time `json:"createdAt"`
	// Job is the status of a Job after its last pass; nil before the first.
	Job *batchv1.JobStatus `json:"job,omitempty"`
	// Cron is the record of a CronJob's runs; nil before the first.
	Cron *CronStatus `json:"cron,omitempty"`
	// Revisions are the versions of the template, the newest last.
	Revisions []Revision `json:"revisions"`
}

// Revision is one version of a workload's template.
type Revision struct {
	// Number counts the versions from 1. A version that is applied again gets the next number
	// (deployment.kubernetes.io/revision).
	Number   int64              `json:"number"`
	Template v1.PodTemplateSpec `json:"template"`
	// Pod is the pod of the template, with the objects from its manifest.
	Pod *podspec.Desired `json:"pod"`
	// At is when it was applied.
	At time.Time `json:"at"`
}

// KeyOf returns the key of a workload.
func KeyOf(w *podspec.Workload) state.ObjectKey {
	return state.ObjectKey{Namespace: w.Meta().Namespace, Kind: w.Kind(), Name: w.Meta().Name}
}

// Key returns the key of the record's workload.
func (r *Record) Key() state.ObjectKey { return KeyOf(r.Workload) }

// Revision returns the number of the newest revision.
func (r *Record) Revision() int64 {
	if len(r.Revisions) == 0 {
		return 0
	}
	return r.Revisions[len(r.Revisions)-1].Number
}

// next returns the record after a workload was applied over this one, which is nil for a new one.
func (r *Record) next(w *podspec.Workload, now time.Time) *Record {
	w = normal(w)
	next := &Record{Version: recordVersion, Workload: w, CreatedAt: now}
	if r != nil {
		next.CreatedAt, next.Job, next.Cron, next.Revisions = r.CreatedAt, r.Job, r.Cron, r.Revisions
	}
	template, _ := w.PodTemplate()
	if r != nil && sameText(template, &r.Revisions[len(r.Revisions)-1].Template) {
		switch {
		case w.Template.SameManifest(r.Workload.Template):
			return next
		case w.Template.Own().IsEmpty():
			// The template has lost its own objects, but has not changed: they came from --configmap, or are stored
			// now.
			next.Revisions = slices.Clone(next.Revisions)
			next.Revisions[len(next.Revisions)-1].Pod = w.Template
			return next
		}
	}
	next.Revisions = append(slices.Clip(next.Revisions), Revision{
		Number: r.revision() + 1, Template: *template.DeepCopy(), Pod: w.Template, At: now,
	})
	if most := 1 + historyLimit(w); len(next.Revisions) > most {
		next.Revisions = next.Revisions[len(next.Revisions)-most:]
	}
	return next
}

func (r *Record) revision() int64 {
	if r == nil {
		return 0
	}
	return r.Revision()
}

// historyLimit returns how many old versions of a template are kept (revisionHistoryLimit; 10 by default).
func historyLimit(w *podspec.Workload) int {
	const byDefault = 10
	limit := ptr.To[int32](byDefault)
	switch {
	case w.Deployment != nil:
		limit = w.Deployment.Spec.RevisionHistoryLimit
	case w.StatefulSet != nil:
		limit = w.StatefulSet.Spec.RevisionHistoryLimit
	case w.DaemonSet != nil:
		limit = w.DaemonSet.Spec.RevisionHistoryLimit
	}
	return int(ptr.Deref(limit, byDefault))
}

// from returns the record with the set, and the source, of an otherwise equal workload.
func (r *Record) from(same *podspec.Workload) *Record {
	other, w := *r, *r.Workload
	w.Set, other.Workload = same.Set, &w
	if moves(r.Workload, same) && !stays(r.Workload, same) {
		template := *w.Template
		w.Owner, w.Source, template.Source = same.Owner, same.Source, same.Source
		w.Template = &template
	}
	return &other
}

// stays reports whether a workload that is applied by hand still belongs to the agent's source, because it is applied
// from the source's own file.
func stays(before, after *podspec.Workload) bool {
	return objects.KeepsOwner(before.Owner, before.Source, after.Owner, after.Source)
}

// moves reports whether a workload that is applied again has another set or source. The file of one that is applied by
// hand does not matter, because podctl does not read it again.
func moves(before, after *podspec.Workload) bool {
	if stays(before, after) {
		return before.Set != after.Set
	}
	return before.Set != after.Set || before.Owner != after.Owner ||
		after.Owner != "" && before.Source != after.Source
}

// normal returns a workload as it is stored: without the objects that are looked up for each pass.
func normal(w *podspec.Workload) *podspec.Workload {
	kept := *w
	template := *w.Template
	template.Objects, template.Shared = w.Template.Own(), nil
	kept.Template = &template
	return &kept
}

// same reports whether two workloads are equal. Their origin and set do not count.
func same(a, b *podspec.Workload) bool {
	if !a.Template.SameManifest(b.Template) {
		return false
	}
	one, other := *a, *b
	one.Template, other.Template, one.Origin, other.Origin = nil, nil, podspec.Origin{}, podspec.Origin{}
	return sameText(one, other)
}

func sameText(a, b any) bool {
	one, err := json.Marshal(a)
	other, otherErr := json.Marshal(b)
	return err == nil && otherErr == nil && string(one) == string(other)
}

// decode decodes the file of a record. The contents must match the key. It omits errors of the parser, because they
// could repeat a value of a Secret.
func decode(key state.ObjectKey, text []byte) (*Record, error) {
	r := &Record{}
	if model.DecodeDocument(text, r) != nil ||
		r.Workload == nil || r.Workload.Template == nil || len(r.Revisions) == 0 {
		return nil, fmt.Errorf("%w: it is not a record of a workload", state.ErrDamaged)
	}
	if r.Version > recordVersion {
		return nil, fmt.Errorf("%w: its format is %s, and this podctl knows %d",
			state.ErrNewer, strconv.Itoa(r.Version), recordVersion)
	}
	err := r.Workload.Template.Check()
	for i := range r.Revisions {
		if r.Revisions[i].Pod == nil {
			err = errors.Join(err, errors.New("a revision has no pod"))
			continue
		}
		err = errors.Join(err, r.Revisions[i].Pod.Check())
	}
	if err != nil || !hasKind(r.Workload) || r.Key() != key {
		return nil, fmt.Errorf("%w: it belongs to another workload, or is incomplete", state.ErrDamaged)
	}
	return r, nil
}

// hasKind reports whether one kind of a workload is set.
func hasKind(w *podspec.Workload) bool {
	return w.Deployment != nil || w.ReplicaSet != nil ||
		w.StatefulSet != nil || w.DaemonSet != nil || w.Job != nil || w.CronJob != nil
}
