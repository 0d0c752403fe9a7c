package session

import (
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
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

// Redactor takes out the values of all Secrets that podctl knows here; nil when the flags are
// not read yet.
func (s *Session) Redactor() *redaction.Redactor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.redactor == nil && s.Flags.StateDir != "" {
		applied, _, err := state.Applied(s.Flags.Layout())
		if err != nil {
			applied = nil // Commands that need them report the error.
		}
		s.redactor = NewRedactor(applied, slices.Concat(s.loaded, []*podspec.Desired{{Objects: s.Objects().Secrets()}})...)
	}
	return s.redactor
}

// ForgetRedactor lets the next one be made anew: there may be more Secrets by now.
func (s *Session) ForgetRedactor() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redactor = nil
}

// NewRedactor returns a redactor of the Secrets of pods, those before a change too. The names
// of the pods stay: otherwise errors would not say which pod they are about.
func NewRedactor(applied []state.AppliedPod, others ...*podspec.Desired) *redaction.Redactor {
	var values [][]byte
	var names []string
	for _, p := range applied {
		if p.Desired != nil {
			others = append(others, p.Desired)
		}
		if p.Checkpoint != nil {
			values = append(values, p.Checkpoint.SecretValues()...)
		}
	}
	for _, d := range others {
		values = append(values, d.Objects.SecretValues()...)
		if d.Pod != nil {
			names = append(names, model.RefOf(d.Pod).String())
		}
	}
	return redaction.New(values...).Keeping(names...)
}
