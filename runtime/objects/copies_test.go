package objects

import (
	"os"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/state"
)

func newCopies(t *testing.T) Copies {
	t.Helper()
	return Copies{Dir: state.ClusterObjects(state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()})}
}

// TestCopies checks that copies are kept for their owner only, that an object that the API server does not have differs
// from an unknown one, and that nothing is assumed about a damaged copy.
func TestCopies(t *testing.T) {
	c, o := newCopies(t), secret("login", "pass")
	o.Secret.UID, o.Secret.ResourceVersion = "u", "7"
	key := KeyOf(o)
	if found, known, err := c.Find(key); found != nil || known || err != nil {
		t.Errorf("no copy: %v %t %v", found, known, err)
	}
	if err := c.Keep(key, Normal(o)); err != nil {
		t.Fatal(err)
	}
	found, known, err := c.Find(key)
	if err != nil || !known || string(found.Secret.Data["key"]) != "pass" || found.Secret.UID != "" {
		t.Errorf("%+v %t %v", found, known, err)
	}
	if !Same(found, Normal(o)) || Same(found, Normal(secret("login", "other"))) || Same(found, nil) || !Same(nil, nil) {
		t.Error("equal objects differ, or different ones are equal")
	}
	path, err := c.Dir.Path(key)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || int64(Size(found)) != info.Size() {
		t.Errorf("%v %v", info, err)
	}
	if err = c.Keep(key, nil); err != nil {
		t.Fatal(err)
	}
	if found, known, err = c.Find(key); found != nil || !known || err != nil {
		t.Errorf("an absent object: %v %t %v", found, known, err)
	}
	if err = os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, known, err = c.Find(key); found != nil || known || err != nil {
		t.Errorf("a damaged copy: %v %t %v", found, known, err)
	}
}

// TestSecretsHaveNoCopies checks that Secrets that must not be on disk have no copy, and that older ones are removed.
// That one does not exist stays known.
func TestSecretsHaveNoCopies(t *testing.T) {
	c, cm := newCopies(t), configMap("settings", "key", "value")
	for _, o := range []*podspec.Object{secret("login", "pass"), secret("other", "pass"), cm} {
		if err := c.Keep(KeyOf(o), Normal(o)); err != nil {
			t.Fatal(err)
		}
	}
	c.MemorySecrets = true
	if err := c.Keep(KeyOf(secret("login", "")), Normal(secret("login", "pass"))); err != nil {
		t.Fatal(err)
	}
	if keys, err := c.Dir.List(); err != nil || len(keys) != 2 {
		t.Errorf("after a change: %v %v", keys, err)
	}
	if err := c.HideSecrets(); err != nil {
		t.Fatal(err)
	}
	if keys, err := c.Dir.List(); err != nil || !slices.Equal(keys, []state.ObjectKey{KeyOf(cm)}) {
		t.Errorf("%v %v", keys, err)
	}
	if err := c.Keep(KeyOf(secret("login", "")), nil); err != nil {
		t.Fatal(err)
	}
	if found, known, err := c.Find(KeyOf(secret("login", ""))); found != nil || !known || err != nil {
		t.Errorf("one that does not exist: %v %t %v", found, known, err)
	}
}

// TestCopyNamesThatCannotExist checks that a name of a pod that no object can have is no path, and counts as absent.
func TestCopyNamesThatCannotExist(t *testing.T) {
	c := newCopies(t)
	for _, name := range []string{"", ".", "..", "../x", "A", "a b", "a/b", "a\nb", strings.Repeat("a", 254)} {
		key := state.ObjectKey{Namespace: "default", Kind: podspec.KindSecret, Name: name}
		if found, known, err := c.Find(key); found != nil || !known || err != nil {
			t.Errorf("%q: %v %t %v", name, found, known, err)
		}
	}
	key := state.ObjectKey{Namespace: "default", Kind: podspec.KindService, Name: "a"}
	if err := c.Keep(key, nil); err == nil {
		t.Error("a Service is kept")
	}
}

