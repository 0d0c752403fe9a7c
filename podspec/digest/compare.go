package digest

import "strings"

// Sameness is the outcome of comparing two digests.
type Sameness int

// The outcomes.
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
	if !strings.HasPrefix(a, SecretPrefix) || !strings.HasPrefix(b, SecretPrefix) {
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

// keyOf is the id of the key that a digest was made with.
func keyOf(digest string) string {
	rest, ok := strings.CutPrefix(digest, SecretPrefix)
	if key, _, _ := strings.Cut(rest, ":"); ok {
		return key
	}
	return noKey
}
