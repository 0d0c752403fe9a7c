package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// sealed is a digest with two parts: an open digest of everything except values of Secrets, and a keyed digest of these
// values.
type sealed struct {
	// open is the version and the digest of the open part, for example v2:0760….
	open string
	// key is the id of the key, and secrets is the digest made with it. Both are empty if there are no secrets.
	key, secrets string
}

// String returns OPEN, or OPEN:KEY:SECRETS.
func (s sealed) String() string {
	if s.key == "" {
		return s.open
	}
	return s.open + ":" + s.key + ":" + s.secrets
}

// parseSealed parses a digest. Without the last two parts, it is all open.
func parseSealed(text string) sealed {
	parts := strings.Split(text, ":")
	if len(parts) != 4 {
		return sealed{open: text}
	}
	return sealed{open: parts[0] + ":" + parts[1], key: parts[2], secrets: parts[3]}
}

// Seal returns the digest of data of a pod with values of Secrets. open is the version and digest of everything else;
// secrets holds the values.
func (k *Key) Seal(open, pod string, secrets []byte) string {
	return sealed{open: open, key: k.ID(), secrets: k.digest(purpose("content", pod, string(secrets)))}.String()
}

// Named is the digest of a secret value and its name.
type Named struct{ Name, Digest string }

// SealAll returns the digest of data in which digests replace secret values. Those are keyed, so their sum needs no
// key. If their keys differ, the result cannot be compared.
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
