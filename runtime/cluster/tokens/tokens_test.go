package tokens

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

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/state"
)

func podWithToken() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: "u1"},
		Spec: v1.PodSpec{
			ServiceAccountName: "robot",
			Volumes: []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
				Sources: []v1.VolumeProjection{{ServiceAccountToken: source()}},
			}}}},
		},
	}
}

func source() *v1.ServiceAccountTokenProjection {
	return &v1.ServiceAccountTokenProjection{Audience: "vault", ExpirationSeconds: new(int64(3000)), Path: "token"}
}

func keyOf(uid types.UID) state.ObjectKey {
	return state.ObjectKey{
		Namespace: "a", Kind: podspec.KindSecret, Name: podspec.BindName(uid, podspec.TokenName(source())),
	}
}

// server answers requests for tokens. It is the transport of the client, because timers of real connections would stop
// the fake clock.
type server struct {
	mu       sync.Mutex
	life     int64
	refuse   bool
	refusal  error // of Confirm
	requests []authenticationv1.TokenRequest
	paths    []string
	times    []time.Time
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := authenticationv1.TokenRequest{}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return nil, err
	}
	s.requests, s.paths = append(s.requests, answer), append(s.paths, r.Method+" "+r.URL.Path)
	s.times = append(s.times, time.Now())
	code, text := http.StatusCreated, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound",`+
		`"message":"serviceaccounts \"robot\" not found","code":404}`)
	if s.refuse {
		code = http.StatusNotFound
	} else {
		answer.Spec.ExpirationSeconds = &s.life
		answer.Status = authenticationv1.TokenRequestStatus{
			Token:               "secret" + time.Now().Format(time.RFC3339),
			ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Duration(s.life) * time.Second)),
		}
		text, _ = json.Marshal(answer)
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(string(text))),
	}, nil
}

// sink records what a watch does.
type sink struct {
	current *podspec.Object
	sets    int
	errs    []error
}

func (s *sink) Current() *podspec.Object { return s.current }

func (s *sink) Set(o *podspec.Object) {
	s.current = o
	s.sets++
}

func (s *sink) Fail(err error) { s.errs = append(s.errs, err) }

// watch watches a token of a pod for a time of the fake clock.
func watch(t *testing.T, api *server, pod *v1.Pod, current *podspec.Object, during time.Duration) *sink {
	c, err := apiclient.New(&rest.Config{Host: "http://api.test", Transport: api, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	w := Watcher{
		Client: c.Core, Pod: func(types.UID) *v1.Pod { return pod }, Now: time.Now,
		Random: func() float64 { return 0 }, Confirm: func(context.Context) error { return api.refusal },
	}
	ctx, stop := context.WithTimeout(t.Context(), during)
	defer stop()
	s := &sink{current: current}
	w.Watch(ctx, keyOf("u1"), s)
	return s
}

func token(key state.ObjectKey, expires time.Time, life int64) *podspec.Object {
	o, _ := secretOf(key, &authenticationv1.TokenRequest{
		Spec:   authenticationv1.TokenRequestSpec{ExpirationSeconds: &life},
		Status: authenticationv1.TokenRequestStatus{Token: "first", ExpirationTimestamp: metav1.NewTime(expires)},
	})
	return o
}

// TestUnconfirmed checks that no token is requested from a server that is not confirmed, and that the current one stays.
func TestUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{life: 3000, refusal: errors.New("another cluster")}
		old := token(keyOf("u1"), time.Now(), 3000)
		s := watch(t, api, podWithToken(), old, time.Minute)
		if len(api.requests) != 0 || s.sets != 0 || s.current != old || len(s.errs) == 0 || s.errs[0].Error() != "another cluster" {
			t.Errorf("%d requests, %d tokens, %v", len(api.requests), s.sets, s.errs)
		}
	})
}

