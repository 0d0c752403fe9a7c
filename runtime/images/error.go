package images

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The kubelet's reasons for problems with an image (pkg/kubelet/images/types.go).
const (
	ErrImagePull             = "ErrImagePull"
	InvalidImageName         = "InvalidImageName"
	ErrImageNeverPull        = "ErrImageNeverPull"
	ImageInspectError        = "ImageInspectError"
	RegistryUnavailable      = "RegistryUnavailable"
	SignatureValidationError = "SignatureValidationFailed"
)

// Error is the failure to provide one image.
type Error struct {
	// Reason is one of the constants above.
	Reason string
	Image  string
	// Hint explains the failure and how to fix it.
	Hint string
	// Passing reports whether a later try may help: for a registry that cannot be reached, but not for an image that
	// does not exist.
	Passing bool
	// Invalid reports whether the name is not a valid image name.
	Invalid bool
	Err     error
}

// Error returns the hint, or the cause if there is no hint.
func (e *Error) Error() string {
	if e.Hint != "" {
		return fmt.Sprintf("image %s: %s", e.Image, e.Hint)
	}
	return fmt.Sprintf("image %s: %v", e.Image, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KubeletText returns the kubelet's message about an invalid name (kubelet: applyDefaultImageTag). For a failed pull it
// is empty, because the kubelet then shows the runtime's message.
func (e *Error) KubeletText() string {
	if !e.Invalid {
		return ""
	}
	return fmt.Sprintf("Failed to apply default image tag %q: couldn't parse image name %q: %v",
		e.Image, e.Image, e.Err)
}

// sign identifies a runtime's error by its text.
type sign struct {
	texts   []string
	hint    string
	passing bool
}

// signs are tried in order: the first match explains the error. The texts are those of containerd and CRI-O.
func signs() []sign {
	return []sign{
		{
			texts: []string{"no space left on device"},
			hint:  "there is no space left for it; `podctl image prune` frees some",
		},
		{
			texts: []string{"server gave HTTP response to HTTPS client"},
			hint:  "the registry speaks plain http; configure this in the runtime's registry settings",
		},
		{
			texts: []string{"certificate signed by unknown authority", "x509:"},
			hint:  "the registry's certificate is not trusted",
		},
		{
			texts: []string{
				"401 Unauthorized", "403 Forbidden", "authorization failed", "authentication required",
				"denied", "insufficient_scope",
			},
			hint: "the registry denies access; " +
				"check the name, and give credentials with imagePullSecrets or a docker config.json",
		},
		{
			texts: []string{
				"connection refused", "no such host", "i/o timeout", "network is unreachable",
				"TLS handshake timeout", "EOF", "connection reset",
				"503 Service Unavailable", "502 Bad Gateway", "429 Too Many Requests",
			},
			hint:    "the registry cannot be reached",
			passing: true,
		},
		{
			texts: []string{"not found", "manifest unknown", "does not exist"},
			hint:  "the registry does not have it",
		},
	}
}

// explain turns a runtime's pull error into an Error with a hint.
func explain(name string, err error) *Error {
	text := status.Convert(err).Message()
	e := &Error{Reason: ErrImagePull, Image: name, Err: err}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		status.Code(err) == codes.DeadlineExceeded:
		e.Hint, e.Passing = "pulling it took too long or was interrupted", true
		return e
	case strings.HasPrefix(text, RegistryUnavailable):
		e.Reason = RegistryUnavailable
	case strings.HasPrefix(text, SignatureValidationError):
		e.Reason = SignatureValidationError
	}
	for _, s := range signs() {
		for _, known := range s.texts {
			if strings.Contains(text, known) {
				e.Hint, e.Passing = fmt.Sprintf("%s (%s)", s.hint, lastCause(text)), s.passing
				return e
			}
		}
	}
	e.Hint = text
	return e
}

// lastCause returns the innermost cause of an error that a runtime built.
func lastCause(text string) string {
	if i := strings.LastIndex(text, ": "); i >= 0 && len(text)-i > 12 {
		return text[i+2:]
	}
	return text
}
