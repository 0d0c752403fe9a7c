package load

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
)

func pv(name, size, rest string) string {
	return fmt.Sprintf(
		"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: %s, labels: {name: %[1]s}}\nspec:\n"+
			"  capacity: {storage: %s}\n  accessModes: [ReadWriteOnce, ReadOnlyMany]\n"+
			"  hostPath: {path: /srv/%[1]s}\n  %[3]s\n---\n", name, size, rest)
}

func pvc(name, size, rest string) string {
	return fmt.Sprintf(
		"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s}\nspec:\n  accessModes: [ReadWriteOnce]\n"+
			"  resources: {requests: {storage: %s}}\n  %s\n---\n", name, size, rest)
}

const local = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec:\n  capacity: {storage: 9Gi}\n" +
	"  accessModes: [ReadWriteOnce]\n  storageClassName: local\n  local: {path: /mnt/disk}\n" +
	"  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, " +
	"values: [a]}]}]}}\n---\n"

// TestBoundClaims checks that claims are bound as by the API server's controller.
func TestBoundClaims(t *testing.T) {
	for name, c := range map[string]struct{ text, want, note string }{
		"the smallest that is large enough": {
			pv("a", "9Gi", "") + pv("b", "2Gi", "") + pv("c", "1Mi", "") + pvc("data", "1Gi", ""),
			"data=/srv/b",
			"metadata.name: no claim",
		},
		"volume that the claim names": {
			pv("a", "9Gi", "") + pv("b", "2Gi", "") + pvc("data", "1Gi", "volumeName: a"),
			"data=/srv/a",
			"",
		},
		"volume that names the claim": {
			pv("b", "2Gi", "") + pv("a", "9Gi", "claimRef: {name: data, namespace: default}") + pvc("data", "1Gi", ""),
			"data=/srv/a",
			"",
		},
		"volume for another claim": {
			pv("a", "2Gi", "claimRef: {name: other, namespace: default}") + pvc("data", "1Gi", ""),
			"",
			"",
		},
		"a name that is taken": {
			pv("a", "2Gi", "claimRef: {name: other, namespace: default}") + pvc("data", "1Gi", "volumeName: a"),
			"",
			"is for another claim",
		},
		"a name that is not there": {pvc("data", "1Gi", "volumeName: a"), "", "no PersistentVolume a"},
		"a name that is too small": {
			pv("a", "1Mi", "") + pvc("data", "1Gi", "volumeName: a"),
			"",
			"it has 1Mi, and the claim requests 1Gi",
		},
		"each one once": {
			pv("a", "2Gi", "") + pv("b", "3Gi", "") + pvc("one", "1Gi", "") + pvc("two", "1Gi", "") +
				pvc("three", "1Gi", ""),
			"one=/srv/a two=/srv/b",
			"",
		},
		"a name that two claims have": {
			pv("a", "2Gi", "") + pvc("one", "1Gi", "volumeName: a") + pvc("two", "1Gi", "volumeName: a"),
			"one=/srv/a",
			"bound to another claim",
		},
		"names come first": {
			pv("a", "2Gi", "") + pv("b", "3Gi", "") + pvc("one", "1Gi", "") + pvc("two", "1Gi", "volumeName: a"),
			"one=/srv/b two=/srv/a",
			"",
		},
		"a class": {
			pv("a", "2Gi", "storageClassName: fast") + local + pvc("one", "1Gi", "storageClassName: fast") +
				pvc("two", "1Gi", "storageClassName: local"),
			"one=/srv/a two=/mnt/disk",
			"has no effect: podctl runs pods on one machine",
		},
		"no class": {pv("a", "2Gi", "storageClassName: fast") + pvc("one", "1Gi", ""), "", ""},
		"labels": {
			pv("a", "2Gi", "") + pv("b", "3Gi", "") + pvc("one", "1Gi", "selector: {matchLabels: {name: b}}"),
			"one=/srv/b",
			"",
		},
		"modes": {strings.Replace(pv("a", "2Gi", ""), "ReadWriteOnce, ", "", 1) + pvc("one", "1Gi", ""), "", ""},
		"a reclaim policy": {
			pv("a", "2Gi", "persistentVolumeReclaimPolicy: Delete") + pvc("one", "1Gi", ""),
			"one=/srv/a",
			"never removes the data",
		},
	} {
		m := Parse(input.Source{Name: "m.yaml", Text: []byte(c.text)})
		if err := m.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var bound []string
		for _, o := range m.Objects {
			if o.Volume != nil {
				bound = append(bound, o.Claim.Name+"="+o.Volume.Path)
			}
		}
		if got := strings.Join(bound, " "); got != c.want {
			t.Errorf("%s: bound volumes %q, want %q", name, got, c.want)
		}
		if text := fmt.Sprint(m.NoEffect); !strings.Contains(text, c.note) {
			t.Errorf("%s: notes %s", name, text)
		}
	}
}

// TestVolumeOfABoundClaim checks that the pod mounts the path, and that a PersistentVolume of another type is skipped.
func TestVolumeOfABoundClaim(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n" +
		"spec: {containers: [{name: a, image: i, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, " +
		"persistentVolumeClaim: {claimName: data}}]}\n"
	m := Parse(input.Source{Name: "m.yaml", Text: []byte(pv("a", "2Gi", "") + pvc("data", "1Gi", "") + pod)})
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	d := m.Pods[0]
	if vol := podspec.Volumes(d)[0]; vol.HostPath == nil || vol.HostPath.Path != "/srv/a" ||
		*vol.HostPath.Type != v1.HostPathUnset || vol.Name != "v" {
		t.Errorf("%+v", vol)
	}
	nfs := strings.Replace(pv("a", "2Gi", ""), "hostPath: {path: /srv/a}", "nfs: {server: a, path: /b}", 1)
	m, _ = Loader{Workloads: true}.Parse(input.Source{Name: "m.yaml", Text: []byte(nfs + pod)})
	if d = m.Pods[0]; m.Err() != nil || len(m.Skipped) != 1 || podspec.Volumes(d)[0].PersistentVolumeClaim == nil {
		t.Errorf("%v %v", m.Err(), m.Skipped)
	}
	for text, want := range map[string]string{
		strings.Replace(pv("a", "2Gi", ""), "/srv/a", "/srv/../etc", 1):        "spec.hostPath.path",
		pv("a", "2Gi", "volumeMode: Block"):                                    "spec.volumeMode",
		strings.Replace(local, "/mnt/disk", "mnt", 1):                          "spec.local.path",
		strings.Replace(pv("a", "2Gi", ""), "capacity: {storage: 2Gi}", "", 1): "spec.capacity",
	} {
		if err := Parse(input.Source{Name: "m.yaml", Text: []byte(text)}).Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
