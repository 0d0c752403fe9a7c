package kubeletapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/kubeletapi/access"
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

// Runtime has the calls of the CRI. *cri.Client implements it.
type Runtime = runtimeapi.RuntimeServiceClient

// Settings configure a server.
type Settings struct {
	// NodeName is the name of the Node. It is part of the API names of pods that are not from the API server.
	NodeName string
	// Access decides which requests are accepted. If it is nil, every request is accepted.
	Access *access.Access
	// Certificates returns the serving certificate, and Protocol is which versions of TLS are accepted.
	Certificates Certificates
	Protocol     Protocol
	// Configuration returns the values of /configz. Their kind and version need not be set.
	Configuration func(context.Context) *kubeletconfig.KubeletConfiguration
	// Measures and Metrics serve metrics and statistics.
	Measures Measures
	Metrics  Metrics
	// SystemLogs serves the files in /var/log as /logs/.
	SystemLogs bool
	Now        func() time.Time
	Log        *slog.Logger
}

// Server is the server of a node.
type Server struct {
	Settings
	agent   Agent
	runtime Runtime
	limits  limits
	// requests and streams limit those in work.
	requests, streams *slots
}

// New returns a server of an agent's pods.
func New(agent Agent, runtime Runtime, s Settings) *Server {
	return newServer(agent, runtime, s, defaultLimits())
}

func newServer(agent Agent, runtime Runtime, s Settings, l limits) *Server {
	return &Server{
		Settings: s, agent: agent, runtime: runtime, limits: l,
		requests: newSlots(l.open), streams: newSlots(l.streams),
	}
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
	mux, lists := s.publicRoutes()
	s.addProtectedRoutes(mux, lists)
	limited := newListener(l, s.limits)
	server := s.newHTTP(ctx, s.counted(s.handler(limited, mux, s.check), "readwrite"))
	server.TLSConfig = s.Protocol.config(s.Certificates)
	if s.Access != nil && s.Access.ClientCAFile != "" {
		// The certificate is verified with each request, so that a changed file applies at once.
		server.TLSConfig.ClientAuth = tls.RequestClientCert
	}
	return run(ctx, server, limited, func() error { return server.ServeTLS(limited, "", "") })
}

// ServeReadOnly serves pods, the health and metrics without TLS and without access control, as Serve does
// (--read-only-port; kubelet: ListenAndServeKubeletReadOnlyServer).
func (s *Server) ServeReadOnly(ctx context.Context, l net.Listener) error {
	mux, _ := s.publicRoutes()
	limited := newListener(l, s.limits)
	everyone := func(*http.Request) (string, error) { return "", nil }
	routes := s.counted(s.handler(limited, mux, everyone), "readonly")
	server := s.newHTTP(ctx, api.ForHosts(api.HostNames(s.NodeName), routes))
	return run(ctx, server, limited, func() error { return server.Serve(limited) })
}

// newHTTP returns a server with the limits of a connection.
func (s *Server) newHTTP(ctx context.Context, h http.Handler) *http.Server {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerMax,
		Protocols:         &http.Protocols{},
		// Clients can cause any number of these errors.
		ErrorLog:    slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: withConnection,
		// The library's handler of OPTIONS * would answer before the access is checked.
		DisableGeneralOptionsHandler: true,
	}
	server.Protocols.SetHTTP1(true)
	return server
}

// run serves a listener until the context ends.
func run(ctx context.Context, server *http.Server, l *listener, serve func() error) error {
	defer context.AfterFunc(ctx, func() {
		_ = server.Close() // It closes the listener, which no request needs.
		l.end()
	})()
	if err := serve(); !errors.Is(err, http.ErrServerClosed) || ctx.Err() == nil {
		return err
	}
	return nil
}

// handler is a part of the server. It returns the error to write, or nil if it has written the response.
type handler func(w http.ResponseWriter, r *http.Request) error

// handler returns the handler of all requests of a listener. It answers no request that check has not accepted, also
// with a redirect or an error of a route. Until then the connection counts as one without a request in work.
func (s *Server) handler(l *listener, routes http.Handler, check func(*http.Request) (string, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The previous response of the connection set a deadline.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		user, release, err := s.accept(r, check)
		if err != nil {
			w.Header().Set("Connection", "close")
			writeError(w, err)
			return
		}
		defer release()
		if c := connectionOf(r.Context()); c != nil {
			l.serve(c)
			defer l.wait(c)
		}
		routes.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// accept returns the user of a request, which counts as in work until release is called.
func (s *Server) accept(
	r *http.Request, check func(*http.Request) (string, error),
) (user string, release func(), err error) {
	if user, err = check(r); err != nil {
		return "", nil, err
	}
	if r.ContentLength != 0 && r.Method != http.MethodPost {
		// The end of a connection is noticed only after the end of a body.
		return "", nil, refuse(http.StatusRequestEntityTooLarge, "a %s request must not have a body", r.Method)
	}
	release, err = s.requests.take(user)
	return user, release, err
}

// publicRoutes returns the paths of both servers (kubelet: InstallAuthNotRequiredHandlers).
func (s *Server) publicRoutes() (*http.ServeMux, *lister) {
	mux := http.NewServeMux()
	lists := &lister{agent: s.agent, runtime: s.runtime, node: s.NodeName, slots: make(chan struct{}, s.limits.lists)}
	checks := checksOf(s.agent)
	mux.HandleFunc("GET /healthz", writeErrors(serveAllHealth(checks)))
	for _, c := range checks {
		mux.HandleFunc("GET /healthz/"+c.name, writeErrors(serveHealth(c)))
	}
	mux.HandleFunc("GET /pods", writeErrors(lists.servePods))
	mux.HandleFunc("GET /pods/{$}", writeErrors(lists.servePods))
	s.measureRoutes(mux)
	return mux, lists
}

// addProtectedRoutes adds the paths of the server with access control (kubelet: InstallAuthRequiredHandlers).
func (s *Server) addProtectedRoutes(mux *http.ServeMux, lists *lister) {
	found := &finder{agent: s.agent, runtime: s.runtime, node: s.NodeName}
	logs, streams := &logReader{finder: found, now: s.Now}, &streamer{finder: found, runtime: s.runtime}
	stream := func(pattern string, h handler) { mux.HandleFunc(pattern, writeErrors(s.asStream(h))) }
	mux.HandleFunc("GET /runningpods", writeErrors(lists.serveRunningPods))
	mux.HandleFunc("GET /runningpods/{$}", writeErrors(lists.serveRunningPods))
	mux.HandleFunc("GET /configz", writeErrors(serveConfig(s.Configuration)))
	s.systemLogRoutes(mux, stream)
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
		release, err := s.streams.take(userOf(r.Context()))
		if err != nil {
			return err
		}
		defer release()
		return h(w, r)
	}
}
