package load

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
)

// fuzzed is a Pod with the objects it refers to, in which one name is replaced.
type fuzzed struct {
	namespace, pod, uid, container, volume, claim, config, secret, configKey, binaryKey, secretKey, textKey, item, hostPath string
}

// fields returns the names that can be replaced.
func (f *fuzzed) fields() []*string {
	return []*string{
		&f.namespace, &f.pod, &f.uid, &f.container, &f.volume, &f.claim, &f.config, &f.secret, &f.configKey, &f.binaryKey,
		&f.secretKey, &f.textKey, &f.item, &f.hostPath,
	}
}

func (f *fuzzed) objects() []any {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: f.namespace} }
	object := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }
	item := []v1.KeyToPath{{Key: f.configKey, Path: f.item}}
	pod := &v1.Pod{TypeMeta: object("Pod"), ObjectMeta: meta(f.pod)}
	pod.UID = types.UID(f.uid)
	pod.Spec.Containers = []v1.Container{{Name: f.container, Image: "i", VolumeMounts: []v1.VolumeMount{{Name: f.volume, MountPath: "/v"}}}}
	pod.Spec.Volumes = []v1.Volume{
		{Name: f.volume, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "v2", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: f.claim}}},
		{
			Name: "v3",
			VolumeSource: v1.VolumeSource{
				ConfigMap: &v1.ConfigMapVolumeSource{
					LocalObjectReference: v1.LocalObjectReference{Name: f.config},
					Items:                item,
				},
			},
		},
		{Name: "v4", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: f.secret}}},
		{Name: "v5", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: f.hostPath}}},
	}
	return []any{
		pod,
		&v1.PersistentVolumeClaim{TypeMeta: object("PersistentVolumeClaim"), ObjectMeta: meta(f.claim), Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
		&v1.ConfigMap{
			TypeMeta:   object("ConfigMap"),
			ObjectMeta: meta(f.config),
			Data:       map[string]string{f.configKey: "a"},
			BinaryData: map[string][]byte{f.binaryKey: nil},
		},
		&v1.Secret{
			TypeMeta:   object("Secret"),
			ObjectMeta: meta(f.secret),
			Data:       map[string][]byte{f.secretKey: nil},
			StringData: map[string]string{f.textKey: "a"},
		},
	}
}

// FuzzNames checks an accepted manifest with arbitrary names. Each path built from them has the name as one element,
// and each argument of a CNI plugin has it as one value.
func FuzzNames(f *testing.F) {
	for _, name := range append(badNames, "a", "a-1.b", "A_1", "..2026", "a;IP=10.94.0.77", "a\x00b", "/srv",
		strings.Repeat("a", 63), strings.Repeat("a.b", 84), "e\u0301") {
		for field := range (&fuzzed{}).fields() {
			f.Add(uint8(field), name)
		}
	}
	f.Fuzz(func(t *testing.T, field uint8, name string) {
		all := &fuzzed{"ns", "pod", "uid", "app", "vol", "claim", "config", "secret", "k1", "k2", "k3", "k4", "k5", "/x"}
		fields := all.fields()
		*fields[int(field)%len(fields)] = name
		a := &assembly{}
		for _, object := range all.objects() {
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			a.addSource(input.Source{Name: "fuzz", Text: []byte(forYAML(string(text)))})
		}
		m := a.manifest()
		for _, p := range m.Problems {
			if strings.ContainsFunc(p.String(), unicode.IsControl) {
				t.Errorf("problem with control characters: %q", p)
			}
		}
		if m.Err() == nil {
			for _, d := range m.Pods {
				safePaths(t, d)
			}
		}
	})
}

// safePaths checks the paths that runtime packages build from a pod's names.
func safePaths(t *testing.T, d *podspec.Desired) {
	t.Helper()
	pod := d.Pod
	aside := strings.Join([]string{pod.Namespace, pod.Name, string(pod.UID)}, "_") + ".20060102-150405.000000"
	elements := []string{
		aside,
		string(pod.UID),
		string(pod.UID) + ".lock",
		"kubepods-besteffort-pod" + string(pod.UID) + ".slice",
		pod.Namespace,
		pod.Name,
	}
	for _, ref := range podspec.Containers(pod) {
		elements = append(elements, ref.Name)
	}
	for i := range pod.Spec.Volumes {
		vol := &pod.Spec.Volumes[i]
		elements = append(elements, vol.Name, "wrapped_"+vol.Name)
		if vol.PersistentVolumeClaim != nil {
			elements = append(elements, vol.PersistentVolumeClaim.ClaimName)
		}
		if vol.HostPath != nil && !filepath.IsAbs(vol.HostPath.Path) {
			t.Errorf("accepted a relative hostPath %q", vol.HostPath.Path)
		}
	}
	for _, o := range podspec.ReferredObjects(pod) {
		elements = append(elements, o.Name)
	}
	for _, element := range elements {
		if !isElement(element) || strings.HasPrefix(element, ".") || strings.ContainsAny(element, ";=") {
			t.Errorf("accepted a name that is not a single path element: %q", element)
		}
	}
	for _, key := range keysOf(d) {
		// Files may be hidden, but names that begin with two dots are reserved in a volume.
		if !isElement(key) || strings.HasPrefix(key, "..") {
			t.Errorf("accepted a key that is not a single path element: %q", key)
		}
	}
}

func keysOf(d *podspec.Desired) []string {
	var keys []string
	for _, cm := range d.Objects.ConfigMaps {
		for key := range cm.Data {
			keys = append(keys, key)
		}
		for key := range cm.BinaryData {
			keys = append(keys, key)
		}
	}
	for _, s := range d.Objects.Secrets {
		for key := range s.Data {
			keys = append(keys, key)
		}
	}
	return keys
}

func isElement(name string) bool {
	return filepath.IsLocal(name) && name != "." && len(name) <= 255 &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == '/' || unicode.IsControl(r) })
}
