package bundles

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/state"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// anchors returns certificates as PEM, with a text before each.
func anchors(all ...string) string {
	var b strings.Builder
	for _, one := range all {
		b.WriteString("a comment\n")
		b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Headers: map[string]string{"a": "b"}, Bytes: []byte(one)}))
	}
	return b.String()
}

// certificates returns the contents of certificates as PEM, joined.
func certificates(t *testing.T, text string) string {
	t.Helper()
	var all []string
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		if all = append(all, string(block.Bytes)); block.Type != "CERTIFICATE" || len(block.Headers) != 0 {
			t.Errorf("%+v", block)
		}
	}
	if strings.Contains(text, "comment") {
		t.Errorf("%q", text)
	}
	return strings.Join(all, " ")
}

func named(name string) *v1.ClusterTrustBundleProjection {
	return &v1.ClusterTrustBundleProjection{Name: &name, Path: "ca.pem"}
}

func bySigner(signer string, selector *metav1.LabelSelector) *v1.ClusterTrustBundleProjection {
	return &v1.ClusterTrustBundleProjection{SignerName: &signer, LabelSelector: selector, Path: "ca.pem"}
}

// TestSources checks which bundles a source selects, and that certificates are merged without duplicates.
func TestSources(t *testing.T) {
	all := map[string]bundle{
		"one":      {anchors: anchors("b", "a", "b")},
		"s:live:1": {signer: "s", labels: map[string]string{"live": "yes"}, anchors: anchors("c", "a")},
		"s:live:2": {signer: "s", labels: map[string]string{"live": "yes"}, anchors: anchors("a", "d")},
		"s:old":    {signer: "s", labels: map[string]string{"live": "no"}, anchors: anchors("e")},
		"other":    {signer: "t", labels: map[string]string{"live": "yes"}, anchors: anchors("f")},
		"empty":    {anchors: "no certificate"},
	}
	live := &metav1.LabelSelector{MatchLabels: map[string]string{"live": "yes"}}
	bad := &metav1.LabelSelector{MatchLabels: map[string]string{"live": "not a value!"}}
	large := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "live", Operator: metav1.LabelSelectorOpNotIn,
	}}}
	for range maxSelector / 50 {
		large.MatchExpressions[0].Values = append(large.MatchExpressions[0].Values, strings.Repeat("x", 60))
	}
	for name, c := range map[string]struct {
		source    *v1.ClusterTrustBundleProjection
		want, err string
		missing   bool
	}{
		"a name":              {source: named("one"), want: "a b"},
		"an unknown name":     {source: named("none"), missing: true},
		"no certificate":      {source: named("empty")},
		"a selector":          {source: bySigner("s", live), want: "a c d"},
		"an empty selector":   {source: bySigner("s", &metav1.LabelSelector{}), want: "a c d e"},
		"no selector":         {source: bySigner("s", nil), missing: true},
		"an unknown signer":   {source: bySigner("u", live), missing: true},
		"an invalid selector": {source: bySigner("s", bad), err: "while parsing label selector: "},
		"a large selector":    {source: bySigner("s", large), err: "label selector length ("},
		"nothing":             {source: &v1.ClusterTrustBundleProjection{}, err: "ClusterTrustBundle projection requires either name or signerName"},
	} {
		text, found, err := anchorsOf(c.source, all)
		if c.err != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got := certificates(t, text); got != c.want || found == c.missing || err != nil {
			t.Errorf("%s: %q %t %v", name, got, found, err)
		}
	}
}

// server is an API server with bundles. It streams the events that the test sends.
type server struct {
	mu     sync.Mutex
	list   certificatesv1beta1.ClusterTrustBundleList
	lists  int
	refuse int
	events chan any
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	refuse := s.refuse
	if r.URL.Query().Get("watch") != "true" {
		s.lists++
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path != "/apis/certificates.k8s.io/v1beta1/clustertrustbundles" || refuse == http.StatusNotFound:
		http.NotFound(w, r)
	case refuse != 0:
		apitest.Refusal(refuse, metav1.StatusReasonForbidden, 0)(w, r)
	case r.URL.Query().Get("watch") != "true":
		_ = json.NewEncoder(w).Encode(s.list)
	case r.URL.Query().Get("sendInitialEvents") == "true":
		apitest.WithoutWatchList(w, r)
	default:
		apitest.Stream(s.events)(w, r)
	}
}

func bundleNamed(name, signer, version string, all ...string) certificatesv1beta1.ClusterTrustBundle {
	return certificatesv1beta1.ClusterTrustBundle{
		TypeMeta:   metav1.TypeMeta{Kind: "ClusterTrustBundle", APIVersion: "certificates.k8s.io/v1beta1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, Labels: map[string]string{"live": "yes"}},
		Spec:       certificatesv1beta1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: anchors(all...)},
	}
}

// sink passes results to the test.
type sink struct {
	t       *testing.T
	results chan string
}

func (s *sink) Set(o *podspec.Object) {
	switch {
	case o == nil:
		s.results <- "absent"
	case o.Unusable != nil:
		s.results <- o.Unusable.Status
	default:
		s.results <- certificates(s.t, o.ConfigMap.Data[podspec.BundleKey])
	}
}

func (s *sink) Fail(err error) { s.results <- "error: " + err.Error() }

// lab is a Watcher with pods that have one source each.
type lab struct {
	*Watcher
	api *server
	// pods maps uids to pods. Watches that run read it.
	pods *sync.Map
}

