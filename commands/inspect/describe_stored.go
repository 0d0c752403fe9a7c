package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// describeObjects describes stored objects. A missing object does not hide the others.
func describeObjects(ctx context.Context, sess *session.Session, keys []state.ObjectKey) error {
	if len(keys) == 0 {
		return nil
	}
	l := &objectLook{sess: sess, o: &getOptions{}}
	users, err := l.users()
	if err != nil {
		return err
	}
	if l.data, err = sess.Flags.Layout().Claims().List(); err != nil {
		return err
	}
	found, missing := storedOf(l.o, keys, l.get, nil, (*podspec.Object).Meta)
	errs := []error{missing}
	for i, o := range found {
		if i > 0 {
			sess.IO.Print("")
		}
		errs = append(errs, l.describe(ctx, o, users(o)))
	}
	return errors.Join(errs...)
}

// get returns a stored object. For a claim that exists only as data it returns a claim without a spec.
func (l *objectLook) get(key state.ObjectKey) (*podspec.Object, error) {
	o, err := l.sess.Objects().Get(key)
	if absent := (*objects.NotFoundError)(nil); errors.As(err, &absent) && l.hasData(key) {
		return l.bareClaim(key), nil
	}
	return o, err
}

func (l *objectLook) describe(ctx context.Context, o *podspec.Object, users []string) error {
	l.setPhases([]*podspec.Object{o})
	v := &description{now: l.sess.IO.Now()}
	v.field(0, "Name", "%s", o.Meta().Name)
	v.field(0, "Namespace", "%s", o.Meta().Namespace)
	v.field(0, "Kind", "%s", o.Kind())
	if created := o.Meta().CreationTimestamp; !created.IsZero() {
		v.field(0, "Created", "%s", v.when(created.Time))
	}
	v.optional(0, "Source", o.Source)
	v.optional(0, "Set", o.Set)
	v.pairs("Labels", o.Meta().Labels)
	v.pairs("Annotations", o.Meta().Annotations)
	var unknown error
	switch {
	case o.Secret != nil:
		v.secret(o.Secret)
	case o.Claim != nil:
		v.claim(o)
	case o.Service != nil:
		unknown = v.service(ctx, l.sess, o.Service)
	default:
		v.configMap(o.ConfigMap)
	}
	label := "Used By"
	if o.Service != nil {
		label = "Pods"
	}
	v.field(0, label, "%s", joinedOr(users))
	_, err := fmt.Fprint(l.sess.IO.Out, v.text.String())
	return errors.Join(unknown, err)
}

// joinedOr joins the names, or returns table.NoValue if there are none.
func joinedOr(names []string) string {
	if len(names) == 0 {
		return table.NoValue
	}
	return strings.Join(names, ", ")
}

// secret shows the length of each value of a Secret, and never the value itself.
func (v *description) secret(s *v1.Secret) {
	v.field(0, "Type", "%s", s.Type)
	v.heading(0, "Data")
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		v.field(1, key, "%s", view.Count(len(s.Data[key]), "byte"))
	}
}

