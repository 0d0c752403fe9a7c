package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// server answers on HTTP, TCP and gRPC; its health can be switched while it
// runs.
type server struct {
	greeting string
	mu       sync.Mutex
	// broken are the checks that fail: healthz, livez, readyz.
	broken map[string]bool
	slow   time.Duration
	grpc   *health.Server
}

// serve runs until a signal: serve [--http ADDR] [--tcp ADDR] [--grpc ADDR]
// [--start-delay D] [--drain D] [--code N] [--greeting FILE] [--broken LIST].
func serve(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	httpAddr := f.String("http", ":8080", "address of the HTTP server")
	tcpAddr := f.String("tcp", "", "address of a bare TCP listener")
	grpcAddr := f.String("grpc", "", "address of the gRPC health service")
	delay := f.Duration("start-delay", 0, "how long to wait before listening")
	drain := f.Duration("drain", 0, "how long to go on after a signal")
	code := f.Int("code", 0, "exit code after a signal")
	greeting := f.String("greeting", "", "file whose content the server says at /")
	broken := f.String("broken", "", "checks that fail from the start, by commas")
	if err := f.Parse(args); err != nil {
		return err
	}
	pause(ctx, *delay)
	s := &server{greeting: *greeting, broken: map[string]bool{}, grpc: health.NewServer()}
	for name := range strings.SplitSeq(*broken, ",") {
		s.broken[name] = true
	}
	failed := make(chan error, 3)
	s.listenHTTP(*httpAddr, failed)
	s.listenTCP(ctx, *tcpAddr, failed)
	s.listenGRPC(ctx, *grpcAddr, failed)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	fmt.Println("got a signal, draining for", *drain)
	time.Sleep(*drain)
	return exitError(*code)
}

func (s *server) listenHTTP(addr string, failed chan<- error) {
	if addr == "" {
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", s.greet)
	mux.HandleFunc("/{check}", s.check)
	mux.HandleFunc("POST /switch/{check}/{state}", s.turn)
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { say(w, strings.Repeat("x", 1<<20)) })
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) { say(w, fmt.Sprint(r.Header)) })
	fmt.Println("serving http on", addr)
	go func() { failed <- http.ListenAndServe(addr, mux) }()
}

// say writes an answer; who asked may have gone.
func say(w io.Writer, text string) {
	if _, err := io.WriteString(w, text); err != nil {
		fmt.Println("answering:", err)
	}
}

func (s *server) greet(w http.ResponseWriter, _ *http.Request) {
	text := "hello\n"
	if s.greeting != "" {
		content, err := os.ReadFile(s.greeting)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		text = string(content)
	}
	say(w, text)
}

// check answers 200, or 503 for a check that was switched off.
func (s *server) check(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("check")
	s.mu.Lock()
	broken, slow := s.broken[name], s.slow
	s.mu.Unlock()
	if name == "slow" {
		pause(r.Context(), time.Minute)
	}
	pause(r.Context(), slow)
	if broken {
		http.Error(w, name+" is switched off", http.StatusServiceUnavailable)
		return
	}
	say(w, "ok\n")
}

// turn switches a check on or off.
func (s *server) turn(w http.ResponseWriter, r *http.Request) {
	name, off := r.PathValue("check"), r.PathValue("state") == "off"
	s.mu.Lock()
	s.broken[name] = off
	s.mu.Unlock()
	state := healthpb.HealthCheckResponse_SERVING
	if off {
		state = healthpb.HealthCheckResponse_NOT_SERVING
	}
	s.grpc.SetServingStatus("", state)
	fmt.Println("switched", name, r.PathValue("state"))
	say(w, "ok\n")
}

// listenTCP accepts connections and closes them.
func (s *server) listenTCP(ctx context.Context, addr string, failed chan<- error) {
	if addr == "" {
		return
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		failed <- err
		return
	}
	fmt.Println("listening on", addr)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				fmt.Println("closing:", err)
			}
		}
	}()
}

func (s *server) listenGRPC(ctx context.Context, addr string, failed chan<- error) {
	if addr == "" {
		return
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		failed <- err
		return
	}
	g := grpc.NewServer()
	healthpb.RegisterHealthServer(g, s.grpc)
	fmt.Println("serving grpc on", addr)
	go func() { failed <- g.Serve(l) }()
}
