package digest

import "strings"

// Sameness is the result of comparing two digests.
type Sameness int

// Results of a comparison.
const (
	// Different means that the digested data differ.
	Different Sameness = iota
	// Same means that the digested data are equal.
	Same
	// Unknown means that the digests differ at most in values of Secrets, and have different keys or none.
	Unknown
)

// CompareSecrets compares the digests of two values of Secrets.
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

// Compare compares two digests of the same kind: spec hashes, digests of the wanted state, or digests of a volume's
// content.
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

// keyOf returns the id of the key of a digest.
func keyOf(digest string) string {
	rest, ok := strings.CutPrefix(digest, SecretPrefix)
	if key, _, _ := strings.Cut(rest, ":"); ok {
		return key
	}
	return noKey
}
