package load

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/fieldpath"
	"github.com/podctl/podctl/podspec/fields"
)

// kindReplicationController is a kind that podctl reads as a ReplicaSet.
const kindReplicationController = "ReplicationController"

// newReplicationController decodes a ReplicationController as a ReplicaSet, which differs only in the form of the
// selector.
func newReplicationController(r *report) *object {
	rc := &v1.ReplicationController{}
	r.decodeInto(rc)
	corev1.SetDefaults_ReplicationController(rc)
	set := &appsv1.ReplicaSet{ObjectMeta: rc.ObjectMeta, Spec: appsv1.ReplicaSetSpec{
		Replicas:        rc.Spec.Replicas,
		MinReadySeconds: rc.Spec.MinReadySeconds,
		Selector:        &metav1.LabelSelector{MatchLabels: rc.Spec.Selector},
	}}
	if rc.Spec.Template != nil {
		set.Spec.Template = *rc.Spec.Template
	}
	old := r.Kind
	r.Kind = podspec.KindReplicaSet
	workload := &podspec.Workload{Origin: podspec.Origin{Source: r.File}, ReplicaSet: set}
	return &object{report: r, workload: workload, meta: &set.ObjectMeta, oldKind: old}
}

// completeTemplate completes and checks the pod of a workload's template by itself, and classifies the workload.
func (o *object) completeTemplate(table *fields.Table) {
	template, path := o.workload.PodTemplate()
	pod := &object{
		report:      o.report.part(path, rawPart(o.report.JSON, path)),
		pod:         &v1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()},
		ofDaemonSet: o.workload.DaemonSet != nil,
	}
	pod.meta = &pod.pod.ObjectMeta
	pod.meta.Name, pod.meta.Namespace = o.workload.FirstPod(), o.meta.Namespace
	o.workload.MountClaims(pod.pod)
	pod.completePod(table)
	o.template = pod
	// Errors in the template were already found in its pod. The remaining ones are about fields that a template must
	// not have.
	o.report.kept = dropRepeated(o.report.kept, pod.report)
	o.takeNames(pod.report)
	o.notes = o.classify(fields.TableOf(fields.Kind(o.report.Kind)))
	if o.oldKind != "" {
		note := fmt.Sprintf("A %s is treated as a ReplicaSet of the same name.", o.oldKind)
		o.notes = append(o.notes, o.report.Note(o.String(), "kind", note))
	}
}

// addWorkload adds a workload, and adds the objects to the pod of its template.
func (a *assembly) addWorkload(m *Manifest, o *object, used map[*object]bool) {
	pod, w := *o.template, *o.workload
	pod.report = o.template.report.clone()
	a.reports = append(a.reports, pod.report)
	w.Template = a.makePod(m, &pod, used)
	a.notes = append(a.notes, o.notes...)
	if !o.damaged {
		m.Workloads = append(m.Workloads, &w)
	}
}

// takeNames moves problems of the pod's name and namespace, which the pod has from its workload, to the workload's
// report.
func (o *object) takeNames(pod *report) {
	var kept []document.Problem
	for _, p := range pod.kept {
		switch path := pod.relative(p.Path); path {
		case "metadata.name", "metadata.namespace":
			if !o.report.hasProblem(path) && !isNameGenerated(o.meta) {
				o.report.refuse(p.Class, path, p.Detail)
			}
		default:
			kept = append(kept, p)
		}
	}
	pod.kept = kept
}

// dropRepeated omits problems for which a part of the document already has a problem at the same path.
func dropRepeated(problems []document.Problem, part *report) (kept []document.Problem) {
	for _, p := range problems {
		if !part.hasProblem(part.relative(p.Path)) || part.relative(p.Path) == p.Path {
			kept = append(kept, p)
		}
	}
	return kept
}

// rawPart returns the JSON of the object at a field, or an empty object.
func rawPart(text []byte, path string) []byte {
	for _, name := range fieldpath.Split(path) {
		var fields map[string]json.RawMessage
		if json.Unmarshal(text, &fields) != nil || len(fields[name]) == 0 || string(fields[name]) == "null" {
			return []byte("{}")
		}
		text = fields[name]
	}
	return text
}
