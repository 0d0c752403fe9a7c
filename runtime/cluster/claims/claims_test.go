package claims

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/state"
)

// podWith returns a pod with the volume "v" of a claim.
func podWith(claim string) *v1.Pod {
	vol := v1.Volume{Name: "v"}
	vol.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: "u1"},
		Spec:       v1.PodSpec{Volumes: []v1.Volume{vol}},
	}
}

// ephemeralPod returns a pod with a generic ephemeral volume.
func ephemeralPod() *v1.Pod {
	pod := podWith("")
	pod.Spec.Volumes[0].VolumeSource = v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}
	return pod
}

func useOf(pod *v1.Pod) use {
	name := podspec.ClaimName(pod, &pod.Spec.Volumes[0])
	return use{pod, name, podspec.ClaimVolumes(pod, name)}
}

func boundClaim(name string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{Kind: "PersistentVolumeClaim", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: "c1", Finalizers: []string{protection}},
		Spec:       v1.PersistentVolumeClaimSpec{VolumeName: "pv"},
		Status:     v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
	}
}

func localVolume() *v1.PersistentVolume {
	volume := &v1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{Kind: "PersistentVolume", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec: v1.PersistentVolumeSpec{
			ClaimRef: &v1.ObjectReference{UID: "c1"}, VolumeMode: new(v1.PersistentVolumeFilesystem),
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{"n1"}}},
			}}}},
		},
	}
	volume.Spec.Local = &v1.LocalVolumeSource{Path: "/mnt/disk"}
	return volume
}

const failed = "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: "

// TestClaims checks each reason why a pod cannot use a claim. The texts are those of a kubelet.
func TestClaims(t *testing.T) {
	for name, c := range map[string]struct {
		pod    *v1.Pod
		claim  func(*v1.PersistentVolumeClaim)
		volume func(*v1.PersistentVolume)
		want   string
	}{
		"not bound": {
			claim: func(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimPending },
			want:  failed + "error processing PVC a/data: PVC is not bound",
		},
		"lost": {
			claim: func(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimLost },
			want:  failed + "error processing PVC a/data: PVC is not bound",
		},
		"without a volume": {
			claim: func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "" },
			want:  failed + "error processing PVC a/data: PVC has empty pvc.Spec.VolumeName",
		},
		"being deleted": {
			claim: func(c *v1.PersistentVolumeClaim) { c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), nil },
			want:  failed + "error processing PVC a/data: PVC is being deleted",
		},
		"of another pod": {
			pod:  ephemeralPod(),
			want: failed + "PVC a/web-v was not created for pod a/web (pod is not owner)",
		},
		"volume of another claim": {
			volume: func(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID = "c2" },
			want: failed + "error processing PVC a/data: found PV object pv but its pv.Spec.ClaimRef.UID c2 " +
				"does not point to claim.UID c1",
		},
		"volume without a claim": {
			volume: func(v *v1.PersistentVolume) { v.Spec.ClaimRef = nil },
			want: failed + "error processing PVC a/data: found PV object pv but it has a nil pv.Spec.ClaimRef " +
				"indicating it is not yet bound to the claim",
		},
		"a block device": {
			volume: func(v *v1.PersistentVolume) { v.Spec.VolumeMode = new(v1.PersistentVolumeBlock) },
			want:   failed + "volume v has volumeMode Block, but is specified in volumeMounts",
		},
		"CSI": {
			volume: func(v *v1.PersistentVolume) {
				v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "d.io"}}
			},
			want: `MountVolume.FindPluginBySpec failed for volume "pv" : podctl does not support volumes of type csi (driver "d.io")`,
		},
		"NFS": {
			volume: func(v *v1.PersistentVolume) {
				v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{}}
			},
			want: `MountVolume.FindPluginBySpec failed for volume "pv" : podctl does not support volumes of type nfs`,
		},
		"a type of a newer version": {
			volume: func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{} },
			want:   `MountVolume.FindPluginBySpec failed for volume "pv" : podctl does not support volumes of type unknown`,
		},
		"on another node": {
			volume: func(v *v1.PersistentVolume) {
				v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0] = "n2"
			},
			want: `MountVolume.NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms`,
		},
		"mount options": {
			volume: func(v *v1.PersistentVolume) {
				v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/x"}}
				v.Spec.MountOptions = []string{"noexec"}
			},
			want: `MountVolume.MountOptionSupport check failed for volume "pv" : mount options are not supported for this volume type`,
		},
		"mount options of a local volume": {
			volume: func(v *v1.PersistentVolume) { v.Annotations = map[string]string{v1.MountOptionAnnotation: "noexec"} },
			want: `MountVolume.MountOptionSupport check failed for volume "pv" : ` +
				`podctl does not support the mount options of local volumes`,
		},
	} {
		if c.pod == nil {
			c.pod = podWith("data")
		}
		u, claim, volume := useOf(c.pod), boundClaim("data"), localVolume()
		claim.Name = u.claim
		if c.claim != nil {
			c.claim(claim)
		}
		if c.volume != nil {
			c.volume(volume)
		}
		_, got := u.bind(claim, volume, map[string]string{v1.LabelHostname: "n1"})
		if f := u.checkClaim(claim); f != nil {
			got = f
		}
		if got == nil || got.status != c.want || !strings.HasSuffix(c.want, got.reason) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

// TestPaths checks the paths of volumes that a pod can use.
func TestPaths(t *testing.T) {
	labels := map[string]string{v1.LabelHostname: "n1"}
	u, claim, volume := useOf(podWith("data")), boundClaim("data"), localVolume()
	claim.DeletionTimestamp = new(metav1.Now()) // but it is protected
	if f := u.checkClaim(claim); f != nil {
		t.Errorf("a protected claim: %+v", f)
	}
	if got, f := u.bind(claim, volume, labels); f != nil || *got != (podspec.HostVolume{Name: "pv", Path: "/mnt/disk", Local: true}) {
		t.Errorf("%+v", got)
	}
	volume.Spec.NodeAffinity, volume.Spec.VolumeMode = nil, nil
	volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{
		HostPath: &v1.HostPathVolumeSource{Path: "/data", Type: new(v1.HostPathDirectoryOrCreate)},
	}
	if got, f := u.bind(claim, volume, nil); f != nil || *got != (podspec.HostVolume{Name: "pv", Path: "/data", Type: "DirectoryOrCreate"}) {
		t.Errorf("%+v", got)
	}
	pod := ephemeralPod()
	own := boundClaim("web-v")
	own.OwnerReferences = []metav1.OwnerReference{{UID: "u1", Controller: new(true)}}
	if f := useOf(pod).checkClaim(own); f != nil {
		t.Errorf("the claim of an ephemeral volume: %+v", f)
	}
}

// server answers requests for claims and volumes. It is the transport of the client, because timers of real connections
// would stop the fake clock.
type server struct {
	claim, volume any
	requests      []string
	times         []time.Time
	// change is called before each answer.
	change func(s *server)
	// usedFor is how often another pod still uses the claim.
	usedFor int
}

func (s *server) inUse() bool {
	s.usedFor--
	return s.usedFor >= 0
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests, s.times = append(s.requests, r.Method+" "+r.URL.Path), append(s.times, time.Now())
	if s.change != nil {
		s.change(s)
	}
	answer := s.claim
	if strings.HasPrefix(r.URL.Path, "/api/v1/persistentvolumes/") {
		answer = s.volume
	}
	code := http.StatusOK
	if err, is := answer.(*apierrors.StatusError); is {
		err.ErrStatus.Kind, err.ErrStatus.APIVersion = "Status", "v1"
		code, answer = int(err.ErrStatus.Code), err.ErrStatus
	}
	text, err := json.Marshal(answer)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(string(text))),
	}, err
}

