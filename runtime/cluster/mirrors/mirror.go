package mirrors

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
)

// The annotations of mirror pods beside v1.MirrorPodAnnotationKey (kubelet: types.ConfigHashAnnotationKey,
// ConfigFirstSeenAnnotationKey). annotationOmitted has the paths of fields that the mirror pod does not have.
// annotationVersion has the Hash of the shown version if the other hashes are the uid.
const (
	annotationHash    = "kubernetes.io/config.hash"
	annotationSeen    = "kubernetes.io/config.seen"
	annotationVersion = "podctl.io/version"
	annotationOmitted = "podctl.io/omitted"
)

// omittedMax limits the value of annotationOmitted in bytes. All annotations of an object may have 256 KiB.
const omittedMax = 4096

// Hash returns the digest of a pod on a node. Two versions with the same digest have the same mirror pod. It has the
// form of a kubelet's, which also includes the node.
func Hash(pod *v1.Pod, node string) string {
	compared := v1.Pod{Spec: pod.Spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, Annotations: pod.Annotations,
	}}
	text, err := json.Marshal(&compared)
	if err != nil {
		text = []byte(pod.UID) // A pod that was read from JSON can be written as JSON.
	}
	sum := sha256.Sum256(append(text, "host:"+node...))
	return hex.EncodeToString(sum[:16])
}

// hashOf returns the hash of the version that a mirror pod shows.
func hashOf(mirror *v1.Pod) string {
	return cmp.Or(mirror.Annotations[annotationVersion], mirror.Annotations[v1.MirrorPodAnnotationKey])
}

// setHash sets the hash of a mirror pod. For a kubelet, it is the uid of the static pod (kubelet: applyDefaults). With
// another one, a kubelet that takes over the node would replace the mirror pod. It does not take over a pod with a uid
// that podctl has derived.
func setHash(notes map[string]string, p *Pod) {
	hash, pod := p.Hash, p.Desired.Pod
	if delete(notes, annotationVersion); pod.UID != podspec.UID(pod.Namespace, pod.Name) {
		hash, notes[annotationVersion] = string(pod.UID), p.Hash
	}
	notes[annotationHash], notes[v1.MirrorPodAnnotationKey] = hash, hash
}

// newMirror returns the mirror pod of a pod. The Node owns it.
func newMirror(p *Pod, node *v1.Node, now time.Time) *v1.Pod {
	from := p.Desired.Pod
	name := podspec.MirrorName(from.Namespace, from.Name, node.Name)
	spec, omitted := withoutReferences(from)
	spec.NodeName = node.Name
	// The API server computes both from the class.
	spec.Priority, spec.PreemptionPolicy = nil, nil
	tolerateAll(&spec)
	notes := maps.Clone(from.Annotations)
	if notes == nil {
		notes = map[string]string{}
	}
	setHash(notes, p)
	notes[podspec.AnnotationConfigSource] = sourceOf(p.Desired)
	notes[annotationSeen] = now.Format(time.RFC3339Nano)
	if delete(notes, annotationOmitted); len(omitted) > 0 {
		notes[annotationOmitted] = listed(omitted)
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name, Labels: maps.Clone(from.Labels), Annotations: notes,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true),
			}},
		},
		Spec: spec,
	}
}

// sourceOf returns the kind of the source of a pod (kubelet: types.FileSource, HTTPSource).
func sourceOf(d *podspec.Desired) string {
	if input.IsURL(d.Source) {
		return "http"
	}
	return "file"
}

// tolerateAll lets the mirror pod stay on a node with any taint (kubelet: applyDefaults).
func tolerateAll(spec *v1.PodSpec) {
	all := v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}
	isAll := func(t v1.Toleration) bool { return equality.Semantic.DeepEqual(t, all) }
	if !slices.ContainsFunc(spec.Tolerations, isAll) {
		spec.Tolerations = append(spec.Tolerations, all)
	}
}

// listed returns the first paths as one text. If some are left out, the text ends with an ellipsis.
func listed(paths []string) string {
	text := ""
	for i, path := range paths {
		if len(text)+len(path) > omittedMax {
			return text + ",…"
		}
		if i > 0 {
			text += ","
		}
		text += path
	}
	return text
}
