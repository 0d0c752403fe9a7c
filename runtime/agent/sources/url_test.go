package sources

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/model"
)

// site is a server whose answer a test changes.
type site struct {
	*httptest.Server
	answer   atomic.Pointer[http.HandlerFunc]
	requests atomic.Int64
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		(*s.answer.Load())(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) answers(h http.HandlerFunc) { s.answer.Store(&h) }

func (s *site) serves(text string) {
	s.answers(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
}

func (s *site) fails(code int) {
	s.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

// source returns the source of the site, with a short interval.
func (s *site) source(t *testing.T) *URL {
	t.Helper()
	name := strings.Replace(s.URL, "http://", "http://me:hunter2@", 1) + "/pods.yaml"
	reader := input.Reader{HTTP: s.Client(), Timeout: patient}
	u, err := NewURL(name, Settings{
		Interval: 5 * time.Millisecond, reportDelay: soon, Loader: load.Loader{Reader: reader},
	})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestURL checks that an incomplete or invalid answer changes nothing and is a problem.
func TestURL(t *testing.T) {
	s := newSite(t)
	s.fails(http.StatusNotFound)
	source := s.source(t)
	l, _ := starts(t, source)
	if u := l.blames(t, source.Name(), "404"); u.Complete {
		t.Error("the source counts as read")
	}
	s.serves(manifest("one", "", "1"))
	u := l.wants(t, "one:1")
	if d := u.Pods[0]; d.Source != source.Name() || d.Owner != source.Name() || strings.Contains(fmt.Sprintf("%+v", l.all()), "hunter2") {
		t.Errorf("%+v", l.all())
	}
	for words, fail := range map[string]func(){
		"500": func() { s.fails(http.StatusInternalServerError) },
		"206": func() {
			s.answers(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write([]byte(manifest("two", "", "2")))
			})
		},
		"204":                              func() { s.fails(http.StatusNoContent) },
		"304":                              func() { s.fails(http.StatusNotModified) },
		"contains no Kubernetes object":    func() { s.serves("\n# nothing\n---\n") },
		"the response contains no":         func() { s.serves("") },
		"unexpected EOF":                   func() { s.answers(cut) },
		"is not a Kubernetes object":       func() { s.serves("<html></html>") },
		"which is neither https nor on th": func() { s.answers(http.RedirectHandler("http://192.0.2.1/", http.StatusFound).ServeHTTP) },
	} {
		fail()
		u := l.awaits(t, words, func(u Update) bool { return len(u.Problems) == 1 && strings.Contains(u.Problems[0].Text, words) })
		if shown(u) != "one:1" || !u.Complete || len(u.Unread) > 0 {
			t.Errorf("%s: %+v", words, u)
		}
		s.serves(manifest("one", "", "1"))
		l.awaits(t, "no problem", func(u Update) bool { return len(u.Problems) == 0 })
	}
	other := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(manifest("one", "", "3")))
		}))
	defer other.Close()
	s.answers(http.RedirectHandler(other.URL, http.StatusFound).ServeHTTP)
	l.wants(t, "one:3")
	// An empty List means that nothing is wanted.
	s.serves("apiVersion: v1\nkind: List\nitems: []\n")
	l.wants(t, "")
	source.Ended(model.PodRef{})
	if strings.Contains(fmt.Sprintf("%+v", l.all()), "hunter2") {
		t.Error("the update contains the password")
	}
}

// cut is an answer that ends early, in the middle of a text that would be valid.
func cut(w http.ResponseWriter, _ *http.Request) {
	text := manifest("two", "", "2")
	w.Header().Set("Content-Length", fmt.Sprint(2*len(text)))
	_, _ = w.Write([]byte(text))
}

// TestETag checks that an unchanged text is not sent again, and counts as read.
func TestETag(t *testing.T) {
	s := newSite(t)
	var sent atomic.Int64
	version := func(etag, text string) {
		s.answers(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", etag)
			if r.Header.Get("If-None-Match") == etag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			sent.Add(1)
			_, _ = w.Write([]byte(text))
		})
	}
	version(`"1"`, manifest("one", "", "1"))
	l, _ := starts(t, s.source(t))
	l.wants(t, "one:1")
	for end := s.requests.Load() + 10; s.requests.Load() < end; time.Sleep(time.Millisecond) {
	}
	if sent.Load() != 1 || len(l.all()) != 1 {
		t.Errorf("sent %d times, %d updates", sent.Load(), len(l.all()))
	}
	// The ETag of a refused answer is not used.
	version(`"2"`, "")
	l.awaits(t, "an empty answer", func(u Update) bool { return len(u.Problems) == 1 })
	version(`"2"`, manifest("one", "", "2"))
	l.wants(t, "one:2")
}

// TestSlowURL checks that a slow answer is abandoned, and that the end of the agent does not wait for it.
func TestSlowURL(t *testing.T) {
	s := newSite(t)
	s.serves(manifest("one", "", "1"))
	source := s.source(t)
	source.settings.Loader.Timeout = 50 * time.Millisecond
	l, _ := starts(t, source)
	l.wants(t, "one:1")
	s.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if u := l.blames(t, source.Name(), "it took longer than 50ms"); shown(u) != "one:1" {
		t.Errorf("wanted are %s", shown(u))
	}
	source = s.source(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	source.Run(ctx, nil, func(u Update) { t.Errorf("unexpected update %+v", u) })
}

// TestURLsThatAreRefused checks that insecure URLs are refused without their passwords in the error.
func TestURLsThatAreRefused(t *testing.T) {
	for _, name := range []string{"http://me:hunter2@192.0.2.1/", "https://me:hunter2@a b/", "https://me:hunter2@host:port/"} {
		if u, err := NewURL(name, Settings{}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, error %v", name, u, err)
		}
	}
	u, err := NewURL("https://me:hunter2@host/pods", Settings{})
	if err != nil || u.Name() != "https://me:xxxxx@host/pods" || u.settings.Interval != interval ||
		u.settings.Loader.Timeout != urlTimeout {
		t.Errorf("%+v, error %v", u, err)
	}
}
