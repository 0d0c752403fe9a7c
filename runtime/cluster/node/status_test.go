package node

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/cluster"
	"github.com/podctl/podctl/runtime/cluster/apievents"
	"github.com/podctl/podctl/runtime/cluster/certificates"
	"github.com/podctl/podctl/runtime/cluster/guard"
	"github.com/podctl/podctl/runtime/cluster/membership"
	"github.com/podctl/podctl/runtime/cluster/pods"
	"github.com/podctl/podctl/runtime/cluster/statuses"
	"github.com/podctl/podctl/runtime/kubeletapi"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// TestDescribe checks the status of a node that has not reached its API server yet.
func TestDescribe(t *testing.T) {
	layout := state.Layout{Root: filepath.Join(t.TempDir(), "state")}
	if err := layout.Prepare(); err != nil {
		t.Fatal(err)
	}
	serving, err := kubeletapi.SelfSigned(layout.Root, []string{"n"}, []net.IP{net.IPv4(127, 0, 0, 1)}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	port, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test listens on a port of its own
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close() //nolint:errcheck // the test is over
	client := &cluster.Client{
		Config: &rest.Config{Host: "https://user:secret@a:1", TLSClientConfig: rest.TLSClientConfig{CertData: []byte("bad")}},
		Health: &cluster.Health{},
	}
	n := &node{
		ClusterSettings: &daemon.ClusterSettings{NodeName: "n"},
		member:          &daemon.Member{Settings: daemon.Settings{Layout: layout}},
		client:          client,
		guard:           guard.New(guard.Settings{Node: "n"}),
		certificates:    nodeCertificates{client: client, serve: serving},
		ports:           ports{secure: port},
		source:          pods.New(pods.Settings{Name: "api", Load: load.FromAPI, Log: log}),
		events:          apievents.New(apievents.Settings{Check: func() error { return errors.New("down") }, Node: "n", Log: log}),
	}
	n.statuses = statuses.New(statuses.Settings{Copies: n.source, Log: log})
	n.events.Node("Normal", "Starting", "")
	s := &api.Status{Pods: []api.Pod{{PodRef: model.PodRef{UID: "u"}}}}
	n.Describe(s)
	c := s.Cluster
	if c.APIServer.Responds || !c.APIServer.Since.IsZero() || c.Node.Name != "n" || c.Node.UID != "" || c.Events.Pending != 1 ||
		strings.Contains(c.APIServer.Address, "secret") || !strings.Contains(c.APIServer.Address, "@a:1") {
		t.Errorf("%+v", c)
	}
	if err = (&membership.Record{Name: "n", UID: "before"}).Write(layout.Root); err != nil {
		t.Fatal(err)
	}
	if n.Describe(s); s.Cluster.Node.UID != "before" {
		t.Errorf("a registered node has the uid %q", s.Cluster.Node.UID)
	}
	if want := (api.NodeServer{Address: port.Addr().String(), Authorization: "Webhook"}); c.Server != want {
		t.Errorf("%+v", c.Server)
	}
	if len(c.Certificates) != 2 || c.Certificates[0].Use != "client" || !strings.Contains(c.Certificates[0].Error, "PEM") ||
		c.Certificates[1].Use != "serving" || time.Until(c.Certificates[1].Expires) < 300*24*time.Hour {
		t.Errorf("%+v", c.Certificates)
	}
	n.certificates.serve = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("gone") }
	if n.Describe(s); s.Cluster.Certificates[1].Error != "gone" {
		t.Errorf("%+v", s.Cluster.Certificates)
	}
}

// TestDescribeRotation checks the description of a certificate that the API server signs.
func TestDescribeRotation(t *testing.T) {
	none := describeRotation("client", certificates.State{Request: "csr-1", Since: time.Unix(1, 0), Approved: true, Failure: "f"})
	if want := (api.Certificate{
		Use: "client", Rotates: true, Request: "csr-1", Requested: time.Unix(1, 0), Approved: true, Error: "f",
	}); none != want {
		t.Errorf("%+v", none)
	}
	c := &x509.Certificate{Subject: pkix.Name{CommonName: "system:node:n"}, NotAfter: time.Unix(2, 0)}
	if d := describeRotation("serving", certificates.State{Certificate: c}); d.Subject != "CN=system:node:n" || !d.Expires.Equal(c.NotAfter) {
		t.Errorf("%+v", d)
	}
}

// TestFinalizers checks that a pod that has ended waits for its finalizers, and that the agent's own texts stay.
func TestFinalizers(t *testing.T) {
	now := metav1.Now()
	for name, c := range map[string]struct {
		deleted *metav1.Time
		phase   v1.PodPhase
		want    string
	}{
		"it has ended":   {&now, v1.PodFailed, "held; finalizers in the API server: a/x, b/y"},
		"it ends":        {&now, v1.PodRunning, "held"},
		"it has no mark": {nil, v1.PodSucceeded, "held"},
	} {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: "u", DeletionTimestamp: c.deleted, Finalizers: []string{"a/x", "b/y"}},
			Status:     v1.PodStatus{Phase: c.phase},
		}
		shared := make([]string, 1, 2)
		shared[0] = "held"
		p := api.Pod{Waiting: shared}
		addFinalizers(&p, pod)
		if got := strings.Join(p.Waiting, "; "); got != c.want || shared[:2][1] != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	addFinalizers(&api.Pod{}, nil)
}
