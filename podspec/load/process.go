package load

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/expand"
	"github.com/podctl/podctl/podspec/fieldpath"
)

// collect adds the objects that a pod refers to. It returns the names of those that the caller stores.
func (a *assembly) collect(d *podspec.Desired, used map[*object]bool) (shared []podspec.ObjectName) {
	wanted := podspec.ReferredObjects(d.Pod)
	for _, o := range a.objects {
		if o.pod != nil || o.workload != nil || o.duplicate || o.meta.Namespace != d.Pod.Namespace {
			continue
		}
		if !slices.Contains(wanted, podspec.ObjectName{Kind: o.report.Kind, Name: o.meta.Name}) {
			continue
		}
		used[o] = true
		if o.Claim != nil && o.Volume == nil {
			a.notes = append(a.notes, o.report.Note(d.Pod.Namespace+"/"+d.Pod.Name, "spec",
				"A claim is a directory that podctl creates: its size, class and access modes have no effect."))
			continue
		}
		d.Objects.Put(o.object())
		if a.loader.Store && !o.extra {
			shared = append(shared, podspec.ObjectName{Kind: o.report.Kind, Name: o.meta.Name})
		}
	}
	return shared
}

// complete adds the stored objects that a pod's manifest lacks. It adds a note for stored objects that the manifest
// also has.
func (a *assembly) complete(o *object, d *podspec.Desired) *podspec.Desired {
	if a.loader.Stored == nil || a.failed != nil {
		return d
	}
	with, hidden, err := a.loader.Stored(d)
	if err != nil {
		a.failed = fmt.Errorf("pod %s: %w", o.key(), err)
		return d
	}
	for _, name := range hidden {
		at := a.names[name.Kind+" "+d.Pod.Namespace+"/"+name.Name]
		if a.loader.Store && !at.extra {
			continue // It will replace the stored one.
		}
		note := fmt.Sprintf("pod %s uses this one, not the stored %s of that name", o.key(), name.Kind)
		a.notes = append(a.notes, at.report.Note(o.key(), "metadata.name", note))
	}
	return with
}

// maxExpanded limits the bytes that all containers and volumes of a manifest take from ConfigMaps, Secrets and the
// pod's metadata. A reference of a few bytes can stand for megabytes.
const maxExpanded = 256 << 20

// checkExpanded refuses a pod whose variables, arguments and files exceed the limits of a process or of this machine.
// It counts before it builds any value. Values that only the node knows count as empty.
func (a *assembly) checkExpanded(o *object, d *podspec.Desired) {
	for _, ref := range podspec.Containers(d.Pod) {
		if !a.countExpanded(o, ref.Path, int64(expand.EnvironmentSize(d, ref.Container))) {
			return
		}
		checkProcesses(o.report, d, ref)
	}
	for i := range d.Pod.Spec.Volumes {
		if !a.countExpanded(o, fieldpath.Index("spec.volumes", i), expand.VolumeSize(d, &d.Pod.Spec.Volumes[i])) {
			return
		}
	}
}

// countExpanded counts bytes. It returns false above the limit, which is reported once.
func (a *assembly) countExpanded(o *object, path string, size int64) bool {
	if a.expanded > maxExpanded {
		return false
	}
	if a.expanded += size; a.expanded > maxExpanded {
		limit := o.report.At(document.ClassInvalid, path, fmt.Sprintf(
			"takes, with the containers and volumes before it, more than %d bytes from ConfigMaps, Secrets and "+
				"metadata: apply fewer pods at once", maxExpanded))
		limit.Limit = true
		o.report.add([]document.Problem{limit})
	}
	return a.expanded <= maxExpanded
}

// checkProcesses checks the variables and arguments of a container's processes.
func checkProcesses(r *report, d *podspec.Desired, ref podspec.ContainerRef) {
	env, err := expand.EnvironmentOf(d, ref, nil, nil)
	if err != nil {
		refuseArgument(r, "", err)
		return
	}
	if _, _, err = env.Command(ref.Command, ref.Args); err != nil {
		refuseArgument(r, ref.Path+".", err)
	}
	for path, action := range execActions(ref.Container) {
		if _, err = expand.StaticCommand(ref.Container, action.Command); err != nil {
			refuseArgument(r, ref.Path+"."+path+".exec.", err)
		}
	}
	for i := range ref.VolumeMounts {
		if _, _, err = env.SubPath(ref.VolumeMounts[i].SubPathExpr); err != nil {
			r.refuse(document.ClassInvalid, ref.Path+"."+fieldpath.Index("volumeMounts", i)+".subPathExpr", err.Error())
		}
	}
}

func refuseArgument(r *report, path string, err error) {
	if wrong := (*expand.ArgumentError)(nil); errors.As(err, &wrong) {
		r.refuse(document.ClassInvalid, path+wrong.Field, wrong.Err.Error())
	}
}

// execActions returns the commands of a container's probes and hooks by field.
func execActions(c *v1.Container) map[string]*v1.ExecAction {
	actions := map[string]*v1.ExecAction{}
	for field, probe := range map[string]*v1.Probe{
		"livenessProbe":  c.LivenessProbe,
		"readinessProbe": c.ReadinessProbe,
		"startupProbe":   c.StartupProbe,
	} {
		if probe != nil && probe.Exec != nil {
			actions[field] = probe.Exec
		}
	}
	if c.Lifecycle == nil {
		return actions
	}
	for field, hook := range map[string]*v1.LifecycleHandler{
		"lifecycle.postStart": c.Lifecycle.PostStart,
		"lifecycle.preStop":   c.Lifecycle.PreStop,
	} {
		if hook != nil && hook.Exec != nil {
			actions[field] = hook.Exec
		}
	}
	return actions
}
