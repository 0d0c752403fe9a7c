package snapshot

import (
	"cmp"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/criconfig"
)

// What an older podctl wrote on containers tells secret values by
// digests that can be guessed. It is turned into today's form where it is read, so that
// neither a plan nor a snapshot holds any.

func containerName(s *runtimeapi.ContainerStatus) string {
	return cmp.Or(s.GetLabels()[criconfig.LabelContainerName], s.GetMetadata().GetName())
}

// specOf is the spec hash and the projection that a container bears, in today's form.
func (s *Pod) specOf(st *runtimeapi.ContainerStatus, desired *podspec.Desired) (hash, spec string) {
	a := st.GetAnnotations()
	return spechash.Upgrade(containerName(st), a[criconfig.AnnotationContainerSpecHash], a[criconfig.AnnotationContainerSpec], s.applied(), desired)
}

// applied is the manifest that was applied last; nil when it is not known.
func (s *Pod) applied() *podspec.Desired {
	if s.Checkpoint == nil {
		return nil
	}
	return s.Checkpoint.Applied
}

// upgraded is a container's status with annotations in today's form.
func (s *Pod) upgraded(st *runtimeapi.ContainerStatus) *runtimeapi.ContainerStatus {
	hash, spec := s.specOf(st, nil)
	a := st.GetAnnotations()
	if hash == a[criconfig.AnnotationContainerSpecHash] && spec == a[criconfig.AnnotationContainerSpec] {
		return st
	}
	other, ok := proto.Clone(st).(*runtimeapi.ContainerStatus)
	if !ok {
		return st
	}
	other.Annotations[criconfig.AnnotationContainerSpecHash] = hash
	other.Annotations[criconfig.AnnotationContainerSpec] = spec
	return other
}
