package snapshot

import (
	"cmp"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
)

// What an older podctl wrote on containers tells secret values by
// digests that can be guessed. It is turned into today's form where it is read, so that
// neither a plan nor a snapshot holds any.

func containerName(s *runtimeapi.ContainerStatus) string {
	return cmp.Or(s.GetLabels()[criconfig.LabelContainerName], s.GetMetadata().GetName())
}

// specOf is the spec hash and the projection that a container bears, in today's form.
func (p *Pod) specOf(s *runtimeapi.ContainerStatus, desired *podspec.Desired) (hash, spec string) {
	a := s.GetAnnotations()
	return podspec.UpgradeSpec(containerName(s), a[criconfig.AnnotationContainerSpecHash], a[criconfig.AnnotationContainerSpec], p.applied(), desired)
}

// applied is the manifest that was applied last; nil when it is not known.
func (p *Pod) applied() *podspec.Desired {
	if p.Journal == nil {
		return nil
	}
	return p.Journal.Applied
}

// upgraded is a container's status with annotations in today's form.
func (p *Pod) upgraded(s *runtimeapi.ContainerStatus) *runtimeapi.ContainerStatus {
	hash, spec := p.specOf(s, nil)
	a := s.GetAnnotations()
	if hash == a[criconfig.AnnotationContainerSpecHash] && spec == a[criconfig.AnnotationContainerSpec] {
		return s
	}
	other, ok := proto.Clone(s).(*runtimeapi.ContainerStatus)
	if !ok {
		return s
	}
	other.Annotations[criconfig.AnnotationContainerSpecHash] = hash
	other.Annotations[criconfig.AnnotationContainerSpec] = spec
	return other
}