// pod returns a pod; nil if there is none.
func (l *lab) pod(uid types.UID) *v1.Pod {
	found, _ := l.pods.Load(uid)
	pod, _ := found.(*v1.Pod)
	return pod
}

func newLab(t *testing.T, api *server) *lab {
	t.Helper()
	api.list.TypeMeta = metav1.TypeMeta{Kind: "ClusterTrustBundleList", APIVersion: "certificates.k8s.io/v1beta1"}
	api.list.ResourceVersion, api.events = "5", make(chan any)
	_, config := apitest.Serve(t, api)
	client, err := apiclient.New(config)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{api: api, pods: &sync.Map{}}
	l.Watcher = &Watcher{Client: client.Bundles, Pod: l.pod, Confirm: apitest.Confirmed}
	return l
}

// watch watches the source of a new pod. The second result ends that.
func (l *lab) watch(t *testing.T, uid types.UID, source *v1.ClusterTrustBundleProjection) (<-chan string, func()) {
	vol := v1.Volume{Name: "v"}
	vol.Projected = &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{ClusterTrustBundle: source}}}
	l.pods.Store(uid, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: string(uid), UID: uid}, Spec: v1.PodSpec{Volumes: []v1.Volume{vol}},
	})
	return l.watchName(t, uid, podspec.BundleName(source))
}

func (l *lab) watchName(t *testing.T, uid types.UID, name string) (<-chan string, func()) {
	ctx, stop := context.WithCancel(t.Context())
	s, done := &sink{t, make(chan string, 10000)}, make(chan struct{})
	go func() {
		defer close(done)
		l.Watch(ctx, state.ObjectKey{Namespace: "a", Kind: podspec.KindConfigMap, Name: podspec.BindName(uid, name)}, s)
	}()
	return s.results, func() {
		stop()
		<-done
	}
}

// TestWatch checks that two pods share one list and one watch, that changes reach them, and that the watch ends with them.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{}
		api.list.Items = []certificatesv1beta1.ClusterTrustBundle{bundleNamed("one", "", "1", "a"), bundleNamed("s:1", "s", "2", "b")}
		l := newLab(t, api)
		one, stopOne := l.watch(t, "u1", named("one"))
		two, stopTwo := l.watch(t, "u2", bySigner("s", &metav1.LabelSelector{}))
		want := func(what string, results <-chan string, want string) {
			t.Helper()
			synctest.Wait()
			got := "nothing"
			for len(results) > 0 {
				got = <-results
			}
			if got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		time.Sleep(time.Second)
		want("one", one, "a")
		want("two", two, "b")
		api.events <- map[string]any{"type": "ADDED", "object": bundleNamed("s:2", "s", "6", "c")}
		want("an added one", two, "b c")
		api.events <- map[string]any{"type": "MODIFIED", "object": bundleNamed("one", "", "7", "d")}
		want("a changed one", one, "d")
		api.events <- map[string]any{"type": "DELETED", "object": bundleNamed("one", "", "8", "d")}
		want("a deleted one", one, "absent")
		if api.lists != 1 {
			t.Errorf("%d lists", api.lists)
		}
		stopOne()
		if l.shared == nil {
			t.Error("the watch ended with the first user")
		}
		stopTwo()
		if l.shared != nil {
			t.Error("the watch did not end")
		}
		again, stop := l.watch(t, "u3", named("one"))
		time.Sleep(time.Second)
		want("another pod later", again, "a")
		stop()
	})
}

// TestRefusals checks API servers without bundles, and without permission.
func TestRefusals(t *testing.T) {
	for refuse, want := range map[int]string{
		http.StatusNotFound: unsupported, http.StatusForbidden: "error: ",
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, &server{refuse: refuse})
			results, stop := l.watch(t, "u1", named("one"))
			time.Sleep(10 * time.Minute)
			stop()
			for len(results) > 0 {
				if got := <-results; !strings.HasPrefix(got, want) {
					t.Errorf("%d: %q", refuse, got)
				}
			}
			if n := l.api.lists; n < 10 || n > 100 {
				t.Errorf("%d: %d lists in ten minutes", refuse, n)
			}
		})
	}
}

// TestHostile checks that bundles cannot use up memory, and that a pod gets only what it names.
func TestHostile(t *testing.T) {
	s := &shared{now: content{next: make(chan struct{})}}
	if err := s.store().Replace([]any{&certificatesv1beta1.ClusterTrustBundle{}}, ""); err != nil {
		t.Fatal(err)
	}
	large := bundleNamed("large", "", "1")
	large.Spec.TrustBundle = strings.Repeat("x", maxBytes)
	if err := s.store().Add(&large); err != nil {
		t.Fatal(err)
	}
	if now := s.read(); now.err == nil || len(now.all) != 1 || !now.known {
		t.Errorf("%v, %d bundles", now.err, len(now.all))
	}
	if err := s.store().Add(&v1.Pod{}); err == nil {
		t.Error("a pod is a bundle")
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, &server{})
		_, stop := l.watch(t, "u1", named("one"))
		stop()
		for name, uid := range map[string]types.UID{"an unknown pod": "u2", "another source": "u1"} {
			results, stop := l.watchName(t, uid, "bundle:x")
			if got := <-results; !strings.HasPrefix(got, "error: ") {
				t.Errorf("%s: %q", name, got)
			}
			stop()
		}
	})
}
