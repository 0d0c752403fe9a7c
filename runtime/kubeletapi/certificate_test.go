package kubeletapi

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// TestSelfSigned checks that the certificate is stored with the kubelet's file names, used again, and replaced when it
// has expired, its names have changed or its files are damaged.
func TestSelfSigned(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	get := func(ip byte, names ...string) *tls.Certificate {
		t.Helper()
		find, err := SelfSigned(dir, names, []net.IP{net.IPv4(192, 0, 2, ip)}, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		pair, err := find(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(names, net.IPv4(192, 0, 2, ip).String()) {
			if err := pair.Leaf.VerifyHostname(name); err != nil {
				t.Error(err)
			}
		}
		return pair
	}
	same := func(a, b *tls.Certificate) bool { return bytes.Equal(a.Certificate[0], b.Certificate[0]) }
	first := get(1, "node", "localhost")
	for name, mode := range map[string]os.FileMode{"kubelet.crt": 0o600, "kubelet.key": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, "pki", name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	if !same(first, get(1, "node")) {
		t.Error("a valid certificate is replaced")
	}
	moved := get(2, "node")
	if same(first, moved) {
		t.Error("a certificate for another address stays")
	}
	if err := os.WriteFile(filepath.Join(dir, "pki", "kubelet.crt"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	repaired := get(2, "node")
	if same(moved, repaired) {
		t.Error("a damaged certificate stays")
	}
	now = now.Add(400 * 24 * time.Hour)
	if _, err := SelfSigned(dir, []string{"node"}, nil, func() time.Time { return now }); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pki", "kubelet.crt"))
	if err != nil || bytes.Contains(text, []byte("PRIVATE")) {
		t.Error(err)
	}
	if key, err := os.ReadFile(filepath.Join(dir, "pki", "kubelet.key")); err != nil {
		t.Error(err)
	} else if pair, err := tls.X509KeyPair(text, key); err != nil || same(repaired, &pair) {
		t.Errorf("an expired certificate stays (%v)", err)
	}
	if err := os.Chmod(filepath.Join(dir, "pki", "kubelet.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := SelfSigned(dir, []string{"node"}, nil, time.Now); err == nil || !strings.Contains(err.Error(), "kubelet.key") {
		t.Errorf("a key that others can read: %v", err)
	}
}

// TestFromFiles checks that changed files are read again, and that the last valid pair stays.
func TestFromFiles(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	at := time.Now().Add(-time.Hour)
	write := func(cert, key []byte) {
		t.Helper()
		at = at.Add(time.Second)
		for name, text := range map[string][]byte{certFile: cert, keyFile: key} {
			if err := errors.Join(os.WriteFile(name, text, 0o600), os.Chtimes(name, at, at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	if _, err := FromFiles(certFile, keyFile, logger); err == nil || !strings.Contains(err.Error(), "tls.crt") {
		t.Errorf("missing files: %v", err)
	}
	one, oneKey, err := certutil.GenerateSelfSignedCertKey("one", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, twoKey, err := certutil.GenerateSelfSignedCertKey("two", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(one, twoKey)
	if _, err = FromFiles(certFile, keyFile, logger); err == nil {
		t.Error("the key of another certificate is accepted")
	}
	write(one, oneKey)
	find, err := FromFiles(certFile, keyFile, logger)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when, name string, lines int) {
		t.Helper()
		for range 2 {
			if pair, findErr := find(nil); findErr != nil || pair.Leaf.VerifyHostname(name) != nil {
				t.Errorf("%s: %v %v", when, pair, findErr)
			}
		}
		if got := strings.Count(log.String(), "\n"); got != lines || strings.Contains(log.String(), "PRIVATE") {
			t.Errorf("%s: %q", when, log.String())
		}
	}
	expect("at first", "one", 0)
	write(two, []byte("half a key"))
	expect("while the files are being replaced", "one", 1)
	write(two, twoKey)
	expect("afterwards", "two", 1)
	if err = os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	expect("without the key", "two", 2)
}
