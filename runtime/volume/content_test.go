package volume

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/podspec"
)

// contentOf returns the content of a pod's only volume.
func contentOf(t *testing.T, source v1.VolumeSource) (map[string]File, error) {
	t.Helper()
	c := newContext(t, emptyDirVolume("other"), v1.Volume{Name: "v", VolumeSource: source})
	return content(c, 1)
}

func plain(text string, mode fs.FileMode) File { return File{Data: []byte(text), Mode: mode, GID: -1} }

func configMap(items ...v1.KeyToPath) *v1.ConfigMapVolumeSource {
	return configMapVolume("", items...).ConfigMap
}

func secret(items ...v1.KeyToPath) *v1.SecretVolumeSource {
	return &v1.SecretVolumeSource{SecretName: "tls", Items: items, DefaultMode: new(int32(0o400))}
}

func fieldItem(path, field string, mode *int32) v1.DownwardAPIVolumeFile {
	return v1.DownwardAPIVolumeFile{Path: path, Mode: mode, FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: field}}
}

func resourceItem(path, container, name string) v1.DownwardAPIVolumeFile {
	return v1.DownwardAPIVolumeFile{Path: path, ResourceFieldRef: &v1.ResourceFieldSelector{
		ContainerName: container, Resource: name, Divisor: resource.MustParse("1"),
	}}
}

func TestContent(t *testing.T) {
	noMode := configMap()
	noMode.DefaultMode = nil
	optional := secret(v1.KeyToPath{Key: "cert", Path: "cert"}, v1.KeyToPath{Key: "gone", Path: "gone"})
	optional.Optional = new(true)
	absent := configMap()
	absent.Name, absent.Optional = "absent", new(true)
	tests := map[string]struct {
		source v1.VolumeSource
		want   map[string]File
	}{
		"all keys of a configMap": {
			v1.VolumeSource{ConfigMap: configMap()},
			map[string]File{"a": plain("1", 0o644), "b": plain("2", 0o644), "bin": plain("\x00\xff", 0o644)},
		},
		"no mode anywhere": {
			v1.VolumeSource{ConfigMap: noMode},
			map[string]File{"a": plain("1", 0o644), "b": plain("2", 0o644), "bin": plain("\x00\xff", 0o644)},
		},
		"chosen keys under other paths": {
			v1.VolumeSource{Secret: secret(
				v1.KeyToPath{Key: "cert", Path: "tls/./certs//site.pem"}, v1.KeyToPath{Key: "key", Path: "key", Mode: new(int32(0o600))},
			)},
			map[string]File{"tls/certs/site.pem": plain("CERT", 0o400), "key": plain("KEY", 0o600)},
		},
		"one key twice": {
			v1.VolumeSource{Secret: secret(v1.KeyToPath{Key: "key", Path: "x"}, v1.KeyToPath{Key: "key", Path: "y"})},
			map[string]File{"x": plain("KEY", 0o400), "y": plain("KEY", 0o400)},
		},
		"an optional key that is missing":   {v1.VolumeSource{Secret: optional}, map[string]File{"cert": plain("CERT", 0o400)}},
		"an optional object that is absent": {v1.VolumeSource{ConfigMap: absent}, map[string]File{}},
		"fields of the pod": {
			v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{DefaultMode: new(int32(0o440)), Items: []v1.DownwardAPIVolumeFile{
				fieldItem("name", "metadata.name", nil), fieldItem("uid", "metadata.uid", new(int32(0o444))),
				fieldItem("labels", "metadata.labels", nil), fieldItem("one", "metadata.labels['tier']", nil),
				fieldItem("notes", "metadata.annotations", nil),
			}}},
			map[string]File{
				"name": plain("web", 0o440), "uid": plain("u1", 0o444), "labels": plain("app=\"web\"\ntier=\"front\"", 0o440),
				"one": plain("front", 0o440), "notes": plain(`note="a \"quoted\"\nline"`, 0o440),
			},
		},
		"resources, the node's where none are set": {
			v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{
				resourceItem("cpu", "app", "limits.cpu"), resourceItem("memory", "app", "limits.memory"),
				resourceItem("asked", "app", "requests.cpu"),
			}}},
			map[string]File{"cpu": plain("2", 0o644), "memory": plain("67108864", 0o644), "asked": plain("0", 0o644)},
		},
		"several sources, the last one first": {
			v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: new(int32(0o640)), Sources: []v1.VolumeProjection{
				{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "conf"}, Items: []v1.KeyToPath{
					{Key: "a", Path: "same"}, {Key: "b", Path: "sub/b"},
				}}},
				{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "tls"}, Items: []v1.KeyToPath{
					{Key: "key", Path: "key", Mode: new(int32(0o400))},
				}}},
				{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{fieldItem("same", "metadata.name", nil)}}},
			}}},
			map[string]File{"same": plain("web", 0o640), "sub/b": plain("2", 0o640), "key": plain("KEY", 0o400)},
		},
		"an emptyDir is the pod's own": {v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}, nil},
		"a hostPath is the machine's":  {v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}}, nil},
		"no sources, an empty content": {v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}, map[string]File{}},
		"modes are permission bits only": {
			v1.VolumeSource{Secret: secret(v1.KeyToPath{Key: "key", Path: "key", Mode: new(int32(0o7777))})},
			map[string]File{"key": plain("KEY", 0o777)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := contentOf(t, test.source)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("content differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContentBelongsToTheGroup(t *testing.T) {
	c := newContext(t, v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{Secret: secret()}})
	c.Desired.Pod.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(2000))}
	got, err := content(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]File{
		"cert": {Data: []byte("CERT"), Mode: 0o440, GID: 2000}, "key": {Data: []byte("KEY"), Mode: 0o440, GID: 2000},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("content differs (-want +got):\n%s", diff)
	}
}