type sink struct{ results []string }

func (s *sink) Set(o *podspec.Object) {
	if o.Claim == nil || o.Claim.Name != keyOf("data").Name {
		s.results = append(s.results, "another claim")
		return
	}
	if o.Unusable != nil {
		s.results = append(s.results, o.Unusable.Reason)
		return
	}
	s.results = append(s.results, o.Volume.Path)
}

func (s *sink) Fail(err error) { s.results = append(s.results, "error: "+err.Error()) }

func keyOf(claim string) state.ObjectKey {
	return state.ObjectKey{
		Namespace: "a", Kind: podspec.KindClaim, Name: podspec.BindName("u1", podspec.ClaimKey(claim)),
	}
}

// watch watches a claim of a pod for a time of the fake clock.
func watch(t *testing.T, api *server, pod *v1.Pod, claim string, during time.Duration) []string {
	t.Helper()
	w := Watcher{
		Client: clientOf(t, api), Pod: func(types.UID) *v1.Pod { return pod }, Confirm: apitest.Confirmed,
		Labels: func() (map[string]string, bool) { return map[string]string{v1.LabelHostname: "n1"}, true },
		InUse:  func(key state.ObjectKey) bool { return key == keyOf(claim) && api.inUse() }, Turn: &sync.Mutex{},
	}
	ctx, stop := context.WithTimeout(t.Context(), during)
	defer stop()
	s := &sink{}
	w.Watch(ctx, keyOf(claim), s)
	return s.results
}

