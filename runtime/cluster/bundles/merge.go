package bundles

import (
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// maxSelector limits the text of a label selector in bytes (kubelet: maxLabelSelectorLength).
const maxSelector = 100 << 10

// bundle is a ClusterTrustBundle.
type bundle struct {
	signer string
	labels labels.Set
	// anchors are certificates as PEM. size is the size of the bundle in bytes.
	anchors string
	size    int
}

// anchorsOf returns the certificates that a source of a volume asks for, as PEM. found is false if no bundle matches.
// The error is about the source.
func anchorsOf(s *v1.ClusterTrustBundleProjection, all map[string]bundle) (text string, found bool, err error) {
	var matches []bundle
	switch {
	case s.Name != nil:
		if b, exists := all[*s.Name]; exists {
			matches = append(matches, b)
		}
	case s.SignerName != nil:
		selector, err := selectorOf(s)
		if err != nil {
			return "", false, err
		}
		for _, b := range all {
			if b.signer == *s.SignerName && selector.Matches(b.labels) {
				matches = append(matches, b)
			}
		}
	default:
		return "", false, errors.New("ClusterTrustBundle projection requires either name or signerName to be set")
	}
	return merge(matches), len(matches) > 0, nil
}

// selectorOf returns the selector of a source. A missing one selects nothing, and an empty one everything.
func selectorOf(s *v1.ClusterTrustBundleProjection) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("while parsing label selector: %w", err)
	}
	if n := len(selector.String()); n > maxSelector {
		return nil, fmt.Errorf("label selector length (%d) is larger than %d", n, maxSelector)
	}
	return selector, nil
}

// merge returns the certificates of bundles without duplicates, and without texts and headers between them (kubelet:
// normalizeTrustAnchors). They are in a fixed order. A kubelet changes the order at each start, so that no program
// depends on it.
func merge(all []bundle) string {
	anchors := map[string]bool{}
	for _, b := range all {
		for block, rest := pem.Decode([]byte(b.anchors)); block != nil; block, rest = pem.Decode(rest) {
			anchors[string(block.Bytes)] = true
		}
	}
	var text []byte
	for _, anchor := range slices.Sorted(maps.Keys(anchors)) {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(anchor)})...)
	}
	return string(text)
}
