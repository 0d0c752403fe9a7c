package kubeletapi

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"maps"
	"slices"

	"k8s.io/component-base/cli/flag"
)

// Protocol is which versions and cipher suites of TLS a server accepts. The zero value is that of a kubelet: at least
// version 1.2, and the suites of Go.
type Protocol struct {
	minVersion uint16
	suites     []uint16
}

// NewProtocol parses the names of a version and of cipher suites (kubelet: --tls-min-version, --tls-cipher-suites,
// InitializeTLS). Errors and warnings are the kubelet's.
func NewProtocol(minVersion string, suites []string, log *slog.Logger) (p Protocol, err error) {
	if p.suites, err = flag.TLSCipherSuites(suites); err != nil {
		return p, err
	}
	insecure := flag.InsecureTLSCiphers()
	for _, name := range slices.Sorted(maps.Keys(insecure)) {
		if slices.Contains(p.suites, insecure[name]) {
			log.Warn("Use of insecure cipher detected.", "cipher", name)
		}
	}
	if p.minVersion, err = flag.TLSVersion(minVersion); err != nil {
		return p, err
	}
	if p.minVersion == tls.VersionTLS13 && len(p.suites) > 0 {
		log.Warn("TLS 1.3 cipher suites are not configurable, ignoring --tls-cipher-suites")
	}
	return p, nil
}

// config returns the configuration of a server with these certificates.
func (p Protocol) config(certificates Certificates) *tls.Config {
	return &tls.Config{
		MinVersion: cmp.Or(p.minVersion, tls.VersionTLS12), CipherSuites: p.suites, GetCertificate: certificates,
	}
}
