package podspec_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
)

const claimed = podspectest.Minimal + "    volumeMounts: [{name: v, mountPath: /v}]\n" +
	"  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]\n"

// TestClaimsInCluster checks the messages for claims of the API server that cannot be used, and that such a claim is
// never a directory of podctl's own.
func TestClaimsInCluster(t *testing.T) {
	name := podspec.ObjectName{Kind: podspec.KindClaim, Name: "data"}
	const failed = "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process " +
		"volumes=[v]: error processing PVC default/data: failed to fetch PVC from API server: "
	const subject = "claim default/data, which volume v names, "
	for what, c := range map[string]struct {
		unread         podspec.UnreadError
		detail, status string
	}{
		"no answer": {podspec.UnreadError{}, subject + "is unknown: it has not been read from the API server", failed + "no answer yet"},
		"an error": {
			podspec.UnreadError{Reason: "refused"},
			subject + "is unknown: it has not been read from the API server: refused", failed + "refused",
		},
		"not usable": {podspec.UnreadError{Reason: "PVC is not bound", Status: "x"}, subject + "cannot be used: PVC is not bound", "x"},
	} {
		d := podspectest.FromAPI(t, claimed)
		d.Unread = map[podspec.ObjectName]podspec.UnreadError{name: c.unread}
		got := d.Unresolved()
		if len(got) != 1 || got[0].Detail != c.detail || got[0].Status != c.status || got[0].Volume != "v" || got[0].Container != "" {
			t.Errorf("%s: %+v", what, got)
		}
		if vol := podspec.Volumes(d)[0]; !vol.Unbound || vol.VolumeSource != (v1.VolumeSource{}) || vol.Name != "v" {
			t.Errorf("%s: %+v", what, vol)
		}
	}
	d := podspectest.FromAPI(t, claimed)
	d.Objects.Volumes = map[string]*podspec.HostVolume{"data": {Name: "pv", Path: "/data"}}
	if got := d.Unresolved(); len(got) != 0 || podspec.Volumes(d)[0].HostPath.Path != "/data" {
		t.Errorf("a bound claim: %+v", got)
	}
	own := podspectest.Desired(t, claimed)
	if got := own.Unresolved(); len(got) != 0 || podspec.Volumes(own)[0].Volume != &own.Pod.Spec.Volumes[0] {
		t.Errorf("a claim of podctl's own: %+v", got)
	}
}

// TestEphemeralClaims checks the claim of a generic ephemeral volume.
func TestEphemeralClaims(t *testing.T) {
	d := podspectest.FromAPI(t, claimed)
	vol := &d.Pod.Spec.Volumes[0]
	vol.VolumeSource = v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}
	if names := podspec.ReferredObjects(d.Pod); len(names) != 1 || names[0].Name != "web-v" || names[0].Kind != podspec.KindClaim {
		t.Errorf("%v", names)
	}
	d.Objects.Volumes = map[string]*podspec.HostVolume{"web-v": {Name: "pv", Path: "/data", Local: true}}
	if got := podspec.Volumes(d)[0]; !got.Bound.Local || got.HostPath.Path != "/data" || len(d.Unresolved()) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestHostileClaimNames checks that a claim may have any name: in messages it is short and on one line.
func TestHostileClaimNames(t *testing.T) {
	for _, name := range []string{"", "../../etc", "a\nb\x1b[31m", strings.Repeat("x", 100000)} {
		d := podspectest.FromAPI(t, claimed)
		d.Pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = name
		got := d.Unresolved()
		if len(got) != 1 || len(got[0].Detail)+len(got[0].Status) > 2000 || strings.ContainsAny(got[0].Detail+got[0].Status, "\n\x1b") {
			t.Errorf("%.20q: %.200v", name, got)
		}
		if key := podspec.BindName("u1", podspec.ClaimKey(name)); strings.ContainsAny(key, "/\n") || len(key) > 100 {
			t.Errorf("%.20q: %q", name, key)
		}
	}
}

// TestNamesOfOnePod checks the names of objects that podctl makes for one pod.
func TestNamesOfOnePod(t *testing.T) {
	for _, name := range []string{podspec.ClaimKey("data"), podspec.TokenName(&v1.ServiceAccountTokenProjection{})} {
		bound := podspec.BindName("u1", name)
		if uid, back := podspec.UnbindName(bound); uid != "u1" || back != name || bound == podspec.BindName("u2", name) {
			t.Errorf("%s: %s %s", bound, uid, back)
		}
	}
	for _, c := range []struct{ kind, name string }{
		{podspec.KindSecret, "token"}, {podspec.KindConfigMap, "token:a"}, {podspec.KindService, "claim:a"},
	} {
		if podspec.IsOfPod(c.kind, c.name) {
			t.Errorf("%v is of one pod", c)
		}
	}
}
