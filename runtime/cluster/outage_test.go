package cluster

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

// logOf returns a log without times, and its text.
func logOf() (*slog.Logger, *strings.Builder) {
	text := &strings.Builder{}
	return slog.New(slog.NewTextHandler(text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), text
}

// TestOutage checks that the cause of an outage is logged once for all tasks, again if it changes, and its end.
func TestOutage(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":401,"reason":"Unauthorized"}`))
	}))
	address := server.Listener.Addr().String()
	clock := now
	log, text := logOf()
	c, err := Connect(Settings{
		Kubeconfig: kubeconfigOf(t, server.URL, "token: t"), Now: func() time.Time { return clock }, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	request := func() {
		t.Helper()
		for _, resource := range []string{"nodes", "pods", "services"} {
			err := c.Core.Get().Resource(resource).MaxRetries(0).Do(t.Context()).Error()
			if err != nil && !apierror.IsLogged(err) {
				t.Errorf("the task logs %v", err)
			}
		}
	}
	request()
	status = http.StatusUnauthorized
	request()
	status = http.StatusOK
	request()
	server.Close()
	request()
	clock = clock.Add(time.Hour)
	request()
	want := `level=WARN msg="the API server refuses all requests of the node: pods keep running, and podctl tries again" ` +
		`error="the API server does not accept the credentials of the kubeconfig (401): renew them"
level=INFO msg="the API server accepts requests of the node again"
level=WARN msg="the API server does not respond: pods keep running, and podctl tries again" ` +
		`error="http://` + address + `: dial: connect: connection refused: check that the API server runs and that this machine reaches it"
`
	if text.String() != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
}

// TestAlternation checks that an API server that answers every second request does not fill the log.
func TestAlternation(t *testing.T) {
	log, text := logOf()
	o := outage{}
	for i := range 120 {
		o.begin(log, now.Add(time.Duration(i)*time.Second), "begin", http.ErrServerClosed)
		o.end(log, "end")
	}
	if lines := strings.Count(text.String(), "\n"); lines != 4 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
}

// TestChangingCauses checks that causes that always change do not fill the log, and that numbers of streams are no
// change.
func TestChangingCauses(t *testing.T) {
	log, text := logOf()
	o, streams := outage{}, outage{}
	for i := range 60 {
		at := now.Add(time.Duration(i) * time.Second)
		o.begin(log, at, "begin", fmt.Errorf("cause %d", i))
		streams.begin(log, at, "streams", fmt.Errorf("stream error: stream ID %d; INTERNAL_ERROR", i))
	}
	if lines := strings.Count(text.String(), "msg=begin"); lines != 6 || strings.Count(text.String(), "msg=streams") != 1 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
}

// TestExpiredWhileRunning checks that the log names the certificate of the kubeconfig that has expired while the node
// runs.
func TestExpiredWhileRunning(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	cert, key := certificate(t, now.Add(time.Hour))
	own := written(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	other, _ := certificate(t, now.Add(time.Hour))
	for name, one := range map[string]struct{ authority, want string }{
		"client":    {own, "the client certificate of system:node:n has expired at 2026-05-01T13:00:00Z: renew it"},
		"authority": {other, "the certificate authority system:node:n has expired at 2026-05-01T13:00:00Z: renew it"},
	} {
		clock := now
		log, text := logOf()
		c, err := Connect(Settings{
			Kubeconfig: kubeconfigOf(t, server.URL+`", certificate-authority: "`+one.authority,
				"client-certificate: "+cert+", client-key: "+key),
			Now: func() time.Time { return clock }, Log: log,
		})
		if err != nil {
			t.Fatal(err)
		}
		clock = clock.Add(2 * time.Hour)
		if err = c.Core.Get().Resource("nodes").MaxRetries(0).Do(t.Context()).Error(); err == nil || !apierror.IsLogged(err) {
			t.Errorf("%s: the request: %v", name, err)
		}
		if strings.Count(text.String(), "\n") != 1 || !strings.Contains(text.String(), one.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
