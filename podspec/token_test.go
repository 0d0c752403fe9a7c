package podspec

import (
	"bytes"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func tokenSource(audience string, seconds *int64) *v1.ServiceAccountTokenProjection {
	return &v1.ServiceAccountTokenProjection{Audience: audience, ExpirationSeconds: seconds, Path: "p"}
}

// TestTokenNames checks that different tokens of a pod have different names, and that a bound name has the pod.
func TestTokenNames(t *testing.T) {
	names := map[string]bool{}
	for _, s := range []*v1.ServiceAccountTokenProjection{
		tokenSource("", nil), tokenSource("a", nil), tokenSource("", new(int64(600))), tokenSource("600", nil),
	} {
		names[TokenName(s)] = true
	}
	name := TokenName(tokenSource("", nil))
	if len(names) != 4 || name != TokenName(tokenSource("", new(int64(3600)))) || !IsToken(KindSecret, name) {
		t.Errorf("%v %s", names, name)
	}
	if IsToken(KindConfigMap, name) || IsToken(KindSecret, "token") {
		t.Error("another object is a token")
	}
	// A pod that names the token of another gets a name of its own.
	for _, written := range []string{name, BindName("other", name), "token:"} {
		uid, found := UnbindName(BindName("uid", written))
		if uid != "uid" || found != written {
			t.Errorf("%s: %s %s", written, uid, found)
		}
	}
}

// TestUnreadToken checks the messages for a token that the API server has not issued.
func TestUnreadToken(t *testing.T) {
	vol := v1.Volume{Name: "v"}
	vol.Projected = &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{ServiceAccountToken: tokenSource("", nil)}}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: "u"}}
	pod.Spec.ServiceAccountName, pod.Spec.Volumes = "robot", []v1.Volume{vol}
	pod.Spec.Containers = []v1.Container{{Name: "c", VolumeMounts: []v1.VolumeMount{{Name: "v", MountPath: "/v"}}}}
	if FindToken(pod, TokenName(tokenSource("", nil))) == nil || FindToken(pod, TokenName(tokenSource("a", nil))) != nil {
		t.Error("the wrong token is found")
	}
	d := New(pod, OwnerAPI, "u")
	d, err := d.WithShared(func(string, ObjectName) (*Object, error) { return nil, UnreadError{Reason: "no"} })
	if err != nil {
		t.Fatal(err)
	}
	missing := d.Unresolved()
	if len(missing) != 1 || missing[0].Path != "spec.volumes[0].projected.sources[0].serviceAccountToken.path" ||
		missing[0].Status != `MountVolume.SetUp failed for volume "v" : failed to fetch token: no` ||
		missing[0].Detail != "the API server has not issued the token of service account a/robot, which volume v names: no" {
		t.Errorf("%+v", missing)
	}
	if !UsesSecret(&vol) || strings.Contains(missing[0].Detail, tokenPrefix) {
		t.Error("the content is not treated as secret")
	}
}

// TestFSUser checks the user of all containers.
func TestFSUser(t *testing.T) {
	as := func(user *int64) v1.Container {
		return v1.Container{SecurityContext: &v1.SecurityContext{RunAsUser: user}}
	}
	one, two := new(int64(1)), new(int64(2))
	for name, test := range map[string]struct {
		pod        *int64
		containers []v1.Container
		want       *int64
	}{
		"none":            {nil, []v1.Container{{}}, nil},
		"of the pod":      {one, []v1.Container{{}, as(nil)}, one},
		"of containers":   {two, []v1.Container{as(one), as(one)}, one},
		"one without":     {nil, []v1.Container{as(one), {}}, nil},
		"different users": {one, []v1.Container{as(two), {}}, nil},
		"root":            {new(int64(0)), []v1.Container{{}}, new(int64(0))},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{
			SecurityContext: &v1.PodSecurityContext{RunAsUser: test.pod},
			InitContainers:  test.containers[:1], Containers: test.containers[1:],
		}}
		if got := FSUser(pod); !ptr.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTimesOfTokens checks that the times of a token are not secret.
func TestTimesOfTokens(t *testing.T) {
	data := map[string][]byte{"expires": []byte("2026-05-04T09:00:00Z"), "seconds": []byte("3607"), TokenKey: []byte("x.y.z")}
	token := TokenName(tokenSource("", nil))
	for name, want := range map[string]string{
		token: "x.y.z", BindName("u", token): "x.y.z", "other": "2026-05-04T09:00:00Z 3607 x.y.z",
	} {
		o := Objects{Secrets: map[string]*v1.Secret{name: {Data: data}}}
		if got := string(bytes.Join(o.SecretValues(), []byte(" "))); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