func TestStringDataOfASecret(t *testing.T) {
	c := newContext(t, v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{Secret: secret()}})
	c.Desired.Objects.Secrets["tls"] = &v1.Secret{StringData: map[string]string{"key": "TEXT"}}
	got, err := content(c, 0)
	if diff := cmp.Diff(map[string]File{"key": plain("TEXT", 0o400)}, got); diff != "" || err != nil {
		t.Errorf("content differs (-want +got), error %v:\n%s", err, diff)
	}
	if c.Desired.Objects.Secrets["tls"].Data != nil {
		t.Error("the manifest was changed")
	}
}

func TestUnresolvedContent(t *testing.T) {
	noMap := configMap()
	noMap.Name = "absent"
	noSecret := secret()
	noSecret.SecretName = "absent"
	projected := func(sources ...v1.VolumeProjection) v1.VolumeSource {
		return v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: sources}}
	}
	tests := map[string]struct {
		source v1.VolumeSource
		want   UnresolvedError
		text   string
	}{
		"configMap": {
			v1.VolumeSource{ConfigMap: noMap},
			UnresolvedError{Path: "spec.volumes[1].configMap.name", Kind: "ConfigMap", Name: "absent"},
			`spec.volumes[1].configMap.name: no manifest has a ConfigMap "absent"`,
		},
		"secret": {
			v1.VolumeSource{Secret: noSecret},
			UnresolvedError{Path: "spec.volumes[1].secret.secretName", Kind: "Secret", Name: "absent"},
			`no manifest has a Secret "absent": add one, or set optional: true`,
		},
		"key of a configMap": {
			v1.VolumeSource{ConfigMap: configMap(v1.KeyToPath{Key: "a", Path: "a"}, v1.KeyToPath{Key: "gone", Path: "g"})},
			UnresolvedError{Path: "spec.volumes[1].configMap.items[1].key", Kind: "ConfigMap", Name: "conf", Key: "gone"},
			`ConfigMap "conf" has no key "gone": add it, or set optional: true`,
		},
		"key of a projected secret": {
			projected(v1.VolumeProjection{Secret: &v1.SecretProjection{
				LocalObjectReference: v1.LocalObjectReference{Name: "tls"}, Items: []v1.KeyToPath{{Key: "gone", Path: "g"}},
			}}),
			UnresolvedError{Path: "spec.volumes[1].projected.sources[0].secret.items[0].key", Kind: "Secret", Name: "tls", Key: "gone"},
			`Secret "tls" has no key "gone"`,
		},
		"projected configMap": {
			projected(v1.VolumeProjection{
				ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "absent"}},
			}),
			UnresolvedError{Path: "spec.volumes[1].projected.sources[0].configMap.name", Kind: "ConfigMap", Name: "absent"},
			"spec.volumes[1].projected.sources[0].configMap.name",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := contentOf(t, test.source)
			unresolved := (*UnresolvedError)(nil)
			if !errors.As(err, &unresolved) {
				t.Fatalf("error %v, want an UnresolvedError", err)
			}
			if diff := cmp.Diff(test.want, *unresolved); diff != "" {
				t.Errorf("error differs (-want +got):\n%s", diff)
			}
			if !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %q does not contain %q", err, test.text)
			}
		})
	}
}

