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

// Names become directories, cgroups, systemd units, labels, locks and arguments of CNI plugins. For each kind of name
// in a pod, a function in this file returns the API server's messages for an invalid name. The API server checks only
// some of these names, because it builds no paths from them. podctl checks all of them when it reads a manifest. Code
// that builds a path from a stored name checks it again.

// objectName is the rule for names of pods, workloads, ConfigMaps, Secrets and claims.
func objectName(name string) []string { return apivalidation.NameIsDNSSubdomain(name, false) }

// namespaceName is the rule for namespaces.
func namespaceName(name string) []string { return apivalidation.ValidateNamespaceName(name, false) }

// podUID is the rule for uids in a manifest. It allows uids of an API server and of a kubelet's static pods. Others
// must be safe in a path, in a cgroup and between the ";" of CNI's arguments.
func podUID(uid string) []string {
	const first, most = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 64
	if len(uid) <= most && strings.Trim(uid, first+"-") == "" && strings.IndexAny(uid, first) == 0 {
		return nil
	}
	return []string{"a uid has 1 to 64 letters, digits and hyphens, and does not begin with a hyphen: " +
		"it becomes part of the names of directories and cgroups"}
}

// hostIP is the rule for the address of a port, which is passed to CNI plugins.
func hostIP(ip string) []string {
	if _, err := netip.ParseAddr(ip); err != nil || strings.Contains(ip, "%") {
		return []string{"must be an IP address, for example 127.0.0.1 or ::1"}
	}
	return nil
}

// hostPath is the rule for paths of the machine. They must be absolute, because podctl and the runtime have different
// working directories.
func hostPath(path string) []string {
	if !strings.HasPrefix(path, "/") {
		return []string{"must be an absolute path"}
	}
	return nil
}

// checkName refuses a name that breaks its rule, unless a problem is already reported. The API server's rules check
// whether a name is required.
func (r *report) checkName(path, name string, rule func(string) []string) {
	if name == "" || r.hasProblem(path) {
		return
	}
	if wrong := rule(name); len(wrong) > 0 {
		err := field.Invalid(field.NewPath(path), name, strings.Join(wrong, "; "))
		r.refuse(document.ClassInvalid, path, r.fieldDetail(err))
	}
}

// checkPodNames checks the names in a pod.
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
		if !podspec.IsOfPod(mention.Kind, mention.Name) {
			r.checkName(mention.Path, mention.Name, objectName)
		}
	}
	if claim := vol.PersistentVolumeClaim; claim != nil {
		r.checkName(path+".persistentVolumeClaim.claimName", claim.ClaimName, objectName)
	}
	if source := vol.HostPath; source != nil {
		r.checkName(path+".hostPath.path", source.Path, hostPath)
	}
}

const (
	// maxFileName is the maximum length of a file name in bytes (NAME_MAX).
	maxFileName = 255
	// asideSuffix is the number of bytes added to the name of a log directory when its pod is deleted: a dot and the
	// time.
	asideSuffix = len(".20060102-150405.000000")
)

// checkLogDirectory refuses a pod whose log directory, NAMESPACE_NAME_UID, could not be created, or not be archived
// when the pod is deleted. All other names built from names are shorter or truncated. A claim or key alone has at most
// 253 bytes, and a uid with a systemd slice about 94. The name of a link to a log is truncated.
func checkLogDirectory(r *report, pod *v1.Pod) {
	length := len(pod.Namespace) + len("_") + len(pod.Name) + len("_") + len(pod.UID)
	if bound := maxFileName - asideSuffix; length > bound && !r.hasProblem("metadata.name") {
		r.refuse(document.ClassInvalid, "metadata.name", fmt.Sprintf(
			"has %d bytes, so the name of its log directory, NAMESPACE_NAME_UID, would have %d bytes; "+
				"at most %d are allowed: give the pod a shorter name",
			len(pod.Name), length, bound))
	}
}
