package objects

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	return New(&state.Locker{Layout: state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}, Waiting: func(string) {}},
		func() time.Time { now = now.Add(time.Hour); return now })
}

func configMap(name string, data ...string) *podspec.Object {
	cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{}}
	for i := 0; i < len(data); i += 2 {
		cm.Data[data[i]] = data[i+1]
	}
	return &podspec.Object{ConfigMap: cm}
}

func secret(name, value string) *podspec.Object {
	return &podspec.Object{Secret: &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Data:       map[string][]byte{"key": []byte(value)},
	}}
}

// put stores objects and returns the outcomes.
func put(t *testing.T, s *Store, all ...*podspec.Object) string {
	t.Helper()
	var output []string
	if err := s.Put(t.Context(), all, func(c Change) { output = append(output, fmt.Sprint(c.Key, " ", c.Outcome, c.Fields)) }); err != nil {
		t.Fatal(err)
	}
	return strings.Join(output, "; ")
}

// TestObjectOutcomes checks that an object is created once, and configured only if it differs. Fields of an API
// server do not count. It keeps its creation time.
func TestObjectOutcomes(t *testing.T) {
	s := newStore(t)
	from := configMap("a", "x", "1", "y", "2")
	from.ConfigMap.UID, from.ConfigMap.ResourceVersion = "u", "7"
	from.ConfigMap.Annotations = map[string]string{lastApplied: "{}"}
	for _, c := range []struct {
		objects []*podspec.Object
		want    string
	}{
		{[]*podspec.Object{from, secret("a", "hunter2")}, "configmap default/a created[]; secret default/a created[]"},
		{
			[]*podspec.Object{configMap("a", "x", "1", "y", "2"), secret("a", "hunter2")},
			"configmap default/a unchanged[]; secret default/a unchanged[]",
		},
		{
			[]*podspec.Object{configMap("a", "x", "3", "z", "2"), secret("a", "hunter3")},
			"configmap default/a configured[data.x data.y data.z]; secret default/a configured[data.key]",
		},
	} {
		if got := put(t, s, c.objects...); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	key := KeyOf(from)
	o, err := s.Get(key)
	if err != nil || o.ConfigMap.Data["z"] != "2" ||
		o.ConfigMap.CreationTimestamp.Hour() != 13 || o.ConfigMap.UID != "" || o.ConfigMap.Annotations != nil {
		t.Errorf("%+v %v", o, err)
	}
	if err := s.Delete(t.Context(), key); err != nil {
		t.Error(err)
	}
	_, getErr := s.Get(key)
	for _, err := range []error{getErr, s.Delete(t.Context(), key)} {
		if absent := (*NotFoundError)(nil); !errors.As(err, &absent) {
			t.Errorf("after its removal: %v", err)
		}
	}
}

// TestRefusedChanges checks that no object is stored if one is refused.
func TestRefusedChanges(t *testing.T) {
	s := newStore(t)
	frozen := configMap("frozen", "x", "1")
	frozen.ConfigMap.Immutable = new(true)
	put(t, s, frozen, secret("typed", "v"))
	other, typed := frozen.DeepCopy(), secret("typed", "v")
	other.ConfigMap.Data["x"], typed.Secret.Type = "2", "example.com/x"
	thawed := frozen.DeepCopy()
	thawed.ConfigMap.Immutable = nil
	for _, bad := range []*podspec.Object{other, typed, thawed, secret("printed", Redacted)} {
		err := s.Put(t.Context(), []*podspec.Object{configMap("new"), bad}, func(Change) { t.Error("stored") })
		if !IsRefusal(err) {
			t.Errorf("%v: %v", KeyOf(bad), err)
		}
	}
	labelled := frozen.DeepCopy()
	labelled.ConfigMap.Labels = map[string]string{"a": "b"}
	if got := put(t, s, labelled); got != "configmap default/frozen configured[metadata.labels]" {
		t.Error(got)
	}
	if found, err := s.List(func(state.ObjectKey) bool { return true }); err != nil || len(found) != 2 {
		t.Errorf("%v %v", found, err)
	}
}

// TestObjectsAreBounded checks the maximum number of objects, and that existing ones can still change.
func TestObjectsAreBounded(t *testing.T) {
	s := newStore(t)
	var all []*podspec.Object
	for i := range state.ObjectsMax {
		all = append(all, configMap(fmt.Sprint("a", i)))
	}
	put(t, s, all[1:]...)
	if err := s.Put(t.Context(), []*podspec.Object{all[0], secret("b", "v")}, func(Change) {
		t.Error("stored")
	}); err == nil || !strings.Contains(err.Error(), "delete some") {
		t.Error(err)
	}
	put(t, s, all[0])
	if got := put(t, s, configMap("a5", "x", "1")); got != "configmap default/a5 configured[data.x]" {
		t.Error(got)
	}
}

// TestDamagedObjects checks that the error names the fix and contains no value, that others are still listed, and that
// the damaged object can be replaced and removed.
func TestDamagedObjects(t *testing.T) {
	s := newStore(t)
	put(t, s, secret("a", "v"), secret("b", "v"), secret("c", "v"))
	path, err := s.Dir.Path(KeyOf(secret("a", "")))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"data": {"key": "hunter2`, `{"data":{"hunter2":5}}`, `{"metadata":{"name":"hunter2"}}`, `null`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := s.List(func(state.ObjectKey) bool { return true })
		if len(found) != 2 || !errors.Is(err, state.ErrDamaged) ||
			strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "podctl delete secret/a") {
			t.Errorf("%s: %v %v", text, found, err)
		}
		if got := put(t, s, secret("a", "v")); got != "secret default/a configured[]" {
			t.Error(got)
		}
		if o, err := s.Get(KeyOf(secret("a", ""))); err != nil || string(o.Secret.Data["key"]) != "v" {
			t.Errorf("%v %v", o, err)
		}
	}
}

