package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// sealed is a digest in two parts: that of everything but the values of Secrets,
// which anybody may compute, and that of those values, which takes the key.
type sealed struct {
	// open is the version and the digest of the open part, for example v2:0760….
	open string
	// key is the id of the key, secrets the digest made with it; both are empty where
	// no secret is concerned.
	key, secrets string
}

// String writes a digest as OPEN, or as OPEN:KEY:SECRETS.
func (s sealed) String() string {
	if s.key == "" {
		return s.open
	}
	return s.open + ":" + s.key + ":" + s.secrets
}

// parseSealed reads a digest. A digest without the two last parts is open as a whole.
func parseSealed(text string) sealed {
	parts := strings.Split(text, ":")
	if len(parts) != 4 {
		return sealed{open: text}
	}
	return sealed{open: parts[0] + ":" + parts[1], key: parts[2], secrets: parts[3]}
}

// Seal makes the digest of something of a pod that holds values of Secrets: open is the
// version and digest of everything else, secrets are the values.
func (k *Key) Seal(open, pod string, secrets []byte) string {
	return sealed{open: open, key: k.ID(), secrets: k.digest(purpose("content", pod, string(secrets)))}.String()
}

// Named is the digest that stands for a secret value, with its name.
type Named struct{ Name, Digest string }

// SealAll makes the digest of something in which digests stand for secret values.
// Those are keyed, so no key is needed for their sum. Digests of several keys can be
// compared with none.
func SealAll(open string, digests []Named) string {
	if len(digests) == 0 {
		return open
	}
	key, h := keyOf(digests[0].Digest), sha256.New()
	for _, d := range digests {
		if keyOf(d.Digest) != key {
			key = noKey
		}
		fmt.Fprintf(h, "%q %s\n", d.Name, d.Digest) //nolint:errcheck // a hash takes every write
	}
	s := sealed{open: open, key: key}
	if key != noKey {
		s.secrets = hex.EncodeToString(h.Sum(nil)[:keyedDigestBytes])
	}
	return s.String()
}
