//go:build e2e

package e2e

import (
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// privateRegistry serves the demo image to one user, and returns the name of the image.
func privateRegistry(t *testing.T, user, password string) string {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, ok := r.BasicAuth(); !ok || u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	ref, err := name.ParseReference(host + "/demo:1")
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(filepath.Join(need(t, "PODCTL_IMAGES"), "demo.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img, remote.WithAuth(&authn.Basic{Username: user, Password: password})); err != nil {
		t.Fatal(err)
	}
	return ref.Name()
}

// testPull pulls from a registry that requires credentials. Without them, the message names the problem. With a pull
// secret in the manifest, the pod runs.
func testPull(t *testing.T, m *machine) {
	image := privateRegistry(t, "reader", "s3cret")
	pod := fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: pulled}
spec:
  terminationGracePeriodSeconds: 2
  imagePullSecrets: [{name: login}]
  containers: [{name: app, image: %q, imagePullPolicy: Always, args: [sleep]}]
`, image)
	r := m.run(t, "apply", write(t, pod))
	if r.code != 1 || !strings.Contains(r.stderr, "denies access") {
		t.Errorf("without credentials: exit code %d\n%s", r.code, r.stderr)
	}
	host, _, _ := strings.Cut(image, "/")
	auth := base64.StdEncoding.EncodeToString([]byte("reader:s3cret"))
	config := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, host, auth))
	secret := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: login}\n"+
		"type: kubernetes.io/dockerconfigjson\ndata: {.dockerconfigjson: %s}\n---\n", config)
	path := write(t, secret+pod)
	r = m.must(t, "apply", "--wait", "--timeout", "30s", path)
	plans := m.must(t, "plan", "-o", "json", path).stdout
	for _, hidden := range []string{"s3cret", auth, config} {
		if strings.Contains(r.stdout+r.stderr+plans, hidden) {
			t.Error("a credential is in the output")
		}
	}
	if len(m.ids(t, "pulled")) != 1 {
		t.Error("the pod does not run")
	}
	m.must(t, "delete", "pulled")
}

// testHostPort connects to a container through a port of the machine.
func testHostPort(t *testing.T, m *machine) {
	path := write(t, `apiVersion: v1
kind: Pod
metadata: {name: published}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [serve]
    ports: [{containerPort: 8080, hostPort: 28080}]
    readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
`)
	m.must(t, "apply", "--wait", "--timeout", "30s", path)
	reply, err := http.Get("http://127.0.0.1:28080/healthz") //nolint:noctx // a test against this machine
	if err != nil {
		t.Fatal(err)
	}
	if err := reply.Body.Close(); err != nil || reply.StatusCode != http.StatusOK {
		t.Errorf("status %s, %v", reply.Status, err)
	}
	m.must(t, "delete", "published")
}

// testNodeRestart: containers survive the end of their containerd.
func testNodeRestart(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", write(t, two))
	before := m.ids(t, "two")
	killContainerd(t, m)
	if r := m.run(t, "plan", write(t, two)); r.code != 1 || !strings.Contains(r.stderr, "is it running?") {
		t.Errorf("without a runtime: exit code %d\n%s", r.code, r.stderr)
	}
	m.must(t, "node", "up", "--containerd", need(t, "PODCTL_CONTAINERD"))
	waitFor(t, func() bool { return sameMap(before, m.ids(t, "two")) })
	if p := m.plan(t, write(t, two)); !p.Complete {
		t.Errorf("after the restart: %+v", p.Steps)
	}
	m.must(t, "delete", "two")
}
