package podspec_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/podspec/podspectest"
)

func TestUnresolved(t *testing.T) {
	m := load.Parse(input.Source{Name: "-", Text: []byte(strings.NewReplacer(
		"name: settings, key: mode", "name: settings, key: absent", "name: login, key", "name: absent, key").Replace(podspectest.WithEnv))})
	if m.Err() != nil {
		t.Fatalf("an unresolved reference is accepted: %v", m.Err())
	}
	var details []string
	for _, r := range m.Pods[0].Unresolved() {
		details = append(details, r.Container+": "+r.Detail)
	}
	want := `app: ConfigMap default/settings has no key "absent"; ` +
		`app: Secret default/absent is missing: apply a file that has it, or add it with --configmap FILE`
	if got := strings.Join(details, "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(m.Problems) != 2 || m.Problems[0].Class != document.ClassUnresolved || m.Problems[0].Line == 0 {
		t.Errorf("problems %v", m.Problems)
	}
}

// TestBinaryDataIsNotAVariable checks that a key only in binaryData can be a file, but not a variable.
func TestBinaryDataIsNotAVariable(t *testing.T) {
	const text = podspectest.Minimal + `    env:
    - {name: A, valueFrom: {configMapKeyRef: {name: c, key: blob}}}
    - {name: B, valueFrom: {configMapKeyRef: {name: c, key: blob, optional: true}}}
    volumeMounts: [{name: v, mountPath: /v}]
  volumes:
  - {name: v, configMap: {name: c, items: [{key: blob, path: blob}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
binaryData: {blob: aGVsbG8=}
`
	missing := podspectest.Desired(t, text).Unresolved()
	want := `ConfigMap default/c has no key "blob" in its data; binaryData is for volumes only`
	if len(missing) != 1 || missing[0].Container != "app" || missing[0].Detail != want {
		t.Errorf("missing %+v, want the first variable: %s", missing, want)
	}
}

