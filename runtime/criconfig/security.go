package criconfig

import (
	"fmt"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubernetes/pkg/security/apparmor"
	"k8s.io/kubernetes/pkg/securitycontext"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// maskedPaths are hidden from every container unless procMount is Unmasked.
func maskedPaths(node Node) []string {
	return append([]string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
		"/sys/devices/virtual/powercap",
	}, node.ThermalThrottle...)
}

func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

// security returns the container's security context. Its own settings override those of the pod (kubelet:
// determineEffectiveSecurityContext).
func security(in *ContainerInput) (*runtimeapi.LinuxContainerSecurityContext, error) {
	pod, c := in.Desired.Pod, in.Container.Container
	effective := securitycontext.DetermineEffectiveSecurityContext(pod, c)
	s := &runtimeapi.LinuxContainerSecurityContext{
		NamespaceOptions:         namespaces(pod, in.TargetID, in.Paths.UserNS),
		SupplementalGroups:       supplementalGroups(pod),
		SupplementalGroupsPolicy: groupsPolicy(pod),
		SelinuxOptions:           selinux(effective.SELinuxOptions),
		Capabilities:             capabilities(effective.Capabilities),
		Privileged:               ptr.Deref(effective.Privileged, false),
		ReadonlyRootfs:           ptr.Deref(effective.ReadOnlyRootFilesystem, false),
		NoNewPrivs:               securitycontext.AddNoNewPrivileges(effective),
	}
	setUser(s, effective, in.Images[c.Image])
	if effective.ProcMount == nil || *effective.ProcMount != v1.UnmaskedProcMount {
		s.MaskedPaths, s.ReadonlyPaths = maskedPaths(in.Node), readonlyPaths()
	}
	var err error
	if s.Seccomp, err = seccomp(pod, c, in.Node); err != nil {
		return nil, err
	}
	s.Apparmor, s.ApparmorProfile = apparmorOf(pod, c) //nolint:staticcheck // older runtimes read the old field
	return s, nil
}

// setUser sets the user: the manifest's, else the image's numeric one, else the image's by name, else root.
func setUser(s *runtimeapi.LinuxContainerSecurityContext, effective *v1.SecurityContext, image model.Image) {
	switch {
	case effective.RunAsUser != nil:
		s.RunAsUser = &runtimeapi.Int64Value{Value: *effective.RunAsUser}
	case image.UID != nil:
		s.RunAsUser = &runtimeapi.Int64Value{Value: *image.UID}
	case image.Username != "":
		s.RunAsUsername = image.Username
	default:
		s.RunAsUser = &runtimeapi.Int64Value{}
	}
	if effective.RunAsGroup != nil {
		s.RunAsGroup = &runtimeapi.Int64Value{Value: *effective.RunAsGroup}
	}
}

// CheckUser refuses a container that must not run as the image's user; the error names the field. No other check of a
// container depends on that user.
func CheckUser(pod *v1.Pod, ref podspec.ContainerRef, image model.Image) error {
	if err := checkRunAsNonRoot(pod, ref.Container, image); err != nil {
		return fmt.Errorf("%s.securityContext.runAsNonRoot: %w", ref.Path, err)
	}
	return nil
}

// checkRunAsNonRoot refuses a container that must not run as root and would, or whose user is unknown (kubelet:
// verifyRunAsNonRoot).
func checkRunAsNonRoot(pod *v1.Pod, c *v1.Container, image model.Image) error {
	effective := securitycontext.DetermineEffectiveSecurityContext(pod, c)
	if !ptr.Deref(effective.RunAsNonRoot, false) {
		return nil
	}
	at := fmt.Sprintf("(pod: %q, container: %s)", model.RefOf(pod).Full(), c.Name)
	switch {
	case effective.RunAsUser != nil && *effective.RunAsUser == 0:
		return model.KubeletErrorf("container's runAsUser breaks non-root policy %s", at)
	case effective.RunAsUser != nil:
		return nil
	case image.UID != nil && *image.UID == 0, image.UID == nil && image.Username == "":
		return model.KubeletErrorf("container has runAsNonRoot and image will run as root %s", at)
	case image.UID == nil:
		return model.KubeletErrorf("container has runAsNonRoot and image has non-numeric user (%s), "+
			"cannot verify user is non-root %s", image.Username, at)
	}
	return nil
}

func capabilities(c *v1.Capabilities) *runtimeapi.Capability {
	if c == nil {
		return nil
	}
	out := &runtimeapi.Capability{}
	for _, one := range c.Add {
		out.AddCapabilities = append(out.AddCapabilities, string(one))
	}
	for _, one := range c.Drop {
		out.DropCapabilities = append(out.DropCapabilities, string(one))
	}
	return out
}

func selinux(o *v1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

// seccomp returns the container's own profile, else the pod's, else the default of the node (kubelet:
// getSeccompProfile).
func seccomp(pod *v1.Pod, c *v1.Container, node Node) (*runtimeapi.SecurityProfile, error) {
	p := &v1.SeccompProfile{Type: v1.SeccompProfileTypeUnconfined}
	if node.SeccompDefault {
		p.Type = v1.SeccompProfileTypeRuntimeDefault
	}
	if pod.Spec.SecurityContext != nil && pod.Spec.SecurityContext.SeccompProfile != nil {
		p = pod.Spec.SecurityContext.SeccompProfile
	}
	if c.SecurityContext != nil && c.SecurityContext.SeccompProfile != nil {
		p = c.SecurityContext.SeccompProfile
	}
	switch p.Type {
	case v1.SeccompProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, nil
	case v1.SeccompProfileTypeLocalhost:
		if p.LocalhostProfile == nil || *p.LocalhostProfile == "" {
			return nil, fmt.Errorf("securityContext.seccompProfile: " +
				"localhostProfile must be set for the type Localhost")
		}
		return &runtimeapi.SecurityProfile{
			ProfileType:  runtimeapi.SecurityProfile_Localhost,
			LocalhostRef: filepath.Join(node.SeccompRoot, *p.LocalhostProfile),
		}, nil
	case v1.SeccompProfileTypeUnconfined:
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, nil
}

// apparmorOf returns the profile in the new form and in the old one for older runtimes: the container's, else the
// annotation's, else the pod's.
func apparmorOf(pod *v1.Pod, c *v1.Container) (*runtimeapi.SecurityProfile, string) {
	p := apparmor.GetProfile(pod, c)
	if p == nil {
		return nil, ""
	}
	switch p.Type {
	case v1.AppArmorProfileTypeRuntimeDefault:
		profile := &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
		return profile, v1.DeprecatedAppArmorBetaProfileRuntimeDefault
	case v1.AppArmorProfileTypeLocalhost:
		if p.LocalhostProfile != nil {
			return &runtimeapi.SecurityProfile{
				ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: *p.LocalhostProfile,
			}, v1.DeprecatedAppArmorBetaProfileNamePrefix + *p.LocalhostProfile
		}
	case v1.AppArmorProfileTypeUnconfined:
	}
	profile := &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	return profile, v1.DeprecatedAppArmorBetaProfileNameUnconfined
}
