package criconfig

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSandboxHostname checks the host name for the kernel, which is limited to 64 characters.
func TestSandboxHostname(t *testing.T) {
	const long = "a-name-that-is-fifty-characters-long-and-so-is-50.x"
	for name, c := range map[string]struct {
		pod         string
		spec        v1.PodSpec
		domain      string
		want, error string
	}{
		"the pod's name":           {pod: "web", want: "web"},
		"the node's network":       {pod: "web", spec: v1.PodSpec{HostNetwork: true}},
		"the pod's host name":      {pod: "web", spec: v1.PodSpec{Hostname: "db"}, want: "db"},
		"a subdomain":              {pod: "web", spec: v1.PodSpec{Subdomain: "sub"}, want: "web"},
		"the full name":            {pod: "web", spec: v1.PodSpec{Subdomain: "sub", SetHostnameAsFQDN: new(true)}, want: "web.sub.ns.svc."},
		"the domain of a cluster":  {pod: "web", spec: v1.PodSpec{Subdomain: "sub", SetHostnameAsFQDN: new(true)}, domain: "d.local", want: "web.sub.ns.svc.d.local"},
		"no subdomain":             {pod: "web", spec: v1.PodSpec{SetHostnameAsFQDN: new(true)}, want: "web"},
		"a name of 63 characters":  {pod: strings.Repeat("a", 63), want: strings.Repeat("a", 63)},
		"a name of 64 characters":  {pod: strings.Repeat("a", 64), want: strings.Repeat("a", 63)},
		"a cut that ends in a dot": {pod: strings.Repeat("a", 62) + ".b", want: strings.Repeat("a", 62)},
		"a full name that is too long": {
			pod: long, spec: v1.PodSpec{Subdomain: "subdomain", SetHostnameAsFQDN: new(true)},
			error: "failed to construct FQDN from pod hostname and cluster domain, FQDN " + long +
				".subdomain.ns.svc. is too long (64 characters is the max, 69 characters requested)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := sandboxHostname(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: c.pod}, Spec: c.spec}, c.domain)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != c.want || text != c.error {
				t.Errorf("%q, %q\nwant %q, %q", got, text, c.want, c.error)
			}
		})
	}
}