// TestEachPodUsesItsOwnObjects checks that a pod of the API server uses only copies, and any other pod only the store.
func TestEachPodUsesItsOwnObjects(t *testing.T) {
	s := newStore(t)
	c := Copies{Dir: state.ClusterObjects(s.locker.Layout)}
	put(t, s, configMap("both", "key", "store"), configMap("store", "key", "store"))
	for _, name := range []string{"both", "copy"} {
		if err := c.Keep(KeyOf(configMap(name)), configMap(name, "key", "copy")); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Keep(KeyOf(configMap("absent")), nil); err != nil {
		t.Fatal(err)
	}
	const text = podspectest.Minimal + "    envFrom: [{configMapRef: {name: both}}, {configMapRef: {name: store}}, " +
		"{configMapRef: {name: copy}}, {configMapRef: {name: absent}}]\n  volumes: [{name: v, persistentVolumeClaim: {claimName: p}}]\n"
	for _, load := range []func(testing.TB, string) *podspec.Desired{podspectest.Desired, podspectest.FromAPI} {
		d := load(t, text)
		want := map[bool]string{false: "both=store store=store", true: "both=copy copy=copy p? store?"}[d.FromCluster()]
		with := d
		for _, p := range []Provider{s, c} {
			var err error
			if with, err = p.Complete(t.Context(), with); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for name, cm := range with.Objects.ConfigMaps {
			got = append(got, name+"="+cm.Data["key"])
		}
		for name := range with.Unread {
			got = append(got, name.Name+"?")
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("owner %q: %q, want %q", d.Owner, got, want)
		}
	}
}

// TestCopiesOfClaims checks that a pod finds only its own claims, with their volumes, and why it cannot use one.
func TestCopiesOfClaims(t *testing.T) {
	c := newCopies(t)
	name := podspec.ObjectName{Kind: podspec.KindClaim, Name: "data"}
	const text = podspectest.Minimal + "  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]\n"
	d, bound := podspectest.FromAPI(t, text), &podspec.HostVolume{Name: "pv", Path: "/data", Local: true}
	keep := func(v *podspec.HostVolume, why *podspec.UnreadError) {
		key := CopyKey(d.Pod, name)
		meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
		o := &podspec.Object{Claim: &v1.PersistentVolumeClaim{ObjectMeta: meta}, Volume: v, Unusable: why}
		if err := c.Keep(key, Normal(o)); err != nil {
			t.Fatal(err)
		}
	}
	keep(bound, nil)
	with, err := c.Complete(t.Context(), d)
	if err != nil || len(with.Unread) != 0 || *with.Objects.Volumes["data"] != *bound || len(with.Shared) != 1 {
		t.Fatalf("%v %+v", err, with)
	}
	other := podspectest.FromAPI(t, text)
	other.Pod.UID = "other"
	if with, err = c.Complete(t.Context(), other); err != nil || len(with.Objects.Volumes) != 0 || len(with.Unread) != 1 {
		t.Errorf("another pod: %v %+v", err, with.Objects)
	}
	why := podspec.UnreadError{Reason: "PVC is not bound", Status: "x"}
	keep(nil, &why)
	if with, err = c.Complete(t.Context(), d); err != nil || len(with.Objects.Volumes) != 0 || with.Unread[name] != why {
		t.Errorf("not usable: %v %+v %+v", err, with.Objects, with.Unread)
	}
}

// TestCopiesOfTokens checks that a pod finds only its own tokens, also if it names that of another pod.
func TestCopiesOfTokens(t *testing.T) {
	c := newCopies(t)
	source := &v1.ServiceAccountTokenProjection{Path: "token"}
	name := podspec.ObjectName{Kind: podspec.KindSecret, Name: podspec.TokenName(source)}
	vol := v1.Volume{Name: "v"}
	vol.Projected = &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{ServiceAccountToken: source}}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"}}
	pod.Spec.Volumes = []v1.Volume{vol}
	token := secret("x", "value")
	token.Secret.Name = CopyKey(pod, name).Name
	if err := c.Keep(CopyKey(pod, name), Normal(token)); err != nil {
		t.Fatal(err)
	}
	other := pod.DeepCopy()
	other.UID = "u2"
	thief := other.DeepCopy()
	thief.Spec.Volumes[0].VolumeSource = v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: token.Secret.Name}}
	for _, p := range []*v1.Pod{pod, other, thief} {
		d := podspec.New(p, podspec.OwnerAPI, p.UID)
		d.Owner = podspec.OwnerAPI
		d, err := c.Complete(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if found := len(d.Objects.Secrets); (found == 1) != (p.UID == "u1") {
			t.Errorf("pod %s has %d tokens", p.UID, found)
		}
		if found := d.Objects.Secrets[name.Name]; p.UID == "u1" && (found == nil || string(found.Data["key"]) != "value") {
			t.Errorf("%+v", d.Objects.Secrets)
		}
	}
	keys, err := c.Dir.List()
	if err != nil || !slices.Equal(keys, []state.ObjectKey{CopyKey(pod, name)}) {
		t.Errorf("%v %v", keys, err)
	}
}
