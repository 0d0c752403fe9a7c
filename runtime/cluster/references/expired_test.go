package references

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/state"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// expired serves an API server that reports the end of the history for each request. It returns a client, and the
// number of requests. After very many of them, the server answers nothing.
func expired(t *testing.T) (*apiclient.Client, *atomic.Int32) {
	t.Helper()
	requests := &atomic.Int32{}
	_, config := apitest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 3000 {
			apitest.Hang(w, r)
			return
		}
		apitest.Refusal(http.StatusGone, metav1.StatusReasonExpired, 0)(w, r)
	}))
	set, err := apiclient.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return set, requests
}

func checkRequests(t *testing.T, requests *atomic.Int32) {
	t.Helper()
	apitest.Sleep(30 * time.Minute)
	if n := requests.Load(); n == 0 || n > 1500 {
		t.Errorf("%d requests in half an hour", n)
	}
}

// TestExpiredServices checks that a server that always reports the end of the history does not get one request after
// the other.
func TestExpiredServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, requests := expired(t)
		layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
		go KeepServices(t.Context(), Collection{
			Client: set.Core, Confirm: apitest.Confirmed, File: state.ClusterServices(layout),
			Log: slog.New(slog.DiscardHandler),
		})
		checkRequests(t, requests)
	})
}

// TestExpiredObject checks the same for the watch of a Secret, and that its pod reports why it waits.
func TestExpiredObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, requests := expired(t)
		l := newLab(t, t.TempDir())
		l.settings.Watch = Watcher{Client: set.Core, Confirm: apitest.Confirmed}.Watch
		defer l.run().end()
		d := podWith("1", "", "")
		vol := v1.Volume{Name: "v"}
		vol.Secret = &v1.SecretVolumeSource{SecretName: "one"}
		d.Pod.Spec.Volumes = []v1.Volume{vol}
		if with, err := l.Complete(t.Context(), d); err != nil || len(with.Unread) != 1 {
			t.Errorf("%v, %v", err, with)
		}
		checkRequests(t, requests)
	})
}
