package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// faultyAddress is where the agent reaches the API server in TestOutages.
const faultyAddress = nodeIP + ":7443"

// outage is a cluster without controllers. The agent reaches its API server through a proxy that can fail. Pods use the
// network of the node.
type outage struct {
	*cluster

	// fault answers a request in place of the API server; nil if there is none. cut ends all requests of the proxy.
	fault atomic.Pointer[fault]
	cut   atomic.Pointer[chan struct{}]
	// proxy is the running proxy, with its handler and its serving certificate.
	proxy   *http.Server
	handler http.Handler
	serving tls.Certificate
}

// setFault sets what answers requests, and ends all that run, such as watches.
func (o *outage) setFault(f *fault) {
	o.fault.Store(f)
	if before := o.cut.Swap(new(make(chan struct{}))); before != nil {
		close(*before)
	}
}

// fault answers a request, or passes it on to the API server.
type fault func(w http.ResponseWriter, r *http.Request, next http.Handler)

// TestOutages checks that no answer of a faulty API server changes a running pod, that the agent recovers, and what it
// does after the API server was restored from an old backup, or lost all its objects.
func TestOutages(t *testing.T) {
	o := startOutage(t)
	o.create(t, "first")
	t.Run("faults", o.testFaults)
	t.Run("stopped", o.testStopped)
	t.Run("reboot", o.testReboot)
	t.Run("backup", o.testBackup)
	t.Run("another_cluster", o.testAnotherCluster)
}

func startOutage(t *testing.T) *outage {
	t.Helper()
	programs, err := given()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &cluster{
		t: t, restartable: &restartable{}, node: &node{needed: programs}, authority: newAuthority(t, filepath.Join(dir, "pki")),
		controlPlane: setting(t, "CONTROLPLANE_BIN"), logs: dir,
		images: &registry{dir: t.TempDir(), manifests: map[string]string{}},
	}
	if logs := os.Getenv("CLUSTER_LOGS"); logs != "" {
		c.logs = filepath.Join(logs, "outages")
		if err = os.MkdirAll(c.logs, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.addClusterImages(t)
	c.images.serve(t)
	c.containerd = c.node.startContainerd(t, c.logs)
	o := &outage{cluster: c}
	o.issueAll(t)
	o.startServers(t)
	o.serveFaulty(t)
	o.kubeconfig(t, "https://"+faultyAddress, "node", nodeUser, "system:nodes")
	o.startNode(t, "--authorization-mode", "AlwaysAllow")
	return o
}

// issueAll issues the certificates of the API server and its clients.
func (o *outage) issueAll(t *testing.T) {
	t.Helper()
	write(t, o.path("audit.yaml"), auditPolicy)
	o.issue(t, "server", subject{"kube-apiserver", nil}, []net.IP{net.ParseIP(nodeIP)}, "kubernetes")
	o.issue(t, "to-kubelet", subject{"kube-apiserver-kubelet-client", []string{"system:masters"}}, nil)
	o.kubectl = &kubectl{
		program: setting(t, "KUBECTL_BIN"),
		config:  o.kubeconfig(t, clusterURL, "admin", "kubernetes-admin", "system:masters"),
	}
}

// serveFaulty starts the proxy. It makes the requests of the node as an administrator in the node's name.
func (o *outage) serveFaulty(t *testing.T) {
	t.Helper()
	o.issue(t, "faulty", subject{"kubernetes-admin", []string{"system:masters"}}, nil)
	serving, err := tls.LoadX509KeyPair(o.path("server.crt"), o.path("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.LoadX509KeyPair(o.path("faulty.crt"), o.path("faulty.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(read(t, o.path("ca.crt"))))
	target, err := url.Parse(clusterURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Impersonate-User", nodeUser)
			r.Out.Header.Set("Impersonate-Group", "system:nodes")
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}, MaxIdleConnsPerHost: 100,
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	o.serving = serving
	o.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		go func(cut chan struct{}) {
			select {
			case <-cut:
				end()
			case <-ctx.Done():
			}
		}(*o.cut.Load())
		r = r.WithContext(ctx)
		if f := o.fault.Load(); f != nil {
			(*f)(w, r, proxy)
			return
		}
		proxy.ServeHTTP(w, r)
	})
	o.setFault(nil)
	o.open(t)
	t.Cleanup(func() { _ = o.proxy.Close() })
}

// open opens the port of the proxy. While the proxy is closed, connections are refused.
func (o *outage) open(t *testing.T) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", faultyAddress)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{o.serving}}, Handler: o.handler, ReadHeaderTimeout: patience,
	}
	o.proxy = server
	go func() {
		if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
}

