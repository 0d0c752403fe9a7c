package kubeletapi

import (
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// TestProtocol checks the names, the errors of a kubelet, and which connections are accepted.
func TestProtocol(t *testing.T) {
	const suite = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
	certificates, err := SelfSigned(t.TempDir(), []string{"n"}, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		version string
		suites  []string
		client  *tls.Config
		err     string
		warning string
		refused bool
	}{
		"the default": {client: &tls.Config{MaxVersion: tls.VersionTLS12}},
		"too old":     {client: &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, refused: true},
		"only 1.3":    {version: "VersionTLS13", client: &tls.Config{MaxVersion: tls.VersionTLS12}, refused: true},
		"1.3":         {version: "VersionTLS13", suites: []string{suite}, warning: "TLS 1.3 cipher suites are not configurable"},
		"a suite":     {suites: []string{suite}, client: &tls.Config{MaxVersion: tls.VersionTLS12}},
		"another suite": {suites: []string{suite}, refused: true, client: &tls.Config{
			MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
		}},
		"insecure":        {suites: []string{"TLS_RSA_WITH_RC4_128_SHA", suite}, warning: "cipher=TLS_RSA_WITH_RC4_128_SHA"},
		"unknown version": {version: "1.2", err: `unknown tls version "1.2"`},
		"unknown suite":   {suites: []string{"x"}, err: "Cipher suite x not supported or doesn't exist"},
	} {
		var log strings.Builder
		p, err := NewProtocol(c.version, c.suites, slog.New(slog.NewTextHandler(&log, nil)))
		if c.err != "" || err != nil {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if log.Len() > 0 != (c.warning != "") || !strings.Contains(log.String(), c.warning) {
			t.Errorf("%s: %s", name, log.String())
		}
		ours, theirs := net.Pipe()
		server := tls.Server(ours, p.config(certificates))
		client := &tls.Config{}
		if c.client != nil {
			client = c.client
		}
		client.InsecureSkipVerify = true
		go func() {
			_ = server.HandshakeContext(t.Context()) // The client has the same result.
			_ = ours.Close()
		}()
		if err = tls.Client(theirs, client).HandshakeContext(t.Context()); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
		_ = theirs.Close()
	}
}