// TestMissingInCluster checks a kubelet's texts for the references of a pod of the API server.
func TestMissingInCluster(t *testing.T) {
	const env = podspectest.Minimal + "    env: [{name: A, valueFrom: "
	const volume = podspectest.Minimal + "    volumeMounts: [{name: v, mountPath: /v}]\n  volumes: [{name: v, "
	const objects = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n" +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n"
	unread := map[podspec.ObjectName]podspec.UnreadError{
		{Kind: "ConfigMap", Name: "u"}: {Reason: "no answer"}, {Kind: "Secret", Name: "u"}: {Status: "too many"},
	}
	for text, want := range map[string]string{
		env + "{configMapKeyRef: {name: x, key: k}}}]": `configmap "x" not found | ConfigMap default/x does not exist in the API server`,
		env + "{secretKeyRef: {name: x, key: k}}}]":    `secret "x" not found | Secret default/x does not exist in the API server`,
		env + "{configMapKeyRef: {name: c, key: k}}}]": `couldn't find key k in ConfigMap default/c | ConfigMap default/c has no key "k"`,
		env + "{secretKeyRef: {name: s, key: k}}}]":    `couldn't find key k in Secret default/s | Secret default/s has no key "k"`,
		env + "{configMapKeyRef: {name: u, key: k, optional: true}}}]": "failed to sync configmap cache: timed out waiting for the condition | " +
			"ConfigMap default/u is unknown: it has not been read from the API server: no answer",
		env + "{configMapKeyRef: {name: x, key: k, optional: true}}}]": "",
		volume + "configMap: {name: x}}]": `MountVolume.SetUp failed for volume "v" : configmap "x" not found | ` +
			"ConfigMap default/x, which volume v names, does not exist in the API server",
		volume + "configMap: {name: c, items: [{key: k, path: k}]}}]": `MountVolume.SetUp failed for volume "v" : ` +
			`configmap references non-existent config key: k | ConfigMap default/c has no key "k"`,
		volume + "secret: {secretName: s, items: [{key: k, path: k}]}}]": `MountVolume.SetUp failed for volume "v" : ` +
			`references non-existent secret key: k | Secret default/s has no key "k"`,
		volume + "projected: {sources: [{secret: {name: u}}]}}]": `MountVolume.SetUp failed for volume "v" : too many | ` +
			"Secret default/u, which volume v names, is unknown: it has not been read from the API server",
	} {
		d := podspectest.FromAPI(t, text+objects)
		d.Unread = unread
		got := ""
		for _, r := range d.Unresolved() {
			got += r.Status + " | " + r.Detail
		}
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// TestMissingBundles checks the messages for trust anchors of the API server, which are those of a kubelet.
func TestMissingBundles(t *testing.T) {
	const failed = `MountVolume.SetUp failed for volume "v" : `
	byName := &v1.ClusterTrustBundleProjection{Name: new("ca"), Path: "ca"}
	bySigner := &v1.ClusterTrustBundleProjection{SignerName: new("a.io/b"), Path: "ca"}
	optional := &v1.ClusterTrustBundleProjection{Name: new("ca"), Path: "ca", Optional: new(true)}
	for what, c := range map[string]struct {
		source         *v1.ClusterTrustBundleProjection
		why            *podspec.UnreadError
		status, detail string
	}{
		"a name": {
			byName, nil, failed + `while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "ca" not found`,
			`ClusterTrustBundle "ca", which volume v names, does not exist in the API server`,
		},
		"a signer": {
			bySigner, nil, failed + "combination of signerName and labelSelector matched zero ClusterTrustBundles",
			`a ClusterTrustBundle of the signer "a.io/b", which volume v names, does not exist in the API server`,
		},
		"optional": {source: optional},
		"no answer": {
			optional, &podspec.UnreadError{}, failed + "ClusterTrustBundle informer has not yet synced",
			`ClusterTrustBundle "ca", which volume v names, is unknown: it has not been read from the API server`,
		},
		"not supported": {
			optional, &podspec.UnreadError{Reason: "why", Status: "text"}, failed + "text",
			`ClusterTrustBundle "ca", which volume v names, cannot be used: why`,
		},
	} {
		d := podspectest.FromAPI(t, podspectest.Minimal+
			"    volumeMounts: [{name: v, mountPath: /v}]\n  volumes: [{name: v, emptyDir: {}}]\n")
		d.Pod.Spec.Volumes[0].VolumeSource = v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
			Sources: []v1.VolumeProjection{{ClusterTrustBundle: c.source}},
		}}
		if c.why != nil {
			name := podspec.ObjectName{Kind: podspec.KindConfigMap, Name: podspec.BundleName(c.source)}
			d.Unread = map[podspec.ObjectName]podspec.UnreadError{name: *c.why}
		}
		status, detail := "", ""
		for _, r := range d.Unresolved() {
			status, detail = status+r.Status, detail+r.Detail
		}
		if status != c.status || detail != c.detail {
			t.Errorf("%s: %s\n%s", what, status, detail)
		}
	}
	all := &v1.ClusterTrustBundleProjection{SignerName: new("a.io/b"), LabelSelector: &metav1.LabelSelector{}}
	if podspec.BundleName(byName) != podspec.BundleName(optional) || podspec.BundleName(bySigner) == podspec.BundleName(all) {
		t.Error("the names of bundles do not depend on what the sources select")
	}
}

// TestUnreadObjects checks that a pod gets to know which of its objects are unknown, and forgets that later.
func TestUnreadObjects(t *testing.T) {
	d := podspectest.FromAPI(t, podspectest.Minimal+"    envFrom: [{configMapRef: {name: c}}, {secretRef: {name: s}}]")
	find := func(known bool) podspec.FindObject {
		return func(_ string, name podspec.ObjectName) (*podspec.Object, error) {
			if !known && name.Kind == podspec.KindSecret {
				return nil, podspec.UnreadError{Reason: "why"}
			}
			return nil, nil
		}
	}
	unknown, err := d.WithShared(find(false))
	if err != nil || len(unknown.Unread) != 1 || len(d.Unread) != 0 {
		t.Fatalf("%v: %v", err, unknown.Unread)
	}
	if known, err := unknown.WithShared(find(true)); err != nil || len(known.Unread) != 0 {
		t.Errorf("%v: %v", err, known.Unread)
	}
}
