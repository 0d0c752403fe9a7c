package proof

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// checkDemands finds demands of the pod that the runtime does not support, and that would be ignored silently.
func (p *Prover) checkDemands() error {
	if own := p.Desired.Pod.Spec.SecurityContext; own != nil && !p.Node.SupplementalGroupsPolicy &&
		ptr.Deref(own.SupplementalGroupsPolicy, "") == v1.SupplementalGroupsPolicyStrict {
		return refusal(model.SupplementalGroupsPolicyNotSupported,
			"%w (spec.securityContext.supplementalGroupsPolicy; containerd 2.0 and newer support it)",
			model.KubeletErrorf("SupplementalGroupsPolicy=Strict is not supported in this node"))
	}
	return nil
}

// loadedProfiles lists the kernel's AppArmor profiles.
const loadedProfiles = "/sys/kernel/security/apparmor/profiles"

// checkAppArmor finds a profile that cannot be enforced. The runtime refuses to create such a container.
func (p *Prover) checkAppArmor(ref podspec.ContainerRef, config *runtimeapi.ContainerConfig) error {
	profile := config.GetLinux().GetSecurityContext().GetApparmor()
	if profile == nil || profile.GetProfileType() == runtimeapi.SecurityProfile_Unconfined {
		return nil
	}
	if !p.Node.AppArmor {
		return refusal(model.AppArmor, "%s: %w", ref.Path,
			model.KubeletErrorf("Cannot enforce AppArmor: AppArmor is not enabled on the host"))
	}
	if name := profile.GetLocalhostRef(); name != "" && !isLoaded(loadedProfiles, name) {
		return refusal(model.AppArmor, "%s: %w", ref.Path,
			model.KubeletErrorf("Cannot enforce AppArmor: profile %q is not loaded", name))
	}
	return nil
}

// isLoaded reports whether a profile is in the list, which has lines "name (mode)". An unreadable list may contain it.
func isLoaded(list, profile string) bool {
	text, err := os.ReadFile(list)
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(text)) {
		if name, _, _ := strings.Cut(line, " ("); name == profile {
			return true
		}
	}
	return false
}

// Sandbox returns why a runtime would refuse to create a pod's sandbox.
func (p *Prover) Sandbox(config *runtimeapi.PodSandboxConfig) error {
	if _, err := p.Node.HandlerOf(p.Desired); err != nil {
		return model.WithReason(model.CreatePodSandboxError, err)
	}
	security := config.GetLinux().GetSecurityContext()
	if security.GetRunAsGroup() != nil && security.GetRunAsUser() == nil {
		// The CRI requires runtimes to refuse it.
		return refusal(model.CreatePodSandboxError,
			"spec.securityContext.runAsGroup: runtimes refuse a group without a user; "+
				"set runAsUser too, or runAsGroup of the containers")
	}
	sysctls := config.GetLinux().GetSysctls()
	for _, name := range slices.Sorted(maps.Keys(sysctls)) {
		if err := p.checkSysctl(name); err != nil {
			return refusal(model.CreatePodSandboxError, "spec.securityContext.sysctls: %w", err)
		}
	}
	return nil
}

// checkSysctl finds a sysctl that the kernel does not have, or that runc does not set because it is not namespaced.
func (p *Prover) checkSysctl(name string) error {
	if p.usesRunc() && !isNamespaced(name) {
		return fmt.Errorf("sysctl %q is not in a separate kernel namespace: it belongs to the whole node", name)
	}
	// A pod whose class is missing waits for another reason.
	if handler, unknown := p.Node.HandlerOf(p.Desired); unknown != nil || handler != "" {
		return nil //nolint:nilerr // see above
	}
	path := filepath.Join("/proc/sys", strings.NewReplacer(".", "/", "/", ".").Replace(name))
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return fmt.Errorf("the kernel has no sysctl %q: %w", name, fs.ErrNotExist)
	}
	return nil
}

// isNamespaced reports whether a sysctl belongs to a namespace of the pod (runc: validator, sysctl).
func isNamespaced(name string) bool {
	switch name {
	case "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.sem",
		"kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.domainname":
		return true
	}
	return strings.HasPrefix(name, "fs.mqueue.") || strings.HasPrefix(name, "net.")
}
