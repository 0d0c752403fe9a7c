package snapshot

import (
	"strings"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/criconfig"
)

// Redact takes values of Secrets out of what others said of the pod: the runtime's words,
// the containers' termination messages, and what was noted of them before a value was known. All that is
// made of a snapshot is without them: plans, status, documents.
func (s *Pod) Redact(r *redaction.Redactor) {
	if r == nil {
		return
	}
	for i := range s.Containers {
		c := &s.Containers[i]
		c.Status, c.TerminationMessage = redacted(r, c.Status), r.Text(c.TerminationMessage)
	}
	s.redactConditions(r)
	if s.Checkpoint == nil {
		return
	}
	for name, e := range s.Checkpoint.StartErrors {
		e.Message = r.Text(e.Message)
		s.Checkpoint.StartErrors[name] = e
	}
	for _, records := range s.Checkpoint.Probes {
		for kind, record := range records {
			record.Message = r.Text(record.Message)
			records[kind] = record
		}
	}
}

// Withhold takes out what others said of a pod of podctl's whose Secrets are not known: the
// words of the runtime and the containers' termination messages. What a kubelet or another tool
// made keeps them, unless a checkpoint is there that cannot be read.
func (s *Pod) Withhold() {
	unreadable := s.Checkpoint != nil && s.Checkpoint.Unreadable
	for i := range s.Containers {
		c := &s.Containers[i]
		if !unreadable && !criconfig.MadeByPodctl(c.Status.GetAnnotations()) {
			continue
		}
		c.TerminationMessage = redaction.Withhold(c.TerminationMessage)
		if other, ok := proto.Clone(c.Status).(*runtimeapi.ContainerStatus); ok && other != nil {
			other.Message = redaction.Withhold(other.GetMessage())
			c.Status = other
		}
	}
}

// redactConditions takes a copy where something is to be taken out: what a runtime says of
// itself is shared by all pods.
func (s *Pod) redactConditions(r *redaction.Redactor) {
	for i, c := range s.Runtime.Status.GetStatus().GetConditions() {
		clean := r.Text(c.GetMessage())
		if clean == c.GetMessage() {
			continue
		}
		if copied, ok := proto.Clone(s.Runtime.Status).(*runtimeapi.StatusResponse); ok {
			copied.Status.Conditions[i].Message = clean
			s.Runtime.Status = copied
		}
	}
}

const asciiLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// redacted is a status without the Secrets that are in the runtime's words. A reason that is
// one word is the name of a state, by which podctl judges.
func redacted(r *redaction.Redactor, status *runtimeapi.ContainerStatus) *runtimeapi.ContainerStatus {
	message, reason := r.Text(status.GetMessage()), status.GetReason()
	if strings.Trim(reason, asciiLetters) != "" {
		reason = r.Text(reason)
	}
	if message == status.GetMessage() && reason == status.GetReason() {
		return status
	}
	other, ok := proto.Clone(status).(*runtimeapi.ContainerStatus)
	if !ok {
		return status
	}
	other.Message, other.Reason = message, reason
	return other
}
