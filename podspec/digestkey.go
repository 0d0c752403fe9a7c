package podspec

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// DigestKey keys the digests that stand for the values of Secrets, so that nobody
// without it can find a value by trying: a PIN of six digits has only a million.
// It belongs to one machine and never leaves it. The nil key knows nothing: its
// digests are all the same and can be compared with none.
type DigestKey struct {
	id     string
	secret []byte
}

// The lengths, in bytes, of what is shown of a key and of a keyed digest.
const (
	keyIDBytes       = 4
	keyedDigestBytes = 16
)

// noKey stands for the id of a key where there is none.
const noKey = "none"

// NewDigestKey makes a key of random bytes, of which there should be 32.
func NewDigestKey(secret []byte) *DigestKey {
	k := &DigestKey{secret: secret}
	k.id = hex.EncodeToString(k.sum(purpose("id"))[:keyIDBytes])
	return k
}

// ID tells keys apart and says nothing about them.
func (k *DigestKey) ID() string {
	if k == nil {
		return noKey
	}
	return k.id
}

func (k *DigestKey) sum(value []byte) []byte {
	h := hmac.New(sha256.New, k.secret)
	h.Write(value)
	return h.Sum(nil)
}

// digest is the keyed digest of a value as text; empty without a key.
func (k *DigestKey) digest(value []byte) string {
	if k == nil {
		return ""
	}
	return hex.EncodeToString(k.sum(value)[:keyedDigestBytes])
}

// SecretDigestPrefix begins what stands for the value of a Secret: the id of the key
// and the keyed digest follow.
const SecretDigestPrefix = "secret:hmac:"

// secretRef is a value of a Secret, by the names of Secret and key.
type secretRef struct{ name, key string }

// secretDigest stands for a value of a Secret. It takes what has the value: two pods, or two
// keys, with the same value have different digests, or whoever may add a pod could compare
// his guesses with them.
func (k *DigestKey) secretDigest(pod string, ref secretRef, value []byte) string {
	return SecretDigestPrefix + k.ID() + ":" + k.digest(purpose("secret", pod, ref.name, ref.key, string(value)))
}

// purpose joins what a digest is of, so that no two lists of parts come to the same.
func purpose(parts ...string) []byte {
	var text []byte
	for _, part := range parts {
		text = fmt.Appendf(text, "%d:%s,", len(part), part)
	}
	return text
}

// IsSecretDigest reports whether a text holds the digest of a secret value, of
// whatever age.
func IsSecretDigest(text string) bool {
	return strings.Contains(text, SecretDigestPrefix) || strings.Contains(text, legacySecretPrefix)
}

// isSecretDigest reports whether a text is such a digest and nothing else.
func isSecretDigest(text string) bool {
	return strings.HasPrefix(text, SecretDigestPrefix) || strings.HasPrefix(text, legacySecretPrefix)
}

// Sameness is what comparing two digests tells.
type Sameness int

// The outcomes of a comparison.
const (
	// Different digests stand for different things.
	Different Sameness = iota
	// Same digests stand for the same.
	Same
	// Unknown: the digests differ at most in values of Secrets, and were made with
	// different keys, or without one.
	Unknown
)

// CompareSecrets compares what stands for two values of Secrets.
func CompareSecrets(a, b string) Sameness {
	if !strings.HasPrefix(a, SecretDigestPrefix) || !strings.HasPrefix(b, SecretDigestPrefix) {
		return equality(a, b)
	}
	if key := keyOf(a); key != keyOf(b) || key == noKey {
		return Unknown
	}
	return equality(a, b)
}

func equality(a, b string) Sameness {
	if a == b {
		return Same
	}
	return Different
}

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

// parseSealed reads a digest. What is no such digest is open as a whole.
func parseSealed(text string) sealed {
	parts := strings.Split(text, ":")
	if len(parts) != 4 {
		return sealed{open: text}
	}
	return sealed{open: parts[0] + ":" + parts[1], key: parts[2], secrets: parts[3]}
}

// Compare compares two digests of the same kind: spec hashes, digests of what is
// desired, or digests of a volume's content.
func Compare(a, b string) Sameness {
	x, y := parseSealed(a), parseSealed(b)
	switch {
	case x.open != y.open, (x.key == "") != (y.key == ""):
		return Different
	case x.key == "":
		return Same
	case x.key != y.key, x.key == noKey:
		return Unknown
	}
	return equality(x.secrets, y.secrets)
}

// seal makes the digest of something of a pod's that is made of secrets: open is the
// version and digest of all that is not secret, and secrets what is.
func (k *DigestKey) seal(open, pod string, secrets []byte) string {
	return sealed{open: open, key: k.ID(), secrets: k.digest(purpose("content", pod, string(secrets)))}.String()
}

// namedDigest is the digest that stands for a secret value, with the name it bears.
type namedDigest struct{ name, digest string }

// sealDigests makes the digest of something in which digests stand for secret values.
// Those are keyed, so no key is needed for their sum. Digests of several keys can be
// compared with none.
func sealDigests(open string, digests []namedDigest) string {
	if len(digests) == 0 {
		return open
	}
	key, h := keyOf(digests[0].digest), sha256.New()
	for _, d := range digests {
		if keyOf(d.digest) != key {
			key = noKey
		}
		fmt.Fprintf(h, "%q %s\n", d.name, d.digest) //nolint:errcheck // a hash takes every write
	}
	s := sealed{open: open, key: key}
	if key != noKey {
		s.secrets = hex.EncodeToString(h.Sum(nil)[:keyedDigestBytes])
	}
	return s.String()
}

// keyOf is the id of the key that a digest was made with.
func keyOf(digest string) string {
	rest, ok := strings.CutPrefix(digest, SecretDigestPrefix)
	if key, _, _ := strings.Cut(rest, ":"); ok {
		return key
	}
	return noKey
}
