package kubeletapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/podctl/podctl/podspec"
)

// Agent provides the pods of the node. runtime/agent implements it.
type Agent interface {
	// Shown returns the pods that the agent keeps, and those that it is deleting. Of several pods with one name, those
	// that stay are first.
	Shown(ctx context.Context) ([]*podspec.Desired, error)
	// List returns pods with their status, in the same order. The status of a pod that cannot be observed contains the
	// error. If List returns no pods, it returns an error.
	List(ctx context.Context, pods []*podspec.Desired) ([]*v1.Pod, error)
	// Healthy returns an error if the agent's loop is stalled.
	Healthy() error
}

// Runtime has the calls of the CRI that the server makes. *cri.Client implements it.
type Runtime interface {
	ListPodSandbox(
		context.Context, *runtimeapi.ListPodSandboxRequest, ...grpc.CallOption,
	) (*runtimeapi.ListPodSandboxResponse, error)
	ListContainers(
		context.Context, *runtimeapi.ListContainersRequest, ...grpc.CallOption,
	) (*runtimeapi.ListContainersResponse, error)
	ContainerStatus(
		context.Context, *runtimeapi.ContainerStatusRequest, ...grpc.CallOption,
	) (*runtimeapi.ContainerStatusResponse, error)
	ExecSync(context.Context, *runtimeapi.ExecSyncRequest, ...grpc.CallOption) (*runtimeapi.ExecSyncResponse, error)
	Exec(context.Context, *runtimeapi.ExecRequest, ...grpc.CallOption) (*runtimeapi.ExecResponse, error)
	Attach(context.Context, *runtimeapi.AttachRequest, ...grpc.CallOption) (*runtimeapi.AttachResponse, error)
	PortForward(
		context.Context, *runtimeapi.PortForwardRequest, ...grpc.CallOption,
	) (*runtimeapi.PortForwardResponse, error)
}

// Settings configure a server.
type Settings struct {
	// NodeName is the name of the Node. It is part of the API names of pods that are not from the API server.
	NodeName string
	// AlwaysAllow allows every request. Otherwise only processes of the same user on this machine are allowed.
	AlwaysAllow bool
	// Certificates returns the serving certificate.
	Certificates Certificates
	// Configuration returns the values of /configz. Their kind and version need not be set.
	Configuration func() *kubeletconfig.KubeletConfiguration
	// Measures and Metrics serve metrics and statistics.
	Measures Measures
	Metrics  Metrics
	Now      func() time.Time
	Log      *slog.Logger
}

// Server is the server of a node.
type Server struct {
	Settings
	agent   Agent
	runtime Runtime
	limits  limits
	// streams holds a value for each stream in work.
	streams chan struct{}
}

// New returns a server of an agent's pods.
func New(agent Agent, runtime Runtime, s Settings) *Server {
	return newServer(agent, runtime, s, defaultLimits())
}

func newServer(agent Agent, runtime Runtime, s Settings, l limits) *Server {
	return &Server{Settings: s, agent: agent, runtime: runtime, limits: l, streams: make(chan struct{}, l.streams)}
}

// The limits of a connection. A request for a command has the command in its address, so headers may be long. There is
// no limit for a whole request, because a stream takes as long as it needs.
const (
	headerTime = time.Minute
	// idleTime and headerMax are the kubelet's (server: ListenAndServeKubeletServer).
	idleTime  = 90 * time.Second
	headerMax = 1 << 20
)

// Serve serves a listener with TLS until the context ends. It serves HTTP/1.1 only: a connection then has one request
// at a time, so a client that reads slowly delays only itself, and limits of connections are limits of requests.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	limited := newListener(l, s.limits)
	server := &http.Server{
		Handler:           s.handler(limited),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerMax,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.Certificates},
		Protocols:         &http.Protocols{},
		// Clients can cause any number of these errors.
		ErrorLog:    slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: withConnection,
	}
	server.Protocols.SetHTTP1(true)
	defer context.AfterFunc(ctx, func() {
		_ = server.Close() // It closes the listener, which no request needs.
		limited.end()
	})()
	if err := server.ServeTLS(limited, "", ""); !errors.Is(err, http.ErrServerClosed) || ctx.Err() == nil {
		return err
	}
	return nil
}

// handler is a part of the server. It returns the error to write, or nil if it has written the response.
type handler func(w http.ResponseWriter, r *http.Request) error

// handler returns the handler of all requests of a listener.
func (s *Server) handler(l *listener) http.Handler {
	mux := s.routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := connectionOf(r.Context()); c != nil {
			l.serve(c)
			defer l.wait(c)
		}
		// The previous response of the connection set a deadline.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		err := s.allow(r)
		if err == nil && r.ContentLength != 0 && r.Method != http.MethodPost {
			// The end of a connection is noticed only after the end of a body.
			err = refuse(http.StatusRequestEntityTooLarge, "a %s request must not have a body", r.Method)
		}
		if err != nil {
			w.Header().Set("Connection", "close")
			writeError(w, err)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// routes returns the paths of the kubelet (InstallAuthNotRequiredHandlers, InstallAuthRequiredHandlers).
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	found := &finder{agent: s.agent, runtime: s.runtime, node: s.NodeName}
	lists := &lister{agent: s.agent, runtime: s.runtime, node: s.NodeName, slots: make(chan struct{}, s.limits.lists)}
	logs, streams := &logReader{finder: found, now: s.Now}, &streamer{finder: found, runtime: s.runtime}
	answer := func(pattern string, h handler) { mux.HandleFunc(pattern, writeErrors(h)) }
	stream := func(pattern string, h handler) { mux.HandleFunc(pattern, writeErrors(s.asStream(h))) }
	checks := checksOf(s.agent)
	answer("GET /healthz", serveAllHealth(checks))
	for _, c := range checks {
		answer("GET /healthz/"+c.name, serveHealth(c))
	}
	for _, end := range []string{"", "/{$}"} {
		answer("GET /pods"+end, lists.servePods)
		answer("GET /runningpods"+end, lists.serveRunningPods)
	}
	answer("GET /configz", serveConfig(s.Configuration))
	s.measureRoutes(mux, answer)
	const pod = "/{namespace}/{pod}"
	stream("GET /containerLogs"+pod+"/{container}", logs.serveLogs)
	for _, uid := range []string{"", "/{uid}"} {
		stream("POST /run"+pod+uid+"/{container}", streams.serveRun)
		for _, method := range []string{"GET ", "POST "} {
			stream(method+"/exec"+pod+uid+"/{container}", streams.serveExec)
			stream(method+"/attach"+pod+uid+"/{container}", streams.serveAttach)
			stream(method+"/portForward"+pod+uid, streams.servePortForward)
		}
	}
	return mux
}

// writeErrors writes the error of a handler as the response.
func writeErrors(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			writeError(w, err)
		}
	}
}

// asStream limits the number of streams.
func (s *Server) asStream(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		select {
		case s.streams <- struct{}{}:
		default:
			return errTooMany()
		}
		defer func() { <-s.streams }()
		return h(w, r)
	}
}
