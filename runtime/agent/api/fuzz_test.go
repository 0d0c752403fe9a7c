package api

import (
	"bufio"
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// FuzzRequest sends arbitrary requests to the socket of the agent and to its public port. None is a panic. The public
// port has only the paths that everyone may read.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /readyz HTTP/1.0\r\n\r\n", "GET /pods HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", "GET //status HTTP/1.1\r\nHost: 192.0.2.1:1\r\n\r\n",
		"GET /status HTTP/1.1\r\nHost: evil.test\r\n\r\n", "CONNECT * HTTP/1.1\r\nHost: [::1]:2\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	names, b := HostNames("node"), backend{}
	f.Fuzz(func(t *testing.T, text []byte) {
		for i, h := range []http.Handler{handler(b), ForHosts(names, public(b))} {
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
			if err != nil {
				return
			}
			r, w := r.WithContext(t.Context()), httptest.NewRecorder()
			withoutBody(h).ServeHTTP(w, r)
			if isPublic := i == 1; isPublic && w.Code == http.StatusOK && !slices.Contains(everyone, r.URL.Path) {
				t.Errorf("%s %s is public", r.Method, r.URL.Path)
			}
		}
	})
}

// everyone are the paths that everyone may read.
var everyone = []string{"/healthz", "/readyz", "/metrics"}
