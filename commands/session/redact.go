package session

import (
	"bytes"
	"slices"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// Loaded stores the Secrets of manifests, so that errors are redacted.
func (s *Session) Loaded(pods []*podspec.Desired) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = append(s.loaded, pods...)
}

// ErrorText returns the text of an error without values of Secrets. Passes and observations redact their own errors.
// Other errors do not belong to a known pod, so all checkpoints are read. Use it only for errors, because of this cost.
func (s *Session) ErrorText(err error) string { return s.Redactor().Text(err.Error()) }

// Redactor removes the values of all Secrets that podctl knows on this machine; nil if the flags are not loaded yet.
// The result is cached until RefreshRedactor.
func (s *Session) Redactor() *redaction.Redactor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.redactable.current && s.Flags.StateDir != "" {
		s.redactable.refresh(s.Flags.Layout(), s.Objects(), s.loaded)
	}
	return s.redactable.redactor
}

// RefreshRedactor makes the next call of Redactor check for changed Secrets. It reads only changed files again, and
// builds a new redactor only if a value differs.
func (s *Session) RefreshRedactor() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redactable.current = false
}

// secrets are values of Secrets, and the names of the pods that use them.
type secrets struct {
	values [][]byte
	names  []string
}

// secretsOf returns the Secrets of desired pods.
func secretsOf(pods ...*podspec.Desired) (found secrets) {
	for _, d := range pods {
		found.values = append(found.values, d.Objects.SecretValues()...)
		if d.Pod != nil {
			found.names = append(found.names, model.RefOf(d.Pod).String())
		}
	}
	return found
}

// ofCheckpoint returns the Secrets of a pod, including those from before its last change.
func ofCheckpoint(c *state.Checkpoint) secrets {
	found := secrets{values: c.SecretValues()}
	if pod := c.Manifest(); pod != nil {
		found.names = []string{model.RefOf(pod).String()}
	}
	return found
}

func join(all []secrets) (joined secrets) {
	for _, one := range all {
		joined.values = append(joined.values, one.values...)
		joined.names = append(joined.names, one.names...)
	}
	return joined
}

// redactor keeps the names of the pods readable. Otherwise errors could not name their pod.
func (k secrets) redactor() *redaction.Redactor {
	return redaction.New(k.values...).Keeping(k.names...)
}

// redactable is a redactor with the Secrets from which it was built.
type redactable struct {
	redactor *redaction.Redactor
	built    secrets
	// current is false if the Secrets must be compared again.
	current bool

	checkpoints *state.Summaries[secrets]
	stored      secrets
	storedAt    time.Time
}

func (r *redactable) refresh(layout state.Layout, store *objects.Store, loaded []*podspec.Desired) {
	if r.checkpoints == nil {
		r.checkpoints = state.NewSummaries(layout, ofCheckpoint)
	}
	applied, err := r.checkpoints.All()
	if err != nil {
		applied = nil // Commands that need the pods report the error.
	}
	if at := layout.Objects().ChangedAt(); !at.Equal(r.storedAt) {
		r.stored, r.storedAt = secrets{values: store.Secrets().SecretValues()}, at
	}
	now := join(slices.Concat(applied, []secrets{secretsOf(loaded...), r.stored}))
	if !slices.EqualFunc(now.values, r.built.values, bytes.Equal) || !slices.Equal(now.names, r.built.names) {
		r.redactor, r.built = now.redactor(), now
	}
	r.current = true
}

// NewRedactor returns a redactor for the Secrets of applied pods, including those from before a change, and of other
// pods.
func NewRedactor(applied []state.AppliedPod, others ...*podspec.Desired) *redaction.Redactor {
	all := []secrets{secretsOf(others...)}
	for _, p := range applied {
		if p.Desired != nil {
			all = append(all, secretsOf(p.Desired))
		}
		if p.Checkpoint != nil {
			all = append(all, ofCheckpoint(p.Checkpoint))
		}
	}
	return join(all).redactor()
}
