package guard

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/cluster"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/cluster/membership"
)

// server is an API server with a Node and a Service.
type server struct {
	mu            sync.Mutex
	node, service string
	requests      int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	kind, name, uid := "Node", "n", s.node
	if strings.HasSuffix(r.URL.Path, "/namespaces/default/services/kubernetes") {
		kind, name, uid = "Service", "kubernetes", s.service
	}
	switch uid {
	case "":
		apitest.Refusal(http.StatusNotFound, metav1.StatusReasonNotFound, 0)(w, r)
	case "forbidden":
		apitest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, 0)(w, r)
	case "page":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message":"no such page"}`))
	case "none":
		apitest.JSON(http.StatusOK, fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"name":%q}}`, kind, name))(w, r)
	default:
		text := `{"kind":%q,"apiVersion":"v1","metadata":{"name":%q,"uid":%q}}`
		apitest.JSON(http.StatusOK, fmt.Sprintf(text, kind, name, uid))(w, r)
	}
}

// set sets the uids of the objects, and returns the number of requests since the last call.
func (s *server) set(node, service string) (requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests, s.requests = s.requests, 0
	s.node, s.service = node, service
	return requests
}

// TestGuard checks each kind of API server, and when no request is made.
func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{}
		_, config := apitest.Serve(t, api)
		client, err := apiclient.New(config)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "state")
		if err = os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		health, log := cluster.State{Responds: true, Since: time.Now()}, &apitest.Log{}
		g := New(Settings{
			Client: client.Core, Health: func() cluster.State { return health }, Node: "n", StateDir: dir,
			Log: slog.New(slog.NewTextHandler(log, nil)),
		})
		check := func(what, want string) {
			t.Helper()
			failure := g.Check(t.Context())
			if got := fmt.Sprint(failure); want == "" && failure != nil || !strings.Contains(got, want) {
				t.Errorf("%s: %v, want %s", what, failure, want)
			}
			if other := (*otherError)(nil); errors.As(failure, &other) != (g.Other() != nil) {
				t.Errorf("%s: %v, but Other returns %v", what, failure, g.Other())
			}
		}
		api.set("x", "y")
		check("nothing is recorded", "")
		if requests := api.set("u", ""); requests != 0 {
			t.Errorf("%d requests without a record", requests)
		}
		if before, registered := g.Registered("u", "b"); before != nil || registered != nil {
			t.Errorf("first registration: %v %v", before, registered)
		}
		check("the Service does not exist yet", "")
		api.set("u", "s")
		check("the same cluster", "")
		if r, readErr := membership.Read(dir); readErr != nil || r.Service != "s" {
			t.Errorf("record: %+v %v", r, readErr)
		}
		api.set("u", "s")
		if err = g.Confirm(t.Context()); err != nil || api.set("", "y") != 0 {
			t.Errorf("confirmed: %v, or there was a request", err)
		}
		// The connection is lost.
		time.Sleep(time.Second)
		health.Since = time.Now()
		if err = g.Confirm(t.Context()); err == nil || api.set("", "y") != 2 {
			t.Errorf("confirmed after the loss of the connection: %v", err)
		}
		check("another cluster", "podctl agent join --new-cluster")
		if err = g.Confirm(t.Context()); err == nil {
			t.Error("confirmed another cluster")
		}
		for what, uids := range map[string][2]string{
			"an API server that starts":    {"", ""},
			"no permission for the Node":   {"forbidden", "s"},
			"a page instead of the Node":   {"page", "s"},
			"a Node without a uid":         {"none", "s"},
			"a Service without a uid":      {"x", "none"},
			"a page instead of the object": {"", "page"},
		} {
			api.set(uids[0], uids[1])
			if err = g.Check(t.Context()); err == nil {
				t.Errorf("%s counts as the same cluster", what)
			}
		}
		api.set("u", "s")
		check("the first cluster", "")
		api.set("", "")
		for range 2 {
			if err = g.Check(t.Context()); !apierror.IsLogged(err) || !apierrors.IsServiceUnavailable(err) {
				t.Errorf("an API server that starts: %v", err)
			}
		}
		if count := strings.Count(log.String(), "the API server starts"); count != 2 {
			t.Errorf("two starts of an API server are logged %d times", count)
		}
		api.set("x", "forbidden")
		check("no permission for the Service", "")
		api.set("x", "s")
		check("the Node was created again", "")
		if before, registered := g.Registered("x", "b"); before.UID != "u" || registered != nil {
			t.Errorf("second registration: %v %v", before, registered)
		}
		if r, readErr := membership.Read(dir); readErr != nil || *r != (membership.Record{Name: "n", UID: "x", Service: "s", BootID: "b"}) {
			t.Errorf("record: %+v %v", r, readErr)
		}
		api.set("v", "w")
		check("another cluster", "other uids")
		if _, err = membership.Forget(dir); err != nil {
			t.Fatal(err)
		}
		check("the user has confirmed", "")
	})
}
