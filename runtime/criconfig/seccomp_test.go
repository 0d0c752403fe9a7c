package criconfig

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestSeccompDefault checks that the default of the node applies only if neither the container nor the pod has a profile.
func TestSeccompDefault(t *testing.T) {
	type kind = v1.SeccompProfileType
	const unconfined, standard = v1.SeccompProfileTypeUnconfined, v1.SeccompProfileTypeRuntimeDefault
	for _, c := range []struct {
		node           bool
		pod, container kind
		want           runtimeapi.SecurityProfile_ProfileType
	}{
		{false, "", "", runtimeapi.SecurityProfile_Unconfined},
		{true, "", "", runtimeapi.SecurityProfile_RuntimeDefault},
		{true, unconfined, "", runtimeapi.SecurityProfile_Unconfined},
		{true, "", unconfined, runtimeapi.SecurityProfile_Unconfined},
		{true, unconfined, standard, runtimeapi.SecurityProfile_RuntimeDefault},
		{false, standard, "", runtimeapi.SecurityProfile_RuntimeDefault},
	} {
		// A security context without a profile is ignored.
		pod, container := &v1.Pod{}, &v1.Container{SecurityContext: &v1.SecurityContext{}}
		pod.Spec.SecurityContext = &v1.PodSecurityContext{}
		if c.pod != "" {
			pod.Spec.SecurityContext.SeccompProfile = &v1.SeccompProfile{Type: c.pod}
		}
		if c.container != "" {
			container.SecurityContext.SeccompProfile = &v1.SeccompProfile{Type: c.container}
		}
		got, err := seccomp(pod, container, Node{SeccompDefault: c.node})
		if err != nil || got.GetProfileType() != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}