const podOf = `{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: NS}, spec: {imagePullSecrets: [{name: s}],
containers: [{name: a, image: i, envFrom: [{configMapRef: {name: c, optional: true}}]}]}}`

// TestPodsUseStoredObjects checks that a pod gets the current stored objects of its own namespace, and that its own
// objects come first.
func TestPodsUseStoredObjects(t *testing.T) {
	s := newStore(t)
	d := podspectest.Desired(t, strings.Replace(podOf, "NS", "default", 1))
	other := podspectest.Desired(t, strings.Replace(podOf, "NS", "other", 1))
	complete := func(d *podspec.Desired) *podspec.Desired {
		with, err := s.Complete(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		return with
	}
	if with := complete(d); with != d {
		t.Error("nothing is stored, and the pod is another one")
	}
	put(t, s, configMap("c", "x", "1"), secret("s", "v"))
	first := complete(d)
	if first.Objects.ConfigMaps["c"].Data["x"] != "1" || len(first.Shared) != 2 ||
		first.Digest() == d.Digest() || !first.SameManifest(d) || d.Objects.ConfigMaps != nil {
		t.Errorf("%+v %v", first.Objects, first.Shared)
	}
	if with := complete(other); with != other {
		t.Error("a pod sees objects of another namespace")
	}
	put(t, s, configMap("c", "x", "2"))
	if with := complete(first); with.Objects.ConfigMaps["c"].Data["x"] != "2" || first.Objects.ConfigMaps["c"].Data["x"] != "1" {
		t.Errorf("%+v", with.Objects)
	}
	s.Pretend([]*podspec.Object{configMap("c", "x", "3")})
	if with := complete(first); with.Objects.ConfigMaps["c"].Data["x"] != "3" {
		t.Errorf("%+v", with.Objects)
	}
	s.Pretend(nil)
	own := *d
	own.Objects.ConfigMaps = map[string]*v1.ConfigMap{"c": configMap("c", "x", "own").ConfigMap}
	with, hidden, err := s.Loaded(&own)
	if err != nil || with.Objects.ConfigMaps["c"].Data["x"] != "own" ||
		!slices.Equal(hidden, []podspec.ObjectName{{Kind: podspec.KindConfigMap, Name: "c"}}) {
		t.Errorf("%+v %v %v", with, hidden, err)
	}
	if with.SameManifest(d) {
		t.Error("a pod with objects has the same digest as one without")
	}
	key := KeyOf(configMap("c"))
	if users := Users(key, []*podspec.Desired{first, with, other}); !slices.Equal(users, []*podspec.Desired{first}) {
		t.Errorf("users are %v", users)
	}
	if err := s.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if gone := complete(first); gone.Objects.Has(podspec.KindConfigMap, "c") || len(gone.Shared) != 1 {
		t.Errorf("%+v %v", gone.Objects, gone.Shared)
	}
}

// TestNamesThatNoObjectHas checks references to an empty name and to a name that is a path. There is no such object,
// and the pod continues without it.
func TestNamesThatNoObjectHas(t *testing.T) {
	s := newStore(t)
	d := podspectest.Desired(t, strings.Replace(podOf, "NS", "default", 1))
	for _, name := range []string{"", "../../x", "a/b"} {
		d.Pod.Spec.ImagePullSecrets[0].Name = name
		if with, err := s.Complete(t.Context(), d); with != d || err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestPodsWithoutReferencesReadNothing also covers a pod that refers only to its own objects.
func TestPodsWithoutReferencesReadNothing(t *testing.T) {
	d := podspectest.Desired(t,
		`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, image: i}], volumes: [{name: d, emptyDir: {}}]}}`)
	with, err := d.WithShared(func(string, podspec.ObjectName) (*podspec.Object, error) { t.Error("looked for"); return nil, nil })
	if with != d || err != nil {
		t.Errorf("%v %v", with, err)
	}
}

// TestPodsOfTheAPIServerUseNoStoredObjects checks that stored objects are not mistaken for those of a cluster.
func TestPodsOfTheAPIServerUseNoStoredObjects(t *testing.T) {
	s := newStore(t)
	put(t, s, configMap("settings", "mode", "fast"))
	for _, owner := range []string{podspec.OwnerAPI, ""} {
		d := podspectest.Desired(t, podspectest.WithEnv)
		d.Owner, d.Objects = owner, podspec.Objects{}
		with, err := s.Complete(t.Context(), d)
		if err != nil || with.Objects.IsEmpty() != with.FromCluster() {
			t.Errorf("owner %q: %+v %v", owner, with.Objects, err)
		}
	}
}

// TestBoundClaimsAreStored checks that a pod uses the volume of a bound claim, and that podctl's own claims have none.
// A volume in a manifest does not count.
func TestBoundClaimsAreStored(t *testing.T) {
	s := newStore(t)
	d := podspectest.Desired(t,
		`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, image: i}], `+
			`volumes: [{name: d, persistentVolumeClaim: {claimName: d}}]}}`)
	claim := func(volume *podspec.HostVolume) *podspec.Object {
		meta := metav1.ObjectMeta{Namespace: "default", Name: "d", Annotations: map[string]string{volumeAnnotation: `{"path":"/etc"}`}}
		return &podspec.Object{Claim: &v1.PersistentVolumeClaim{ObjectMeta: meta}, Volume: volume}
	}
	put(t, s, claim(nil))
	if with, err := s.Complete(t.Context(), d); err != nil || with != d {
		t.Errorf("%+v %v", with.Objects, err)
	}
	put(t, s, claim(&podspec.HostVolume{Name: "v", Path: "/srv"}))
	with, err := s.Complete(t.Context(), d)
	if err != nil || !with.SameManifest(d) || with.SameAs(d) || len(with.Shared) != 1 {
		t.Fatalf("%+v %v", with, err)
	}
	if vol := podspec.Volumes(with)[0]; vol.HostPath == nil || vol.HostPath.Path != "/srv" {
		t.Errorf("%+v", vol)
	}
}

// serviceOf returns a Service of a type with one port.
func serviceOf(name string, kind v1.ServiceType, port int32) *podspec.Object {
	return &podspec.Object{Service: &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1.ServiceSpec{Type: kind, Ports: []v1.ServicePort{{Protocol: v1.ProtocolTCP, Port: port}}},
	}}
}

// TestServicesGetMissingAddresses checks that Services get addresses and ports when they are stored, keep them, and
// cannot have those of others. Allocated values are no change.
func TestServicesGetMissingAddresses(t *testing.T) {
	s := newStore(t)
	var has int32 = 22
	s.Owner = func(p podspec.Port) string {
		if p.Number == has {
			return "SSH"
		}
		return ""
	}
	got := put(t, s, serviceOf("a", v1.ServiceTypeNodePort, 80), serviceOf("b", v1.ServiceTypeClusterIP, 80))
	if got != "service default/a created[]; service default/b created[]" {
		t.Error(got)
	}
	services, err := s.Services()
	if err != nil || len(services) != 2 || services[0].Spec.ClusterIP == "" ||
		services[0].Spec.Ports[0].NodePort == 0 || services[0].Spec.ClusterIP == services[1].Spec.ClusterIP {
		t.Fatalf("%+v %v", services, err)
	}
	got = put(t, s, serviceOf("b", v1.ServiceTypeClusterIP, 81), serviceOf("a", v1.ServiceTypeNodePort, 80))
	if got != "service default/b configured[spec.ports]; service default/a unchanged[]" {
		t.Error(got)
	}
	thief := serviceOf("thief", v1.ServiceTypeClusterIP, 80)
	thief.Service.Spec.ClusterIP = services[0].Spec.ClusterIP
	for _, bad := range []*podspec.Object{thief, serviceOf("ssh", v1.ServiceTypeLoadBalancer, 22)} {
		err = s.Put(t.Context(), []*podspec.Object{serviceOf("new", v1.ServiceTypeClusterIP, 80), bad}, func(Change) { t.Error("stored") })
		if !IsRefusal(err) {
			t.Errorf("%v: %v", KeyOf(bad), err)
		}
	}
	if later := put(t, s, serviceOf("b", v1.ServiceTypeClusterIP, 81)); later != "service default/b unchanged[]" {
		t.Error(later)
	}
	has = services[0].Spec.Ports[0].NodePort
	changes, err := s.Changes([]*podspec.Object{serviceOf("a", v1.ServiceTypeNodePort, 80), serviceOf("b", v1.ServiceTypeClusterIP, 81)})
	if err != nil || len(changes[0].Notes) != 1 || len(changes[1].Notes) > 0 {
		t.Errorf("a process listens on the port of a: %v %v", changes, err)
	}
	if by := s.Publisher(podspec.Port{Protocol: v1.ProtocolTCP, Number: has, HostIP: "127.0.0.1"}); by != "service default/a" {
		t.Errorf("the port of a leads to %q", by)
	}
}

// TestServicesCannotUsePodPorts checks that a Service cannot have a port of an unfinished pod. On the node's network,
// that includes the container ports.
func TestServicesCannotUsePodPorts(t *testing.T) {
	for name, c := range map[string]struct {
		hostNetwork, finished bool
		port                  v1.ContainerPort
		taken, published      bool
	}{
		"a hostPort": {
			port:      v1.ContainerPort{ContainerPort: 80, HostPort: 8080, Protocol: v1.ProtocolTCP},
			taken:     true,
			published: true,
		},
		"no hostPort":            {port: v1.ContainerPort{ContainerPort: 8080}},
		"the node's network":     {hostNetwork: true, port: v1.ContainerPort{ContainerPort: 8080}, taken: true},
		"a pod that is finished": {finished: true, port: v1.ContainerPort{ContainerPort: 80, HostPort: 8080, Protocol: v1.ProtocolTCP}},
	} {
		s := newStore(t)
		d := &podspec.Desired{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"}, Spec: v1.PodSpec{
			HostNetwork: c.hostNetwork, Containers: []v1.Container{{Name: "a", Image: "i", Ports: []v1.ContainerPort{c.port}}},
		}}}
		checkpoint := &state.Checkpoint{}
		if c.finished {
			checkpoint.Completion = &model.Completion{Phase: v1.PodSucceeded}
		}
		checkpoint.Applied = d
		if err := s.locker.Layout.Pod(d.Pod.UID).Checkpoint().Write(checkpoint); err != nil {
			t.Fatal(err)
		}
		_, err := s.Changes([]*podspec.Object{serviceOf("web", v1.ServiceTypeLoadBalancer, 8080)})
		by := s.Publisher(podspec.Port{Protocol: v1.ProtocolTCP, Number: 8080})
		if (err != nil) != c.taken || (by != "") != c.published {
			t.Errorf("%s: %v, and the port leads to %q", name, err, by)
		}
	}
}
