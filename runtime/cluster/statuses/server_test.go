package statuses

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
)

// fault answers a request in place of the API server. It returns false to let the API server answer.
type fault func(w http.ResponseWriter, r *http.Request) bool

// apiServer is an API server for pods. It is also the watch: Get returns the stored pods unless the watch is stopped.
type apiServer struct {
	mu       sync.Mutex
	version  int
	pods     map[string]*v1.Pod
	watched  map[types.UID]*v1.Pod
	stopped  bool
	unlisted bool
	// requests are the requests, "PATCH default/web Running", and faults answer the next ones.
	requests []string
	lastBody []byte
	faults   []fault
	// broken answers every request while it is set.
	broken fault
	// observe is called with each stored status.
	observe func(*v1.Pod)
	// onChange is called with each change that the watch reports.
	onChange func(types.UID)
}

func newAPIServer() *apiServer {
	return &apiServer{version: 100, pods: map[string]*v1.Pod{}, watched: map[types.UID]*v1.Pod{}}
}

// Get returns the watched copy of a pod.
func (s *apiServer) Get(uid types.UID) *v1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watched[uid]
}

// Listed reports whether the list of pods has been read.
func (s *apiServer) Listed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unlisted
}

// put stores a pod as a client would.
func (s *apiServer) put(pod *v1.Pod) {
	s.mu.Lock()
	s.store(pod.DeepCopy())
	s.mu.Unlock()
	s.report(pod.UID)
}

// edit changes a stored pod as another client would.
func (s *apiServer) edit(name string, change func(*v1.Pod)) {
	s.mu.Lock()
	pod := s.pods[name].DeepCopy()
	change(pod)
	s.store(pod)
	s.mu.Unlock()
	s.report(pod.UID)
}

func (s *apiServer) report(uid types.UID) {
	if s.onChange != nil {
		s.onChange(uid)
	}
}

func (s *apiServer) store(pod *v1.Pod) {
	s.version++
	pod.ResourceVersion = strconv.Itoa(s.version)
	s.pods[pod.Namespace+"/"+pod.Name] = pod
	if !s.stopped {
		s.watched[pod.UID] = pod
	}
}

// set changes the server's settings.
func (s *apiServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// log returns the requests since the last call.
func (s *apiServer) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.requests
	s.requests = nil
	return log
}

// status returns the stored status of default/web.
func (s *apiServer) status() v1.PodStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods["default/web"].Status
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var sent v1.Pod
	_ = json.Unmarshal(body, &sent)
	parts := pathOf(r)
	if len(parts) < 3 || parts[1] != "pods" {
		answerStatus(w, 404, metav1.StatusReasonNotFound, "no such path")
		return
	}
	name := parts[0] + "/" + parts[2]
	if s.disturb(w, r, strings.TrimSpace(fmt.Sprint(r.Method, " ", name, " ", sent.Status.Phase)), body) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle(w, r, body)
}

// handle answers a request. The caller holds the lock.
func (s *apiServer) handle(w http.ResponseWriter, r *http.Request, body []byte) {
	parts := pathOf(r)
	pod := s.pods[parts[0]+"/"+parts[2]]
	switch {
	case pod == nil:
		answerStatus(w, 404, metav1.StatusReasonNotFound, "pods not found")
	case r.Method == http.MethodGet:
		answer200(w, pod)
	case r.Method == http.MethodPatch && len(parts) == 4 && parts[3] == "status":
		s.patch(w, pod, body)
	case r.Method == http.MethodDelete:
		s.remove(w, pod, body)
	default:
		answerStatus(w, 405, metav1.StatusReasonMethodNotAllowed, "no")
	}
}

// pathOf returns the namespace, "pods", the name and the subresource of a request.
func pathOf(r *http.Request) []string {
	return strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"), "/")
}

// disturb records a request and lets a fault answer it.
func (s *apiServer) disturb(w http.ResponseWriter, r *http.Request, text string, body []byte) bool {
	s.mu.Lock()
	s.requests = append(s.requests, text)
	s.lastBody = body
	f := s.broken
	if f == nil && len(s.faults) > 0 {
		f, s.faults = s.faults[0], s.faults[1:]
	}
	s.mu.Unlock()
	return f != nil && f(w, r)
}

func (s *apiServer) patch(w http.ResponseWriter, pod *v1.Pod, body []byte) {
	var sent v1.Pod
	if err := json.Unmarshal(body, &sent); err != nil || sent.UID == "" {
		answerStatus(w, 400, metav1.StatusReasonBadRequest, "no uid")
		return
	}
	if sent.UID != pod.UID {
		answerStatus(w, 409, metav1.StatusReasonConflict, "the uid differs")
		return
	}
	before, err := json.Marshal(pod)
	if err != nil {
		panic(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, body, v1.Pod{})
	if err != nil {
		answerStatus(w, 400, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	changed := &v1.Pod{}
	if err := json.Unmarshal(after, changed); err != nil {
		panic(err)
	}
	if string(before) != string(after) {
		s.store(changed)
	}
	if s.observe != nil {
		s.observe(changed)
	}
	answer200(w, changed)
}

func (s *apiServer) remove(w http.ResponseWriter, pod *v1.Pod, body []byte) {
	var options metav1.DeleteOptions
	if err := json.Unmarshal(body, &options); err != nil || options.GracePeriodSeconds == nil ||
		options.Preconditions == nil {
		answerStatus(w, 400, metav1.StatusReasonBadRequest, "no options")
		return
	}
	if *options.Preconditions.UID != pod.UID {
		answerStatus(w, 409, metav1.StatusReasonConflict, "the uid differs")
		return
	}
	if len(pod.Finalizers) > 0 {
		waits := pod.DeepCopy()
		waits.DeletionGracePeriodSeconds = options.GracePeriodSeconds
		s.store(waits)
		answer200(w, waits)
		return
	}
	delete(s.pods, pod.Namespace+"/"+pod.Name)
	if !s.stopped {
		delete(s.watched, pod.UID)
	}
	answer200(w, pod)
}

func answer200(w http.ResponseWriter, pod *v1.Pod) {
	pod = pod.DeepCopy()
	pod.APIVersion, pod.Kind = "v1", "Pod"
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(pod)
}

func answerStatus(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	var details *metav1.StatusDetails
	if seconds, err := strconv.Atoi(w.Header().Get("Retry-After")); err == nil {
		details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)} // small
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message, Details: details, // a code of HTTP
	})
}

// refuses answers with a code. after is the header Retry-After, if it is set.
func refuses(code int, reason metav1.StatusReason, after string) fault {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		answerStatus(w, code, reason, "refused")
		return true
	}
}

// busyText answers as an API server with too many requests does.
func busyText(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Retry-After", "4")
	http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
	return true
}

// html answers as a proxy does.
func html(code int) fault {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "<html>\n<body>sign in\x1b[31m</body></html>")
		return true
	}
}

// disconnect ends the connection without an answer.
func disconnect(w http.ResponseWriter, _ *http.Request) bool {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
	return true
}

// hang answers only when the client gives up.
func hang(_ http.ResponseWriter, r *http.Request) bool {
	<-r.Context().Done()
	return true
}

// pipes is a listener in memory: the connections of a bubble of synctest.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve starts the API server and returns a client of it.
func (s *apiServer) serve(t *testing.T) *Client {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := httptest.NewUnstartedServer(s)
	_ = server.Listener.Close()
	server.Listener = p
	server.Start()
	transport := &http.Transport{DialContext: p.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	requests, err := apiclient.New(&rest.Config{Host: "http://api.test", Transport: transport, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return NewClient(requests.Core)
}
