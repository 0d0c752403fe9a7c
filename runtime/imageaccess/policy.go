package imageaccess

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// Names of policies (kubelet: ImagePullCredentialsVerificationPolicy).
const (
	NeverVerify                  = "NeverVerify"
	NeverVerifyPreloadedImages   = "NeverVerifyPreloadedImages"
	NeverVerifyAllowlistedImages = "NeverVerifyAllowlistedImages"
	AlwaysVerify                 = "AlwaysVerify"
)

// Policy defines which images of the machine need the credentials of a pod. The zero value has the kubelet's default.
type Policy struct {
	// Name is one of the constants. Empty means NeverVerifyPreloadedImages.
	Name string
	// Allowlist has the images of NeverVerifyAllowlistedImages, separated by commas: names without tag and digest, or
	// prefixes that end with /*.
	Allowlist string
}

// Effective returns the name of the policy.
func (p Policy) Effective() string { return cmp.Or(p.Name, NeverVerifyPreloadedImages) }

// Patterns returns the allowlist.
func (p Policy) Patterns() []string {
	if p.Allowlist == "" {
		return nil
	}
	return strings.Split(p.Allowlist, ",")
}

// Check returns an error for a policy that a kubelet refuses.
func (p Policy) Check() error {
	switch p.Effective() {
	case NeverVerifyAllowlistedImages:
	case NeverVerify, NeverVerifyPreloadedImages, AlwaysVerify:
		if p.Allowlist != "" {
			return fmt.Errorf("an allowlist of images needs the policy %s", NeverVerifyAllowlistedImages)
		}
	default:
		return fmt.Errorf("policy %q: must be %s, %s, %s or %s",
			p.Name, NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages, AlwaysVerify)
	}
	for _, pattern := range p.Patterns() {
		if err := checkPattern(pattern); err != nil {
			return fmt.Errorf("image %q of the allowlist: %w", pattern, err)
		}
	}
	return nil
}

func checkPattern(pattern string) error {
	prefix, isPrefix := strings.CutSuffix(pattern, "/*")
	if strings.TrimSpace(pattern) != pattern || prefix == "" || strings.Contains(prefix, "*") {
		return errors.New("must be a name, or a prefix that ends with /*")
	}
	if isPrefix {
		return nil
	}
	name, err := Repository(pattern)
	if err == nil && name != pattern {
		err = errors.New("must have no tag and no digest")
	}
	return err
}

// Verifies reports whether a pod needs credentials for an image of the machine. pulled is set if podctl pulled the
// image, with or without credentials, or may have.
func (p Policy) Verifies(image string, pulled bool) bool {
	switch p.Effective() {
	case NeverVerify:
		return false
	case NeverVerifyPreloadedImages:
		return pulled
	case NeverVerifyAllowlistedImages:
		return !p.lists(image)
	}
	return true
}

func (p Policy) lists(image string) bool {
	name, err := Repository(image)
	if err != nil {
		return false
	}
	for _, pattern := range p.Patterns() {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		if name == pattern || isPrefix && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Repository returns the name of an image in a manifest without its tag and digest. Like a kubelet, it adds no
// registry: nginx and docker.io/library/nginx differ.
func Repository(image string) (string, error) {
	parsed, err := reference.Parse(image)
	if err != nil {
		return "", err
	}
	if digested, ok := parsed.(reference.Digested); ok {
		image = strings.TrimSuffix(image, "@"+digested.Digest().String())
	}
	if tagged, ok := parsed.(reference.Tagged); ok {
		image = strings.TrimSuffix(image, ":"+tagged.Tag())
	}
	return image, nil
}
