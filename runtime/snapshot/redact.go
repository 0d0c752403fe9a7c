package snapshot

import (
	"strings"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/criconfig"
)

// Redact removes values of Secrets from texts of other programs: the runtime's messages, the containers' termination
// messages, and texts recorded before a value was known. Plans, status and documents of the snapshot then contain none.
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

// Withhold removes the texts of other programs from podctl's own pods if their Secrets are unknown: messages of the
// runtime and termination messages. Containers of a kubelet or another tool keep them, unless a checkpoint exists and
// is unreadable.
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

// redactConditions copies the status before it removes something, because all pods share it.
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

// redacted returns a status without Secrets in the runtime's texts. A reason of one word is the name of a state, which
// podctl needs, and stays.
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
