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
)

// server answers on HTTP and TCP. Its health can be switched while it runs.
type server struct {
	greeting string
	mu       sync.Mutex
	// broken lists the checks that fail: healthz, livez, readyz.
	broken map[string]bool
}

// serve runs until a signal: serve [--http ADDR] [--tcp ADDR] [--drain D] [--code N] [--greeting FILE] [--broken LIST].
func serve(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	httpAddr := f.String("http", ":8080", "address of the HTTP server")
	tcpAddr := f.String("tcp", "", "address of a bare TCP listener")
	drain := f.Duration("drain", 0, "how long to go on after a signal")
	code := f.Int("code", 0, "exit code after a signal")
	greeting := f.String("greeting", "", "file whose content the server says at /")
	broken := f.String("broken", "", "checks that fail from the start, by commas")
	if err := f.Parse(args); err != nil {
		return err
	}
	s := &server{greeting: *greeting, broken: map[string]bool{}}
	for name := range strings.SplitSeq(*broken, ",") {
		s.broken[name] = true
	}
	failed := make(chan error, 2)
	s.listenHTTP(*httpAddr, failed)
	s.listenTCP(ctx, *tcpAddr, failed)
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
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { writeText(w, strings.Repeat("x", 1<<20)) })
	fmt.Println("serving http on", addr)
	go func() { failed <- http.ListenAndServe(addr, mux) }()
}

// writeText writes an answer. The client may have gone.
func writeText(w io.Writer, text string) {
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
	writeText(w, text)
}

// check answers 200, or 503 for a check that was switched off.
func (s *server) check(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("check")
	s.mu.Lock()
	broken := s.broken[name]
	s.mu.Unlock()
	if broken {
		http.Error(w, name+" is switched off", http.StatusServiceUnavailable)
		return
	}
	writeText(w, "ok\n")
}

// turn switches a check on or off.
func (s *server) turn(w http.ResponseWriter, r *http.Request) {
	name, state := r.PathValue("check"), r.PathValue("state")
	s.mu.Lock()
	s.broken[name] = state == "off"
	s.mu.Unlock()
	fmt.Println("switched", name, state)
	writeText(w, "ok\n")
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
