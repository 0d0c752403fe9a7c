package digest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Key keys the digests that stand for the values of Secrets, so that nobody
// without it can find a value by trying: a PIN of six digits has only a million.
// It belongs to one machine and never leaves it. The nil key knows nothing: its
// digests are all the same and can be compared with none.
type Key struct {
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

// NewKey makes a key of random bytes, of which there should be 32.
func NewKey(secret []byte) *Key {
	k := &Key{secret: secret}
	k.id = hex.EncodeToString(k.sum(purpose("id"))[:keyIDBytes])
	return k
}

// ID differs between keys and says nothing else about them.
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

// digest is the keyed digest of a value as text; empty without a key.
func (k *Key) digest(value []byte) string {
	if k == nil {
		return ""
	}
	return hex.EncodeToString(k.sum(value)[:keyedDigestBytes])
}

// SecretPrefix begins what stands for the value of a Secret: the id of the key and the
// keyed digest follow.
const SecretPrefix = "secret:hmac:"

// SecretRef is a value of a Secret, by the names of Secret and key.
type SecretRef struct{ Name, Key string }

// Secret returns the digest that stands for a value of a Secret. Pod, Secret and key are part
// of it: equal values have different digests in two places, so that nobody who may add a pod
// can compare guesses with them.
func (k *Key) Secret(pod string, ref SecretRef, value []byte) string {
	return SecretPrefix + k.ID() + ":" + k.digest(purpose("secret", pod, ref.Name, ref.Key, string(value)))
}

// purpose joins the parts of what is digested so that no two lists of parts give the same text.
func purpose(parts ...string) []byte {
	var text []byte
	for _, part := range parts {
		text = fmt.Appendf(text, "%d:%s,", len(part), part)
	}
	return text
}

// IsSecret reports whether a text is the digest of a secret value and nothing else.
func IsSecret(text string) bool { return strings.HasPrefix(text, SecretPrefix) }