// TestWatch checks that a claim is read until it can be used, and then not any more.
func TestWatch(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	synctest.Test(t, func(t *testing.T) {
		pending := boundClaim("data")
		pending.Status.Phase = v1.ClaimPending
		api := &server{volume: localVolume()}
		api.change = func(s *server) {
			switch len(s.requests) {
			case 1:
				s.claim = apierrors.NewForbidden(claims, "data", errors.New("no relationship"))
			case 2:
				s.claim = apierrors.NewNotFound(claims, "data")
			case 3:
				s.claim = pending
			case 13:
				s.claim = boundClaim("data")
			}
		}
		begun := time.Now()
		got := watch(t, api, podWith("data"), "data", time.Hour)
		if len(got) != 13 || !strings.HasPrefix(got[0], "error: ") || got[2] != "PVC is not bound" || got[12] != "/mnt/disk" ||
			got[1] != `failed to fetch PVC from API server: persistentvolumeclaims "data" not found` {
			t.Errorf("%q", got)
		}
		if last := api.requests[len(api.requests)-2:]; len(api.requests) != 14 || last[1] != "GET /api/v1/persistentvolumes/pv" ||
			last[0] != "GET /api/v1/namespaces/a/persistentvolumeclaims/data" {
			t.Errorf("%q", api.requests)
		}
		if first, later := api.times[1].Sub(begun), api.times[11].Sub(api.times[10]); first != firstPause || later != longestPause {
			t.Errorf("pauses %v and %v", first, later)
		}
	})
}

// TestOnePod checks that a volume that is for one pod only waits until no other pod uses it.
func TestOnePod(t *testing.T) {
	const single, shared = v1.ReadWriteOncePod, v1.ReadWriteOnce
	const used = "volume uses the ReadWriteOncePod access mode and is already in use by another pod"
	for want, modes := range map[string][]v1.PersistentVolumeAccessMode{
		used + " /mnt/disk": {single},
		"/mnt/disk":         {single, shared},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := &server{claim: boundClaim("data"), volume: localVolume(), usedFor: 1}
			api.volume.(*v1.PersistentVolume).Spec.AccessModes = modes
			if got := strings.Join(watch(t, api, podWith("data"), "data", time.Minute), " "); got != want {
				t.Errorf("%q, not %q", got, want)
			}
		})
	}
}

// TestRefusals checks answers that are no decision about a claim, and requests that are not sent.
func TestRefusals(t *testing.T) {
	other, volume := boundClaim("data"), localVolume()
	other.Namespace, volume.Name = "b", "other"
	foreign := podWith("data")
	foreign.Spec.Volumes = nil
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		api      server
		pod      *v1.Pod
		claim    string
		want     string
		requests int
	}{
		"another claim":       {api: server{claim: other}, want: "error: the API server has sent another claim", requests: 1},
		"another volume":      {api: server{claim: boundClaim("data"), volume: volume}, want: "error: the API server has sent another volume", requests: 2},
		"a claim of no pod":   {pod: foreign, want: "error: the pod has no such claim"},
		"a name with a slash": {claim: "../x", want: `failed to fetch PVC from API server: invalid resource name`},
		"a long name":         {claim: long, want: "failed to fetch PVC from API server: "},
		"no name":             {pod: podWith(""), claim: "", want: "failed to fetch PVC from API server: resource name may not be empty"},
	} {
		synctest.Test(t, func(t *testing.T) {
			if c.claim == "" && c.pod == nil {
				c.claim = "data"
			}
			if c.pod == nil {
				c.pod = podWith(c.claim)
			}
			if c.pod == foreign {
				c.claim = "data"
			}
			api := c.api
			w := Watcher{
				Client: clientOf(t, &api), Pod: func(types.UID) *v1.Pod { return c.pod }, Confirm: apitest.Confirmed,
				Labels: func() (map[string]string, bool) { return nil, false },
			}
			_, f, err := w.read(t.Context(), keyOf(c.claim))
			got := ""
			switch {
			case err != nil:
				got = "error: " + err.Error()
			case f != nil:
				got = f.unusable().Reason
			}
			if !strings.HasPrefix(got, c.want) || len(got) > 2*textMax || len(api.requests) != c.requests {
				t.Errorf("%s: %q after %q", name, got, api.requests)
			}
		})
	}
}

func clientOf(t *testing.T, api *server) rest.Interface {
	t.Helper()
	c, err := apiclient.New(&rest.Config{Host: "http://api.test", Transport: api, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c.Core
}

// TestUnknownNode checks that a volume of certain nodes waits for the labels of this one, and that nothing is read from
// another cluster.
func TestUnknownNode(t *testing.T) {
	api := &server{claim: boundClaim("data"), volume: localVolume()}
	w := Watcher{
		Client: clientOf(t, api), Pod: func(types.UID) *v1.Pod { return podWith("data") }, Confirm: apitest.Confirmed,
		Labels: func() (map[string]string, bool) { return nil, false },
	}
	if found, f, err := w.read(t.Context(), keyOf("data")); err == nil || found != nil || f != nil {
		t.Errorf("%+v %+v %v", found, f, err)
	}
	api.requests = nil
	w.Confirm = func(context.Context) error { return errors.New("another cluster") }
	if _, _, err := w.read(t.Context(), keyOf("data")); err == nil || err.Error() != "another cluster" || len(api.requests) > 0 {
		t.Errorf("%v after %q", err, api.requests)
	}
}
