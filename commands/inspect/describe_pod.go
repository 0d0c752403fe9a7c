package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
)

// pod writes a pod in the format of kubectl describe.
func (v *description) pod(d *podspec.Desired, pod *v1.Pod) {
	v.field(0, "Name", "%s", pod.Name)
	v.field(0, "Namespace", "%s", pod.Namespace)
	v.field(0, "UID", "%s", pod.UID)
	v.optional(0, "Manager", pod.Annotations[observe.AnnotationManager])
	v.field(0, "Source", "%s", cmp.Or(d.Source, table.NoValue))
	v.optional(0, "Set", d.Set)
	if pod.Status.StartTime != nil {
		v.field(0, "Start Time", "%s", v.when(pod.Status.StartTime.Time))
	}
	v.pairs("Labels", pod.Labels)
	v.pairs("Annotations", pod.Annotations)
	v.field(0, "Status", "%s", statusLine(pod))
	var ips []string
	for _, ip := range pod.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	v.field(0, "IPs", "%s", joinedOr(ips))
	if !d.Rebuilt { // podctl does not know them for other pods.
		v.field(0, "Restart Policy", "%s", pod.Spec.RestartPolicy)
		v.field(0, "QoS Class", "%s", pod.Status.QOSClass)
	}
	v.containers("Init Containers", podspec.InitContainers(pod), pod)
	v.containers("Containers", podspec.RegularContainers(pod), pod)
	v.containers("Debug Containers", podspec.EphemeralContainers(pod), pod)
	v.conditions(pod)
	v.volumes(d, pod)
}

func statusLine(pod *v1.Pod) string {
	text := string(pod.Status.Phase)
	if word := view.StatusText(pod); word != text {
		text += " (" + word + ")"
	}
	if pod.Status.Message != "" {
		text += ": " + pod.Status.Message
	}
	return text
}

func (v *description) conditions(pod *v1.Pod) {
	v.heading(0, "Conditions")
	for _, c := range pod.Status.Conditions {
		text := string(c.Status)
		if c.Reason != "" {
			text += "  " + c.Reason
		}
		if c.Message != "" {
			text += ": " + c.Message
		}
		v.field(1, string(c.Type), "%s", text)
	}
}

func (v *description) volumes(d *podspec.Desired, pod *v1.Pod) {
	if len(pod.Spec.Volumes) > 0 {
		v.heading(0, "Volumes")
	}
	for i := range pod.Spec.Volumes {
		vol := &pod.Spec.Volumes[i]
		text := volumeText(vol)
		if known, _ := podspec.VolumeNamed(d, vol.Name); known.Bound != nil {
			text += ", bound to host path " + known.Bound.Path
		}
		v.field(1, vol.Name, "%s", text)
	}
}

// volumeText describes the source of a volume.
func volumeText(vol *v1.Volume) string {
	switch {
	case vol.HostPath != nil:
		return "host path " + vol.HostPath.Path
	case vol.ConfigMap != nil:
		return "ConfigMap " + vol.ConfigMap.Name
	case vol.Secret != nil:
		return "Secret " + vol.Secret.SecretName
	case vol.PersistentVolumeClaim != nil:
		return "claim " + vol.PersistentVolumeClaim.ClaimName
	case vol.Ephemeral != nil:
		return "claim made for the pod"
	case vol.Image != nil:
		return "image " + vol.Image.Reference
	case vol.EmptyDir != nil && vol.EmptyDir.Medium != "":
		return "empty directory in " + string(vol.EmptyDir.Medium)
	case vol.EmptyDir != nil:
		return "empty directory"
	case vol.DownwardAPI != nil:
		return "downward API"
	case vol.Projected != nil:
		return fmt.Sprintf("projected from %d sources", len(vol.Projected.Sources))
	}
	return "of another kind"
}

func (v *description) containers(title string, refs []podspec.ContainerRef, pod *v1.Pod) {
	if len(refs) > 0 {
		v.heading(0, title)
	}
	for _, ref := range refs {
		v.container(ref, view.StatusOf(pod, ref.Name))
	}
}

func (v *description) container(ref podspec.ContainerRef, s *v1.ContainerStatus) {
	v.heading(1, ref.Name)
	v.field(2, "Container ID", "%s", cmp.Or(s.ContainerID, table.NoValue))
	v.field(2, "Image", "%s", ref.Image)
	v.field(2, "Image ID", "%s", cmp.Or(s.ImageID, table.NoValue))
	var ports []string
	for _, p := range ref.Ports {
		ports = append(ports, strings.TrimPrefix(fmt.Sprintf("%s %d/%s", p.Name, p.ContainerPort, p.Protocol), " "))
	}
	v.optional(2, "Ports", strings.Join(ports, ", "))
	v.optional(2, "Command", strings.Join(slices.Concat(ref.Command, ref.Args), " "))
	v.state("State", &s.State)
	if s.LastTerminationState.Terminated != nil {
		v.state("Last State", &s.LastTerminationState)
	}
	v.field(2, "Ready", "%t", s.Ready)
	v.field(2, "Restart Count", "%d", s.RestartCount)
	v.optional(2, "Limits", resourcesText(ref.Resources.Limits))
	v.optional(2, "Requests", resourcesText(ref.Resources.Requests))
	for _, t := range model.ProbeTypes() {
		if p := model.ProbeOf(ref.Container, t); p != nil {
			v.field(2, t.Title(), "%s", probeText(p))
		}
	}
	v.environment(ref.Container)
	v.mounts(ref.Container)
}

// environment lists variables. For values from other sources it shows the source, not the value.
func (v *description) environment(c *v1.Container) {
	if len(c.Env)+len(c.EnvFrom) > 0 {
		v.heading(2, "Environment")
	}
	for _, from := range c.EnvFrom {
		switch {
		case from.ConfigMapRef != nil:
			v.line(3, "all of ConfigMap %s", from.ConfigMapRef.Name)
		case from.SecretRef != nil:
			v.line(3, "all of Secret %s", from.SecretRef.Name)
		}
	}
	for _, e := range c.Env {
		v.line(3, "%s: %s", e.Name, envText(&e))
	}
}

func envText(e *v1.EnvVar) string {
	from := e.ValueFrom
	switch {
	case from == nil:
		return e.Value
	case from.SecretKeyRef != nil:
		return fmt.Sprintf("<key %s of Secret %s>", from.SecretKeyRef.Key, from.SecretKeyRef.Name)
	case from.ConfigMapKeyRef != nil:
		return fmt.Sprintf("<key %s of ConfigMap %s>", from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name)
	case from.FieldRef != nil:
		return "<" + from.FieldRef.FieldPath + ">"
	case from.ResourceFieldRef != nil:
		return "<" + from.ResourceFieldRef.Resource + ">"
	}
	return "<from a file>"
}

func (v *description) mounts(c *v1.Container) {
	if len(c.VolumeMounts) > 0 {
		v.heading(2, "Mounts")
	}
	for _, m := range c.VolumeMounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		v.line(3, "%s from %s (%s)", m.MountPath, m.Name, mode)
	}
}
