package load

import (
	"fmt"
	"net/netip"
	"strings"

	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/fieldpath"
)

// Names become directories, cgroups, units of systemd, labels, locks and arguments of CNI
// plugins. Each kind of name in a pod has one function here, which says what is wrong with a
// name in the API server's words. That server checks some of them itself and others nowhere, as
// it makes no paths of them; here all are checked when a manifest is read. Where a path is made of
// a name that was stored, it is checked again.

// objectName is the rule for names of pods, workloads, ConfigMaps, Secrets and claims.
func objectName(name string) []string { return apivalidation.NameIsDNSSubdomain(name, false) }

// namespaceName is the rule for namespaces.
func namespaceName(name string) []string { return apivalidation.ValidateNamespaceName(name, false) }

// podUID is the rule for uids that a manifest gives. It allows what an API server gives and what a kubelet makes for a
// static pod, and whatever else is safe in a path, in a cgroup and between the ";" of CNI's arguments.
func podUID(uid string) []string {
	const first, most = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 64
	if len(uid) <= most && strings.Trim(uid, first+"-") == "" && strings.IndexAny(uid, first) == 0 {
		return nil
	}
	return []string{"a uid has 1 to 64 letters, digits and hyphens, and does not begin with a hyphen: it becomes part of the names of directories and cgroups"}
}

// hostIP is the rule for the address of a port, which is handed to CNI plugins.
func hostIP(ip string) []string {
	if _, err := netip.ParseAddr(ip); err != nil || strings.Contains(ip, "%") {
		return []string{"must be an IP address, for example 127.0.0.1 or ::1"}
	}
	return nil
}

// hostPath is the rule for paths of the machine: podctl and the runtime have different
// working directories.
func hostPath(path string) []string {
	if !strings.HasPrefix(path, "/") {
		return []string{"must be an absolute path"}
	}
	return nil
}

// checkName refuses a name that breaks its rule, unless there is a problem of it already. The
// API server's rules say whether a name must be given.
func (r *report) checkName(path, name string, rule func(string) []string) {
	if name == "" || r.hasProblem(path) {
		return
	}
	if wrong := rule(name); len(wrong) > 0 {
		err := field.Invalid(field.NewPath(path), name, strings.Join(wrong, "; "))
		r.refuse(document.ClassInvalid, path, r.fieldDetail(err))
	}
}

// checkPodNames checks what a pod names.
func checkPodNames(r *report, pod *v1.Pod) {
	r.checkName("metadata.name", pod.Name, objectName)
	r.checkName("metadata.namespace", pod.Namespace, namespaceName)
	r.checkName("metadata.uid", string(pod.UID), podUID)
	checkLogDirectory(r, pod)
	for _, ref := range podspec.Containers(pod) {
		r.checkName(ref.Path+".name", ref.Name, validation.IsDNS1123Label)
		for _, mention := range podspec.EnvReferences(ref) {
			r.checkName(strings.TrimSuffix(mention.Path, ".name")+".name", mention.Name, objectName)
		}
		for i := range ref.Ports {
			r.checkName(ref.Path+"."+fieldpath.Index("ports", i)+".hostIP", ref.Ports[i].HostIP, hostIP)
		}
	}
	for i := range pod.Spec.Volumes {
		checkVolumeNames(r, fieldpath.Index("spec.volumes", i), &pod.Spec.Volumes[i])
	}
	for i, ref := range pod.Spec.ImagePullSecrets {
		r.checkName(fieldpath.Index("spec.imagePullSecrets", i)+".name", ref.Name, objectName)
	}
}

func checkVolumeNames(r *report, path string, vol *v1.Volume) {
	r.checkName(path+".name", vol.Name, validation.IsDNS1123Label)
	for _, mention := range podspec.VolumeReferences(vol, path) {
		r.checkName(mention.Path, mention.Name, objectName)
	}
	if claim := vol.PersistentVolumeClaim; claim != nil {
		r.checkName(path+".persistentVolumeClaim.claimName", claim.ClaimName, objectName)
	}
	if source := vol.HostPath; source != nil {
		r.checkName(path+".hostPath.path", source.Path, hostPath)
	}
}

const (
	// maxFileName is how long the name of a file can be, in bytes (NAME_MAX).
	maxFileName = 255
	// asideSuffix is how many bytes are added to the name of a log directory when its pod
	// is deleted: a dot and the time.
	asideSuffix = len(".20060102-150405.000000")
)

// checkLogDirectory refuses a pod whose log directory, NAMESPACE_NAME_UID, could not be made,
// or not be set aside when the pod is deleted. Whatever else is made of names is shorter: the
// longest has a name of 253 bytes alone (a claim, a key), a uid of 64 with some thirty more (a
// slice of systemd), or is cut (a link to a log).
func checkLogDirectory(r *report, pod *v1.Pod) {
	length := len(pod.Namespace) + len("_") + len(pod.Name) + len("_") + len(pod.UID)
	if bound := maxFileName - asideSuffix; length > bound && !r.hasProblem("metadata.name") {
		r.refuse(document.ClassInvalid, "metadata.name", fmt.Sprintf(
			"has %d bytes, which makes the log directory's name NAMESPACE_NAME_UID one of %d bytes; it can have at most %d: give the pod a shorter name",
			len(pod.Name), length, bound))
	}
}
