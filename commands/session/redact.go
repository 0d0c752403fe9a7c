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

// Loaded remembers the Secrets of manifests that were read, for errors that repeat them.
func (s *Session) Loaded(pods []*podspec.Desired) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = append(s.loaded, pods...)
}

// ErrorText is what an error says, without the values of Secrets. Where errors arise that a
// pass or a look at a pod does not redact, the pod is not known: all checkpoints are read for
// it, so it is for errors alone.
func (s *Session) ErrorText(err error) string { return s.Redactor().Text(err.Error()) }

// Redactor removes the values of all Secrets that podctl knows here; nil if the flags are not read yet. It stays the same
// until RefreshRedactor.
func (s *Session) Redactor() *redaction.Redactor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.redactable.current && s.Flags.StateDir != "" {
		s.redactable.refresh(s.Flags.Layout(), s.Objects(), s.loaded)
	}
	return s.redactable.redactor
}

// RefreshRedactor lets the next call of Redactor look whether there are other Secrets by now. Only what changed is read
// again, and only if a value is another one a redactor is built.
func (s *Session) RefreshRedactor() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redactable.current = false
}

// secrets are values of Secrets, and the names of the pods that have them.
type secrets struct {
	values [][]byte
	names  []string
}

// secretsOf are those of pods as they are desired.
func secretsOf(pods ...*podspec.Desired) (found secrets) {
	for _, d := range pods {
		found.values = append(found.values, d.Objects.SecretValues()...)
		if d.Pod != nil {
			found.names = append(found.names, model.RefOf(d.Pod).String())
		}
	}
	return found
}

// ofCheckpoint are those of a pod, before its last change too.
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

// redactor keeps the names of the pods: otherwise errors would not say which pod they are about.
func (k secrets) redactor() *redaction.Redactor {
	return redaction.New(k.values...).Keeping(k.names...)
}

// redactable is a redactor with the Secrets that it was built from.
type redactable struct {
	redactor *redaction.Redactor
	built    secrets
	// current is false if the Secrets have to be compared.
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
		applied = nil // Commands that need them report the error.
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

// NewRedactor returns a redactor of the Secrets of pods, those before a change too, and of others.
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