// TestRenewal checks the request, and that a token is renewed at 80 % of its life.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, begun := &server{life: 3000}, time.Now()
		s := watch(t, api, podWithToken(), nil, 45*time.Minute)
		if len(api.requests) != 2 || s.sets != 2 || len(s.errs) != 0 {
			t.Fatalf("%d requests, %d tokens, %v", len(api.requests), s.sets, s.errs)
		}
		if at := api.times[1].Sub(begun); at != 40*time.Minute {
			t.Errorf("renewed after %v", at)
		}
		r, ref := api.requests[0].Spec, api.requests[0].Spec.BoundObjectRef
		if api.paths[0] != "POST /api/v1/namespaces/a/serviceaccounts/robot/token" || *r.ExpirationSeconds != 3000 ||
			len(r.Audiences) != 1 || r.Audiences[0] != "vault" || ref.Kind != "Pod" || ref.APIVersion != "v1" ||
			ref.Name != "web" || ref.UID != "u1" {
			t.Errorf("%s: %+v %+v", api.paths[0], r, ref)
		}
		want := "secret" + begun.Add(40*time.Minute).Format(time.RFC3339)
		if got := string(s.current.Secret.Data[podspec.TokenKey]); got != want || s.current.Secret.Name != keyOf("u1").Name {
			t.Errorf("token %q, want %q", got, want)
		}
	})
}

// TestCurrentStays checks that a token stays in use while it is valid and while the API server refuses another.
func TestCurrentStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{life: 3000}
		valid := token(keyOf("u1"), time.Now().Add(50*time.Minute), 3000)
		if s := watch(t, api, podWithToken(), valid, 30*time.Minute); len(api.requests) != 0 || s.sets != 1 {
			t.Errorf("a valid token: %d requests, set %d times", len(api.requests), s.sets)
		}
		api.refuse = true
		expired := token(keyOf("u1"), time.Now().Add(-time.Minute), 3000)
		s := watch(t, api, podWithToken(), expired, 10*time.Minute)
		if s.sets != 0 || s.current != expired || len(s.errs) < 20 || len(s.errs) > 40 {
			t.Errorf("an expired token: set %d times, %d errors", s.sets, len(s.errs))
		}
	})
}

// TestForeign checks that a pod gets only tokens that it names.
func TestForeign(t *testing.T) {
	noAccount, noVolume, other := podWithToken(), podWithToken(), podWithToken()
	noAccount.Spec.ServiceAccountName, noVolume.Spec.Volumes, other.UID = "", nil, "u2"
	for name, pod := range map[string]*v1.Pod{
		"unknown": nil, "no account": noAccount, "no volume": noVolume, "another pod": other,
	} {
		synctest.Test(t, func(t *testing.T) {
			api := &server{life: 3000}
			if s := watch(t, api, pod, nil, time.Second); len(api.requests) != 0 || s.sets != 0 || len(s.errs) == 0 {
				t.Errorf("%s: %d requests, %d tokens", name, len(api.requests), s.sets)
			}
		})
	}
}

// TestDue checks when tokens must be renewed.
func TestDue(t *testing.T) {
	begun := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		life   int64
		random float64
		want   time.Duration
	}{
		{600, 0, 480 * time.Second},
		{600, 1, 470 * time.Second},
		{365 * 24 * 3600, 0, 24 * time.Hour},
		{30 * 3600, 0.5, 24*time.Hour - 5*time.Second},
	} {
		o := token(keyOf("u1"), begun.Add(time.Duration(test.life)*time.Second), test.life)
		if got := due(o, test.random).Sub(begun); got != test.want {
			t.Errorf("%d s, %v: %v, want %v", test.life, test.random, got, test.want)
		}
	}
	if at := due(&podspec.Object{Secret: &v1.Secret{}}, 0); !at.IsZero() {
		t.Errorf("without times: %v", at)
	}
}

// TestInvalidAnswers checks that unusable answers are refused without their text.
func TestInvalidAnswers(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC))
	for name, test := range map[string]struct {
		life  int64
		token string
		at    metav1.Time
	}{
		"no token": {600, "", now}, "no life": {0, "x", now}, "negative": {-1, "x", now}, "no end": {600, "x", metav1.Time{}},
		"endless": {1 << 62, "x", now}, "large": {600, strings.Repeat("x", longestToken+1), now},
	} {
		o, err := secretOf(keyOf("u1"), &authenticationv1.TokenRequest{
			Spec:   authenticationv1.TokenRequestSpec{ExpirationSeconds: &test.life},
			Status: authenticationv1.TokenRequestStatus{Token: test.token, ExpirationTimestamp: test.at},
		})
		if o != nil || !errors.Is(err, errInvalid) {
			t.Errorf("%s: %v %v", name, o, err)
		}
	}
}
