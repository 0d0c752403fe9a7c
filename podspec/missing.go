package podspec

import (
	"cmp"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podctl/podctl/podspec/quote"
)

// MissingReference is a required object or key that does not exist, or a claim that cannot be used.
type MissingReference struct {
	// Kind is ConfigMap, Secret or PersistentVolumeClaim. Key is empty if the whole object is missing.
	Kind, Name, Key string
	// Container is set if the reference is in its environment, Volume if it is in its content.
	Container, Volume string
	Path, Detail      string
	// Status is a kubelet's text for the status and the events of the pod. It is empty for a pod that the API server
	// does not own, because a kubelet has no such pods.
	Status string
}

// Unresolved returns the missing references of the pod: in the environment of its containers, and in the volumes that
// containers mount.
func (d *Desired) Unresolved() []MissingReference {
	var missing []MissingReference
	for _, ref := range Containers(d.Pod) {
		for _, r := range EnvReferences(ref) {
			missing = append(missing, d.Missing(r, ref.Name, "")...)
		}
	}
	mounted := mountedNames(d.Pod)
	for _, vol := range Volumes(d) {
		if !mounted[vol.Name] {
			continue
		}
		missing = append(missing, missingClaims(d, vol)...)
		for _, r := range VolumeReferences(vol.Volume, vol.Path) {
			missing = append(missing, d.Missing(r, "", vol.Name)...)
		}
	}
	return missing
}

// Missing returns the missing parts of a reference: the object, or keys of it. The reference belongs either to a
// container or to a volume. An object that was not read yet is missing even if it is optional.
func (d *Desired) Missing(r Reference, container, volume string) []MissingReference {
	out := MissingReference{Kind: r.Kind, Name: r.Name, Container: container, Volume: volume, Path: r.Path}
	if why, is := d.Unread[ObjectName{r.Kind, r.Name}]; is {
		if IsToken(r.Kind, r.Name) {
			return []MissingReference{out.unreadToken(d.Pod, why).inMemory(d)}
		}
		if r.bundle != nil {
			return []MissingReference{out.missingBundle(r.bundle, &why)}
		}
		out.Detail = fmt.Sprintf("%s %s/%s%s is unknown: %s", r.Kind, d.Pod.Namespace, r.Name, out.of(), why.Error())
		out.Status = out.inVolume(cmp.Or(why.Status, notSynced(r.Kind)))
		return []MissingReference{out.inMemory(d)}
	}
	if r.Optional {
		return nil
	}
	if !d.Objects.Has(r.Kind, r.Name) {
		if r.bundle != nil {
			return []MissingReference{out.missingBundle(r.bundle, nil)}
		}
		return []MissingReference{out.absent(d)}
	}
	var missing []MissingReference
	for _, key := range r.Keys {
		out.Key = key
		if d.Objects.hasKey(out) {
			continue
		}
		out.Detail = fmt.Sprintf("%s %s/%s has no key %q", r.Kind, d.Pod.Namespace, r.Name, key)
		if d.Objects.hasBinary(out) {
			out.Detail += " in its data; binaryData is for volumes only"
		}
		if d.FromCluster() {
			out.Status = out.noKey(d.Pod.Namespace)
		}
		missing = append(missing, out)
	}
	return missing
}

// absent completes a reference to an object that does not exist.
func (r MissingReference) absent(d *Desired) MissingReference {
	subject := fmt.Sprintf("%s %s/%s%s", r.Kind, d.Pod.Namespace, r.Name, r.of())
	if !d.FromCluster() {
		r.Detail = subject + " is missing: apply a file that has it, or add it with --configmap FILE"
		return r
	}
	r.Detail = subject + " does not exist in the API server"
	r.Status = r.inVolume(fmt.Sprintf("%s %q not found", strings.ToLower(r.Kind), r.Name))
	return r
}

// noKey returns a kubelet's text for a missing key (kubelet: makeEnvironmentVariables, configmap.MakePayload,
// secret.MakePayload).
func (r MissingReference) noKey(namespace string) string {
	switch {
	case r.Volume == "":
		return fmt.Sprintf("couldn't find key %s in %s %s/%s", r.Key, r.Kind, namespace, r.Name)
	case r.Kind == KindSecret:
		return r.inVolume("references non-existent secret key: " + r.Key)
	}
	return r.inVolume("configmap references non-existent config key: " + r.Key)
}

// inVolume returns a kubelet's text for the volume of a reference. For a container, the text stays as it is.
func (r MissingReference) inVolume(text string) string {
	if r.Volume == "" {
		return text
	}
	return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", r.Volume, text)
}

// notSynced returns a kubelet's text for an object that the API server has not sent in time (kubelet: objectCache.Get).
func notSynced(kind string) string {
	return "failed to sync " + strings.ToLower(kind) + " cache: timed out waiting for the condition"
}

// inMemory adds to the texts of an unread Secret why it is not on disk.
func (r MissingReference) inMemory(d *Desired) MissingReference {
	if d.MemorySecrets && r.Kind == KindSecret {
		const why = " (no copy on disk because of --offline-secrets=false)"
		r.Detail, r.Status = r.Detail+why, r.Status+why
	}
	return r
}