func (v *description) configMap(c *v1.ConfigMap) {
	v.heading(0, "Data")
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		v.heading(1, key)
		for line := range strings.Lines(c.Data[key]) {
			v.line(2, "%s", strings.TrimSuffix(line, "\n"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.BinaryData)) {
		v.field(1, key, "%s", view.Count(len(c.BinaryData[key]), "byte"))
	}
}

func (v *description) claim(o *podspec.Object) {
	c := o.Claim
	v.field(0, "Status", "%s", c.Status.Phase)
	if o.Volume != nil {
		v.field(0, "Volume", "%s (host path %s)", o.Volume.Name, o.Volume.Path)
	}
	size, modes := view.ClaimSpec(c)
	v.field(0, "Capacity", "%s", cmp.Or(size, table.NoValue))
	v.field(0, "Access Modes", "%s", joinedOr(modes))
	if class := c.Spec.StorageClassName; class != nil {
		v.field(0, "Storage Class", "%s", *class)
	}
}

// service shows the addresses and ports of a Service, and its current endpoints.
func (v *description) service(ctx context.Context, sess *session.Session, s *v1.Service) error {
	v.pairs("Selector", s.Spec.Selector)
	v.field(0, "Type", "%s", s.Spec.Type)
	v.field(0, "IPs", "%s", joinedOr(s.Spec.ClusterIPs))
	v.optional(0, "External Name", s.Spec.ExternalName)
	v.optional(0, "Session Affinity", string(s.Spec.SessionAffinity))
	found, unknown := endpointsOf(ctx, sess, []*v1.Service{s})
	if found == nil {
		v.field(0, "Endpoints", "not known: %v", unknown)
		return unknown
	}
	if len(s.Spec.Ports) == 0 {
		ready, notReady := endpointTexts(found[0], nil)
		v.field(0, "Endpoints", "%s", joinedOr(ready))
		v.field(0, "Not Ready", "%s", joinedOr(notReady))
		return unknown
	}
	v.heading(0, "Ports")
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		v.heading(1, strings.TrimPrefix(fmt.Sprintf("%s %d/%s", p.Name, p.Port, p.Protocol), " "))
		if p.TargetPort != (intstr.IntOrString{}) {
			v.field(2, "Target Port", "%s", p.TargetPort.String())
		}
		if p.NodePort != 0 {
			v.field(2, "Node Port", "%d", p.NodePort)
		}
		ready, notReady := endpointTexts(found[0], p)
		v.field(2, "Endpoints", "%s", joinedOr(ready))
		v.field(2, "Not Ready", "%s", joinedOr(notReady))
	}
	return unknown
}

// describeWorkloads describes workloads, before their pods. A missing workload does not hide the others.
func describeWorkloads(ctx context.Context, sess *session.Session, keys []state.ObjectKey) error {
	if len(keys) == 0 {
		return nil
	}
	records, missing := storedOf(&getOptions{}, keys, sess.Workloads().Get, nil, metaOf)
	rows, err := workloadRows(ctx, sess, records)
	if err != nil {
		return err
	}
	for i := range rows {
		v := &description{now: sess.IO.Now()}
		v.workload(&rows[i])
		if _, err := fmt.Fprintln(sess.IO.Out, v.text.String()); err != nil {
			return err
		}
	}
	return missing
}

func (v *description) workload(row *view.WorkloadRow) {
	w := row.Record.Workload
	v.field(0, "Name", "%s", w.Meta().Name)
	v.field(0, "Namespace", "%s", w.Meta().Namespace)
	v.field(0, "Kind", "%s", w.Kind())
	v.field(0, "Source", "%s", w.Source)
	v.pairs("Labels", w.Meta().Labels)
	if s := selectorOf(w); s != nil {
		v.field(0, "Selector", "%s", metav1.FormatLabelSelector(s))
	}
	if n := len(row.Record.Revisions); n > 0 {
		v.field(0, "Revision", "%d", row.Record.Revisions[n-1].Number)
	}
	s, job := &row.Expansion.Status, row.Expansion.Job
	switch {
	case w.CronJob != nil:
		v.field(0, "Schedule", "%s", w.CronJob.Spec.Schedule)
	case job != nil:
		v.field(0, "Pods Statuses", "%d Active / %d Succeeded / %d Failed", job.Active, job.Succeeded, job.Failed)
	default:
		v.field(0, "Replicas", "%d desired | %d updated | %d total | %d available",
			s.Desired, s.Updated, s.Current, s.Available)
	}
	if d, ok := view.WorkloadDocument(row).(*appsv1.Deployment); ok {
		v.field(0, "StrategyType", "%s", d.Spec.Strategy.Type)
		for _, c := range d.Status.Conditions {
			v.field(0, string(c.Type), "%s (%s)", c.Status, c.Reason)
		}
	}
	for _, wait := range row.Expansion.Waits {
		v.field(0, "Waiting", "%s: %s", wait.Pod, wait.Reason)
	}
}

// selectorOf returns the selector of a workload's pods. It is nil for kinds that need no selector.
func selectorOf(w *podspec.Workload) *metav1.LabelSelector {
	switch {
	case w.Deployment != nil:
		return w.Deployment.Spec.Selector
	case w.ReplicaSet != nil:
		return w.ReplicaSet.Spec.Selector
	case w.StatefulSet != nil:
		return w.StatefulSet.Spec.Selector
	case w.DaemonSet != nil:
		return w.DaemonSet.Spec.Selector
	}
	return nil
}