func TestAllProblemsOfAProjectedVolumeAreReported(t *testing.T) {
	_, err := contentOf(t, v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
		{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "absent"}}},
		{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}},
		{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{
			fieldItem("x", "spec.nonsense", nil), resourceItem("y", "nobody", "limits.cpu"), {Path: "z"},
		}}},
	}}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{
		`ConfigMap "absent"`, "sources[1].serviceAccountToken.path", "sources[2].downwardAPI.items[0]", "sources[2].downwardAPI.items[1]",
		"sources[2].downwardAPI.items[2]: it has neither fieldRef nor resourceFieldRef",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not contain %q", err, part)
		}
	}
}

func TestPathsOutOfTheVolumeAreRefused(t *testing.T) {
	for name, path := range map[string]string{
		"empty": "", "absolute": "/etc/passwd", "up": "../x", "up later": "a/../../x", "up and back": "a/../b", "two dots": "..",
		"a name of the writer": "..data", "a name of the writer, hidden": "./..data/x", "the volume itself": ".", "nothing but dots": "./.",
		"a null character": "a\x00b", "a long name": strings.Repeat("x", 256), "a long path": strings.Repeat("x/", 2100),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := contentOf(t, v1.VolumeSource{ConfigMap: configMap(v1.KeyToPath{Key: "a", Path: path})})
			if err == nil || !strings.Contains(err.Error(), "spec.volumes[1]: path") {
				t.Errorf("content %v, error %v; want an error about the path", got, err)
			}
		})
	}
}

func TestDigestSeesEveryDifference(t *testing.T) {
	base := func() map[string]File { return map[string]File{"a": plain("1", 0o644), "b": plain("2", 0o644)} }
	seen := map[string]string{Digest(base()): "the base"}
	for name, change := range map[string]func(map[string]File){
		"another text":     func(c map[string]File) { c["a"] = plain("3", 0o644) },
		"another mode":     func(c map[string]File) { c["a"] = plain("1", 0o600) },
		"another group":    func(c map[string]File) { c["a"] = File{Data: []byte("1"), Mode: 0o644, GID: 5} },
		"another path":     func(c map[string]File) { delete(c, "a"); c["c"] = plain("1", 0o644) },
		"one file less":    func(c map[string]File) { delete(c, "a") },
		"texts swapped":    func(c map[string]File) { c["a"], c["b"] = c["b"], c["a"] },
		"a shifted border": func(c map[string]File) { c["a"] = plain("12", 0o644); c["b"] = plain("", 0o644) },
		"nothing":          func(c map[string]File) { clear(c) },
		"a path in a text": func(c map[string]File) {
			clear(c)
			c["a"] = plain("1\"b\" 644 -1 1\n2", 0o644)
		},
	} {
		content := base()
		change(content)
		digest := Digest(content)
		if other, ok := seen[digest]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[digest] = name
	}
	if other := seen[Digest(base())]; other != "the base" {
		t.Error("the digest of the same content differs")
	}
}

// TestUnreadObjectsAreNotEmpty checks that an optional object that the API server has not sent is no empty volume, so
// that podctl removes no files.
func TestUnreadObjectsAreNotEmpty(t *testing.T) {
	source := configMap()
	source.Name, source.Optional = "absent", new(true)
	c := newContext(t, v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{ConfigMap: source}})
	if files, err := content(c, 0); err != nil || len(files) > 0 {
		t.Errorf("an absent object: %v %v", files, err)
	}
	c.Desired.Unread = map[podspec.ObjectName]podspec.UnreadError{{Kind: podspec.KindConfigMap, Name: "absent"}: {}}
	if _, err := content(c, 0); !errors.As(err, new(*UnresolvedError)) {
		t.Errorf("an unread object: %v", err)
	}
}