// create creates a pod, with the service account that it needs, and waits until it runs.
func (o *outage) create(t *testing.T, name string) {
	t.Helper()
	if r := o.call(t, "", "get", "serviceaccount", "default"); r.code != 0 {
		o.must(t, "create", "serviceaccount", "default")
	}
	o.must(t, "create", "configmap", name, "--from-literal=color=red")
	path := filepath.Join(t.TempDir(), "pod.yaml")
	write(t, path, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  nodeName: %[2]s
  hostNetwork: true
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  volumes: [{name: config, configMap: {name: %[1]s}}]
  containers:
  - name: app
    image: %[3]s
    command: [sleep, "1000000"]
    volumeMounts: [{name: config, mountPath: /config}]
`, name, nodeName, webImage))
	o.must(t, "apply", "-f", path)
	o.must(t, "wait", "--for=condition=Ready", "pod/"+name, "--timeout", patience.String())
}

// appOf returns the id of the container of a pod.
func (o *outage) appOf(t *testing.T, name string) string {
	t.Helper()
	return o.node.records(t).idOf(t, "default/"+name+"/app")
}

// runs returns what runs. Records of pods that have ended may go at any time.
func (o *outage) runs(t *testing.T) records {
	t.Helper()
	now := o.node.records(t)
	maps.DeleteFunc(now, func(_, what string) bool {
		return !strings.HasSuffix(what, running) && !strings.HasSuffix(what, "SANDBOX_READY")
	})
	return now
}

// faultFor is how long each fault lasts.
const faultFor = 20 * time.Second

// testFaults lets all answers of the API server be wrong in some way. Meanwhile a pod is deleted, and another changes.
func (o *outage) testFaults(t *testing.T) {
	status := func(code int, reason string) fault {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(code)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
		}
	}
	for name, f := range map[string]fault{
		"page": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>Welcome</html>")
		},
		"missing_page": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			http.Error(w, "nothing here", http.StatusNotFound)
		},
		"empty_object": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
		},
		"empty_list": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`)
		},
		"refused":      status(http.StatusForbidden, "Forbidden"),
		"unknown_user": status(http.StatusUnauthorized, "Unauthorized"),
		"conflict":     status(http.StatusConflict, "Conflict"),
		"expired":      status(http.StatusGone, "Expired"),
		"too_many":     status(http.StatusTooManyRequests, "TooManyRequests"),
		"error":        status(http.StatusInternalServerError, "InternalError"),
		"not_found":    status(http.StatusNotFound, "NotFound"),
		"silent":       func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() },
		"cut_off":      func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) },
		"slow": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			time.Sleep(3 * time.Second)
			next.ServeHTTP(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) { o.testFault(t, name, f) })
	}
}

func (o *outage) testFault(t *testing.T, name string, f fault) {
	pod := "during-" + strings.ReplaceAll(name, "_", "-")
	o.create(t, pod)
	first := o.appOf(t, "first")
	o.setFault(&f)
	o.must(t, "delete", "pod", pod, "--wait=false")
	o.must(t, "label", "pod", "first", "--overwrite", "seen="+pod)
	time.Sleep(faultFor)
	o.agent.alive(t)
	if now := o.appOf(t, "first"); now != first {
		t.Errorf("the container of first is %s, was %s", now, first)
	}
	o.setFault(nil)
	until(t, func() string { return o.call(t, "", "get", "pod", pod, "--ignore-not-found").stdout })
	o.create(t, pod+"-after")
	o.must(t, "delete", "pod", pod+"-after", "--now")
	if now := o.appOf(t, "first"); now != first {
		t.Errorf("afterwards, the container of first is %s, was %s", now, first)
	}
}

// testStopped stops the API server while pods run, and starts the agent without it.
func (o *outage) testStopped(t *testing.T) {
	before := o.runs(t)
	o.stopServers(t)
	time.Sleep(faultFor)
	o.agent.end(t)
	o.startAgent(t)
	time.Sleep(faultFor)
	sameRuns(t, before, o.runs(t))
	o.startServers(t)
	o.create(t, "stopped")
	o.must(t, "delete", "pod", "stopped", "--now")
	sameRuns(t, before, o.runs(t))
}

// testBackup restores the API server from a backup. A pod of the backup continues, and a later one ends, as it does
// when a kubelet is the node.
func (o *outage) testBackup(t *testing.T) {
	first := o.appOf(t, "first")
	o.stopServers(t)
	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.CopyFS(backup, os.DirFS(o.etcdDir())); err != nil {
		t.Fatal(err)
	}
	o.startServers(t)
	o.create(t, "later")
	o.must(t, "label", "pod", "first", "--overwrite", "seen=later")
	o.stopServers(t)
	_ = o.proxy.Close() // The connections of the node are refused until the API server is older.
	o.replaceEtcd(t, backup)
	o.startServers(t)
	o.open(t)
	until(t, func() string {
		for _, what := range o.node.records(t) {
			if strings.HasPrefix(what, "default/later") {
				return "is there: " + what
			}
		}
		return ""
	})
	if now := o.appOf(t, "first"); now != first {
		t.Errorf("the container of first is %s, was %s", now, first)
	}
	o.prove(t, "Running", "get", "pod", "first", "-o", "jsonpath={.status.phase}")
	o.create(t, "restored")
	o.must(t, "delete", "pod", "restored", "--now")
}

// testAnotherCluster lets the API server lose all its objects. Pods continue until the user confirms the new cluster.
func (o *outage) testAnotherCluster(t *testing.T) {
	before := o.runs(t)
	o.stopServers(t)
	o.replaceEtcd(t, "")
	o.startServers(t)
	until(t, func() string {
		if r := o.node.run(t, "agent", "status"); !strings.Contains(r.stdout, "this is another cluster") {
			return r.stdout + r.stderr
		}
		return ""
	})
	o.agent.end(t)
	o.startAgent(t)
	time.Sleep(faultFor)
	sameRuns(t, before, o.runs(t))
	if r := o.call(t, "", "get", "node", nodeName); r.code == 0 {
		t.Errorf("the node is registered in another cluster: %s", r.stdout)
	}
	o.node.must(t, "agent", "join", "--new-cluster")
	o.awaitRegistered(t)
	until(t, func() string {
		if live := o.runs(t); len(live) > 0 {
			return fmt.Sprintf("pods of the old cluster run: %v", live)
		}
		return ""
	})
	o.create(t, "new")
}
