package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"sync"
)

// An older podctl wrote digests of secret values without a key: on containers, in checkpoints,
// snapshots and saved plans. The values can be guessed from them. Containers that have them
// go on running: the digests are compared with those of the manifest they were made of, where
// it is known. Podctl writes none of them any more.

// unkeyedPrefix began what stood for a secret value.
const unkeyedPrefix = "secret:sha256:"

// unkeyedBytes is how much of a value's SHA-256 followed.
const unkeyedBytes = 6

// otherSecret stands for a secret value that was digested without a key, and that is none of
// those of today's manifest.
const otherSecret = unkeyedPrefix + "other"

// unkeyedDigests finds digests without a key in a text.
var unkeyedDigests = sync.OnceValue(func() *regexp.Regexp { //nolint:gochecknoglobals // compiled once, when it is needed
	return regexp.MustCompile(unkeyedPrefix + `[0-9a-f]{12}`)
})

// UnkeyedSecret is what an older podctl wrote for a value of a Secret.
func UnkeyedSecret(value []byte) string {
	sum := sha256.Sum256(value)
	return unkeyedPrefix + hex.EncodeToString(sum[:unkeyedBytes])
}

// HasUnkeyed reports whether a text holds a digest without a key.
func HasUnkeyed(text string) bool { return strings.Contains(text, unkeyedPrefix) }

// HideUnkeyed replaces all digests without a key in a text.
func HideUnkeyed(text string) string { return unkeyedDigests().ReplaceAllString(text, otherSecret) }
