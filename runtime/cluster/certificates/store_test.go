package certificates

import (
	"context"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/certificate"

	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/sleep"
)

// stored returns the settings of a rotation whose directory has the certificate that a kubelet stored.
func stored(t *testing.T) (s Settings, a *authority) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	files, err := certificate.NewFileStore(clientPrefix, dir, dir, "", "")
	if err != nil {
		t.Fatal(err)
	}
	a = newAuthority(t)
	if _, err = files.Update(clientPair(t, a)); err != nil {
		t.Fatal(err)
	}
	return Settings{Dir: dir, Node: "n", Changed: func() {}, Log: slog.New(slog.DiscardHandler)}, a
}

// clientPair returns a client certificate and its key.
func clientPair(t *testing.T, a *authority) (cert, key []byte) {
	t.Helper()
	private := newKey(t)
	c := &x509.Certificate{Subject: subjectOf("n"), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	return a.sign(c, private.Public()), keyPEM(t, private)
}

// TestStored checks the use of the files of a kubelet, and that files which another user controls are errors.
func TestStored(t *testing.T) {
	current := func(s *Settings) string { return filepath.Join(s.Dir, CurrentClient) }
	for name, c := range map[string]struct {
		change  func(s *Settings) error
		err     string
		failure string
	}{
		"as a kubelet stores it": {func(*Settings) error { return nil }, "", ""},
		"readable by others":     {func(s *Settings) error { return os.Chmod(current(s), 0o644) }, "can be read by others", ""},
		"writable directory":     {func(s *Settings) error { return os.Chmod(s.Dir, 0o777) }, "can be written by others", ""},
		"damaged":                {func(s *Settings) error { return os.WriteFile(current(s), []byte("x"), 0o600) }, "", "reading the stored certificate: "},
	} {
		s, _ := stored(t)
		if err := c.change(&s); err != nil {
			t.Fatal(err)
		}
		r, err := New(s)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		if err != nil {
			continue
		}
		state := r.State()
		if (r.Current() != nil) != (c.failure == "") || !strings.HasPrefix(state.Failure, c.failure) {
			t.Errorf("%s: %+v, want %q", name, state, c.failure)
		}
	}
}

// TestUpdate checks that a kubelet finds what podctl stores, and that a failure changes nothing and leaves no files.
func TestUpdate(t *testing.T) { synctest.Test(t, testUpdate) }

func testUpdate(t *testing.T) {
	s, a := stored(t)
	r, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	files, err := r.openStore()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := files.Update(clientPair(t, a))
	if err != nil || r.Current() != pair {
		t.Fatal(err)
	}
	kubelet, err := certificate.NewFileStore(clientPrefix, s.Dir, s.Dir, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if found, readErr := kubelet.Current(); readErr != nil || !found.Leaf.Equal(pair.Leaf) {
		t.Errorf("a kubelet finds another certificate: %v", readErr)
	}
	for range 3 {
		time.Sleep(time.Minute) // The name of the next file differs.
		if pair, err = files.Update(clientPair(t, a)); err != nil {
			t.Fatal(err)
		}
	}
	before := names(t, s.Dir)
	if strings.Count(before, clientPrefix+"-2") != 2 {
		t.Errorf("the current certificate, the one before it and others are left: %s", before)
	}
	// A link whose target has the name of the next link cannot be replaced.
	if err = os.Mkdir(filepath.Join(s.Dir, clientPrefix+"-updated.pem"), 0o700); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	if _, err = files.Update(clientPair(t, a)); err == nil || r.Current() != pair || r.State().Failure == "" {
		t.Errorf("%v, %+v", err, r.State())
	}
	if err = os.Remove(filepath.Join(s.Dir, clientPrefix+"-updated.pem")); err != nil {
		t.Fatal(err)
	}
	if after := names(t, s.Dir); after != before {
		t.Errorf("%s, before %s", after, before)
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// TestNoSpace checks that no certificate is requested that cannot be stored, and that the valid one stays.
func TestNoSpace(t *testing.T) {
	inLab(t, nil, func(t *testing.T, l *lab) {
		l.signer.set(func() { l.signer.decide = l.signer.approve })
		apitest.Sleep(time.Minute)
		valid := l.Current()
		if err := os.Rename(l.Dir, l.Dir+".gone"); err != nil {
			t.Fatal(err)
		}
		apitest.Sleep(57 * time.Minute)
		if state := l.State(); len(l.signer.requests()) != 1 || l.Current() != valid || !strings.Contains(state.Failure, "no such file") {
			t.Errorf("%d requests, %+v", len(l.signer.requests()), state)
		}
		if n := strings.Count(l.log.String(), "the node has no new certificate"); n != 1 {
			t.Errorf("%d lines about one failure:\n%s", n, l.log)
		}
		if err := os.Rename(l.Dir+".gone", l.Dir); err != nil {
			t.Fatal(err)
		}
		apitest.Sleep(time.Minute)
		if len(l.signer.requests()) != 2 || l.Current() == valid {
			t.Errorf("%d requests, %+v", len(l.signer.requests()), l.State())
		}
	})
}

// TestClock checks that the certificate is checked again when the clock was set, also past its expiry, and only then.
func TestClock(t *testing.T) {
	for _, by := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		inLab(t, nil, func(t *testing.T, l *lab) { l.checkClock(t, by) })
	}
}

func (l *lab) checkClock(t *testing.T, by time.Duration) {
	t.Helper()
	l.signer.set(func() { l.signer.decide = l.signer.approve })
	apitest.Sleep(time.Minute)
	ended, set := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		l.runOnce(t.Context(), func() time.Time {
			select {
			case <-set:
				return time.Now().Add(by)
			default:
				return time.Now()
			}
		})
	}()
	if err := sleep.For(ctxOf(t, ended), 30*time.Minute); err != nil {
		t.Error("it ends although the clock was not set")
	}
	close(set)
	apitest.Sleep(2 * lookEvery)
	select {
	case <-ended:
	default:
		t.Errorf("it goes on although the clock was set by %s", by)
	}
}

// ctxOf returns a context that ends when a channel is closed.
func ctxOf(t *testing.T, ended <-chan struct{}) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		select {
		case <-ended:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx
}
