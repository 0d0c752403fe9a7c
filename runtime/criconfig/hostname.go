package criconfig

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The maximum lengths of the kernel and DNS.
const (
	hostnameMax = 63
	fqdnMax     = 64
)

// Hostname returns a pod's host name and domain (kubelet: GeneratePodHostNameAndDomain). The domain is empty without a
// subdomain, and otherwise ends with that of the cluster, which may be empty.
func Hostname(pod *v1.Pod, clusterDomain string) (hostname, domain string, err error) {
	if override := pod.Spec.HostnameOverride; override != nil {
		if msgs := validation.IsDNS1123Subdomain(*override); len(msgs) > 0 {
			return "", "", fmt.Errorf("spec.hostnameOverride: %q is not a valid DNS name: %s",
				*override, strings.Join(msgs, "; "))
		}
		return truncated(*override), "", nil
	}
	hostname = pod.Name
	if pod.Spec.Hostname != "" {
		if msgs := validation.IsDNS1123Label(pod.Spec.Hostname); len(msgs) > 0 {
			return "", "", fmt.Errorf("spec.hostname: %q is not a valid DNS label: %s",
				pod.Spec.Hostname, strings.Join(msgs, "; "))
		}
		hostname = pod.Spec.Hostname
	}
	if pod.Spec.Subdomain != "" {
		if msgs := validation.IsDNS1123Label(pod.Spec.Subdomain); len(msgs) > 0 {
			return "", "", fmt.Errorf("spec.subdomain: %q is not a valid DNS label: %s",
				pod.Spec.Subdomain, strings.Join(msgs, "; "))
		}
		// Without a domain of the cluster, the name ends with a dot.
		domain = fmt.Sprintf("%s.%s.svc.%s", pod.Spec.Subdomain, pod.Namespace, clusterDomain)
	}
	return truncated(hostname), domain, nil
}

func truncated(name string) string {
	return strings.TrimRight(name[:min(len(name), hostnameMax)], "-.")
}

// sandboxHostname returns the host name for the kernel: empty on the node's network, the full name if the pod asks for
// it.
func sandboxHostname(pod *v1.Pod, clusterDomain string) (string, error) {
	if pod.Spec.HostNetwork {
		return "", nil
	}
	hostname, domain, err := Hostname(pod, clusterDomain)
	if err != nil || domain == "" || pod.Spec.SetHostnameAsFQDN == nil || !*pod.Spec.SetHostnameAsFQDN {
		return hostname, err
	}
	full := hostname + "." + domain
	if len(full) > fqdnMax {
		// kubelet: GetNodenameForKernel
		return "", fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long "+
			"(%d characters is the max, %d characters requested)", full, fqdnMax, len(full))
	}
	return full, nil
}
