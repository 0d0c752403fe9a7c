package digest

import (
	"strings"
	"testing"
)

var (
	here  = NewKey([]byte("0123456789abcdef0123456789abcdef"))
	there = NewKey([]byte("another key, of another machine."))
)

// TestSecretsOfTwoKeysCannotBeCompared checks that only digests of the same key are compared.
func TestSecretsOfTwoKeysCannotBeCompared(t *testing.T) {
	ref := SecretRef{Name: "login", Key: "pin"}
	digest := func(k *Key, value string) string { return k.Secret("default/web", ref, []byte(value)) }
	for name, c := range map[string]struct {
		a, b string
		want Sameness
	}{
		"the same":         {digest(here, "1"), digest(here, "1"), Same},
		"another value":    {digest(here, "1"), digest(here, "2"), Different},
		"another key":      {digest(here, "1"), digest(there, "1"), Unknown},
		"no key":           {digest(nil, "1"), digest(nil, "2"), Unknown},
		"one with a key":   {digest(here, "1"), digest(nil, "1"), Unknown},
		"no digest at all": {digest(here, "1"), "plain", Different},
	} {
		if got := CompareSecrets(c.a, c.b); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if here.ID() == there.ID() || (*Key)(nil).ID() != "none" {
		t.Errorf("ids %s, %s and %s", here.ID(), there.ID(), (*Key)(nil).ID())
	}
	if digest(here, "1") == here.Secret("default/other", ref, []byte("1")) ||
		digest(here, "1") == here.Secret("default/web", SecretRef{Name: "loginpin"}, []byte("1")) {
		t.Error("equal values have the same digest in two places")
	}
}

// TestSeal checks that the open part is readable without the key, and the secret part is not.
func TestSeal(t *testing.T) {
	one := here.Seal("sha256:open", "default/web", []byte("1"))
	if !strings.HasPrefix(one, "sha256:open:"+here.ID()+":") ||
		Compare(one, here.Seal("sha256:open", "default/web", []byte("2"))) != Different {
		t.Errorf("sealed as %s", one)
	}
	if got := Compare(one, there.Seal("sha256:open", "default/web", []byte("1"))); got != Unknown {
		t.Errorf("with another key: %d", got)
	}
}

// TestSealAll checks that a digest of digests compares like these.
func TestSealAll(t *testing.T) {
	named := func(name string, k *Key, value string) Named {
		return Named{Name: name, Digest: k.Secret("p", SecretRef{Name: name}, []byte(value))}
	}
	if got := SealAll("v1:open", nil); got != "v1:open" {
		t.Errorf("of nothing: %s", got)
	}
	one := SealAll("v2:open", []Named{named("a", here, "1"), named("b", here, "2")})
	if got := Compare(one, SealAll("v2:open", []Named{named("a", here, "1"), named("b", here, "3")})); got != Different {
		t.Errorf("with another value: %d", got)
	}
	if got := Compare(one, SealAll("v2:open", []Named{named("a", here, "1"), named("b", there, "2")})); got != Unknown {
		t.Errorf("of two keys: %d", got)
	}
}