// TestResourcesOfFiles checks the resources of containers in files, with the values of a kubelet: a limit that is missing
// or zero is what the Node has for pods, also for an init container. Limits of the pod do not count.
func TestResourcesOfFiles(t *testing.T) {
	item := func(container, name, divisor string) v1.DownwardAPIVolumeFile {
		one := resourceItem(container+"-"+name, container, name)
		one.ResourceFieldRef.Divisor = resource.MustParse(divisor)
		return one
	}
	c := newContext(t, v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{
		Items: []v1.DownwardAPIVolumeFile{
			item("app", "limits.cpu", "1m"), item("app", "limits.memory", "1Mi"), item("app", "limits.ephemeral-storage", "1Gi"),
			item("app", "limits.hugepages-2Mi", "1"), item("app", "requests.cpu", "1"), item("app", "requests.memory", "0"),
			item("app", "requests.hugepages-2Mi", "1Mi"), item("init", "limits.cpu", "1"), item("init", "limits.memory", "1Mi"),
		},
	}}})
	c.Allocatable = v1.ResourceList{
		"cpu": resource.MustParse("3500m"), "memory": resource.MustParse("4Gi"),
		"ephemeral-storage": resource.MustParse("20Gi"), "hugepages-2Mi": resource.MustParse("8Mi"),
	}
	spec := &c.Desired.Pod.Spec
	spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{"cpu": resource.MustParse("1")}}
	spec.InitContainers = []v1.Container{{Name: "init"}}
	spec.Containers[0].Resources = v1.ResourceRequirements{
		Limits:   v1.ResourceList{"memory": resource.MustParse("64Mi"), "ephemeral-storage": resource.MustParse("0")},
		Requests: v1.ResourceList{"cpu": resource.MustParse("250m"), "hugepages-2Mi": resource.MustParse("4Mi")},
	}
	files, err := content(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"app-limits.cpu": "3500", "app-limits.memory": "64", "app-limits.ephemeral-storage": "20",
		"app-limits.hugepages-2Mi": "0", "app-requests.cpu": "1", "app-requests.memory": "0",
		"app-requests.hugepages-2Mi": "4", "init-limits.cpu": "4", "init-limits.memory": "4096",
	} {
		if got := string(files[name].Data); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestTrustAnchors checks the file with trust anchors: its owner is that of a token, and it is empty if optional anchors
// do not exist.
func TestTrustAnchors(t *testing.T) {
	source := &v1.ClusterTrustBundleProjection{Name: new("ca"), Path: "ca.pem"}
	c := newContext(t, v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
		DefaultMode: new(int32(0o444)), Sources: []v1.VolumeProjection{{ClusterTrustBundle: source}},
	}}})
	if _, err := content(c, 0); !errors.As(err, new(*UnresolvedError)) {
		t.Errorf("missing: %v", err)
	}
	source.Optional = new(true)
	if files, err := content(c, 0); err != nil || len(files) != 1 || len(files["ca.pem"].Data) != 0 || files["ca.pem"].Mode != 0o444 {
		t.Errorf("missing but optional: %v %v", files, err)
	}
	name := podspec.ObjectName{Kind: podspec.KindConfigMap, Name: podspec.BundleName(source)}
	c.Desired.Unread = map[podspec.ObjectName]podspec.UnreadError{name: {}}
	if _, err := content(c, 0); err == nil {
		t.Error("optional anchors that are not read yet are empty")
	}
	c.Desired.Unread = nil
	c.Desired.Objects.ConfigMaps[name.Name] = &v1.ConfigMap{Data: map[string]string{podspec.BundleKey: "x"}}
	c.Desired.Pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: new(int64(1234)), FSGroup: new(int64(2000))}
	files, err := content(c, 0)
	if got := files["ca.pem"]; err != nil || string(got.Data) != "x" || got.Mode != 0o640 || got.UID != 1234 || got.GID != 2000 {
		t.Errorf("%+v %v", files, err)
	}
}
