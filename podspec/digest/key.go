package digest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Key is the key of digests that replace values of Secrets. Without it no value can be found by trying; for example, a
// PIN of six digits has only a million values. It belongs to one machine and never leaves it. With a nil Key, all
// digests are equal and cannot be compared.
type Key struct {
	id     string
	secret []byte
}

// Lengths in bytes of the key's id and of a keyed digest.
const (
	keyIDBytes       = 4
	keyedDigestBytes = 16
)

// noKey is the id of the nil key.
const noKey = "none"

// NewKey returns a key for random bytes, which should be 32.
func NewKey(secret []byte) *Key {
	k := &Key{secret: secret}
	k.id = hex.EncodeToString(k.sum(purpose("id"))[:keyIDBytes])
	return k
}

// ID returns an id that differs between keys and reveals nothing else.
func (k *Key) ID() string {
	if k == nil {
		return noKey
	}
	return k.id
}

func (k *Key) sum(value []byte) []byte {
	h := hmac.New(sha256.New, k.secret)
	h.Write(value)
	return h.Sum(nil)
}

// digest returns the keyed digest of a value as text, or an empty string without a key.
func (k *Key) digest(value []byte) string {
	if k == nil {
		return ""
	}
	return hex.EncodeToString(k.sum(value)[:keyedDigestBytes])
}

// SecretPrefix is the prefix of the digest of a Secret's value. The id of the key and the keyed digest follow.
const SecretPrefix = "secret:hmac:"

// SecretRef names a value of a Secret by the Secret's name and the key.
type SecretRef struct{ Name, Key string }

// Secret returns the digest that replaces a value of a Secret. It covers pod, Secret and key, so equal values have
// different digests in two places. Otherwise a user who may add a pod could compare guesses with existing digests.
func (k *Key) Secret(pod string, ref SecretRef, value []byte) string {
	return SecretPrefix + k.ID() + ":" + k.digest(purpose("secret", pod, ref.Name, ref.Key, string(value)))
}

// purpose joins parts so that different lists of parts never give the same text.
func purpose(parts ...string) []byte {
	var text []byte
	for _, part := range parts {
		text = fmt.Appendf(text, "%d:%s,", len(part), part)
	}
	return text
}

// IsSecret reports whether a text is the digest of a secret value.
func IsSecret(text string) bool { return strings.HasPrefix(text, SecretPrefix) }