// of names the volume of a reference. It is empty for a container, because the message already names that.
func (r MissingReference) of() string {
	if r.Volume == "" {
		return ""
	}
	return ", which volume " + r.Volume + " names,"
}

// unreadToken completes a reference to a token that the API server has not issued (kubelet: GetServiceAccountToken).
func (r MissingReference) unreadToken(pod *v1.Pod, why UnreadError) MissingReference {
	r.Detail = fmt.Sprintf("the API server has not issued the token of service account %s/%s%s",
		pod.Namespace, pod.Spec.ServiceAccountName, strings.TrimSuffix(r.of(), ","))
	r.Status = why.Status
	if r.Status == "" {
		r.Status = r.inVolume("failed to fetch token: timed out waiting for the condition")
	}
	if why.Reason != "" {
		r.Detail += ": " + why.Reason
		if why.Status == "" {
			r.Status = r.inVolume("failed to fetch token: " + why.Reason)
		}
	}
	return r
}

// missingBundle completes a reference to trust anchors that the API server does not have, or has not sent (kubelet:
// GetTrustAnchorsByName, GetTrustAnchorsBySigner).
func (r MissingReference) missingBundle(
	s *v1.ClusterTrustBundleProjection, why *UnreadError,
) MissingReference {
	what, text := "a ClusterTrustBundle", "combination of signerName and labelSelector matched zero ClusterTrustBundles"
	if s.Name != nil {
		what = fmt.Sprintf("ClusterTrustBundle %.253q", *s.Name)
		text = fmt.Sprintf("while getting ClusterTrustBundle: "+
			"clustertrustbundle.certificates.k8s.io %.253q not found", *s.Name)
	} else if s.SignerName != nil {
		what = fmt.Sprintf("a ClusterTrustBundle of the signer %.571q", *s.SignerName)
	}
	subject := what + strings.TrimSuffix(r.of(), ",")
	switch {
	case why == nil:
		r.Detail = subject + ", does not exist in the API server"
	case why.Status != "":
		r.Detail, text = subject+", cannot be used: "+why.Reason, why.Status
	default:
		r.Detail, text = subject+", is unknown: "+why.Error(), "ClusterTrustBundle informer has not yet synced"
	}
	r.Status = r.inVolume(text)
	return r
}

// hasKey reports whether the key of a reference exists. Binary data counts for a file, but not for a variable (kubelet:
// makeEnvironmentVariables).
func (o *Objects) hasKey(r MissingReference) bool {
	if r.Kind == KindSecret {
		_, ok := o.Secrets[r.Name].Data[r.Key]
		return ok
	}
	_, text := o.ConfigMaps[r.Name].Data[r.Key]
	return text || (r.Volume != "" && o.hasBinary(r))
}

func (o *Objects) hasBinary(r MissingReference) bool {
	if r.Kind != KindConfigMap {
		return false
	}
	_, ok := o.ConfigMaps[r.Name].BinaryData[r.Key]
	return ok
}

// ClaimFailure returns a kubelet's text for a volume whose claim cannot be used (kubelet: WaitForAttachAndMount).
func ClaimFailure(volume, text string) string {
	return fmt.Sprintf("Unable to attach or mount volumes: unmounted volumes=[%s], unattached volumes=[], "+
		"failed to process volumes=[%s]: %s", volume, volume, text)
}

// missingClaims returns the claim of a volume of a pod of the API server, if it is not bound to a path of this machine
// or cannot be used. For other volumes it returns nothing.
func missingClaims(d *Desired, vol Volume) []MissingReference {
	if !vol.Unbound {
		return nil
	}
	name := vol.Claim
	out := MissingReference{Kind: KindClaim, Name: name, Volume: vol.Name, Path: vol.Path}
	why := d.Unread[ObjectName{KindClaim, name}]
	subject := fmt.Sprintf("claim %s/%s%s", d.Pod.Namespace, shownClaim(name), out.of())
	if why.Status != "" {
		out.Detail, out.Status = subject+" cannot be used: "+why.Reason, why.Status
		return []MissingReference{out}
	}
	out.Detail = subject + " is unknown: " + why.Error()
	reason := why.Reason
	if reason == "" {
		reason = "no answer yet"
	}
	out.Status = ClaimFailure(vol.Name, ClaimError(d.Pod.Namespace, name,
		"failed to fetch PVC from API server: "+reason))
	return []MissingReference{out}
}

// ClaimError returns a kubelet's text for a claim that cannot be used (kubelet: createVolumeSpec).
func ClaimError(namespace, name, text string) string {
	return fmt.Sprintf("error processing PVC %s/%s: %s", namespace, shownClaim(name), text)
}

// shownClaim returns the name of a claim for a message. A pod may name a claim by any text.
func shownClaim(name string) string {
	if len(name) > validation.DNS1123SubdomainMaxLength {
		name = name[:validation.DNS1123SubdomainMaxLength] + "…"
	}
	return quote.OneLine(name)
}
