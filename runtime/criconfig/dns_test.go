package criconfig

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dnsPod returns a pod with a policy.
func dnsPod(policy v1.DNSPolicy, change func(*v1.PodSpec)) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"}, Spec: v1.PodSpec{DNSPolicy: policy}}
	if change != nil {
		change(&pod.Spec)
	}
	return pod
}

// numbered returns count texts with a prefix.
func numbered(prefix string, count int) []string {
	all := make([]string, 0, count)
	for i := range count {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// TestClusterDNS checks the resolver configuration and the events of pods of the API server against those of a kubelet.
func TestClusterDNS(t *testing.T) {
	const (
		own     = "192.0.2.53 | corp.example svc.d.local | timeout:1"
		missing = `MissingClusterDNS: pod: "web_ns(u)". kubelet does not have ClusterDNS IP configured and cannot create ` +
			`Pod using "ClusterFirst" policy. Falling back to "Default" policy.`
		cluster = "10.0.0.10 fd00::a | ns.svc.d.local svc.d.local d.local corp.example | ndots:5"
	)
	hostNetwork := func(s *v1.PodSpec) { s.HostNetwork = true }
	node := Node{
		ResolvConf: []byte("nameserver 192.0.2.53\nsearch corp.example svc.d.local\noptions timeout:1\n"),
		ClusterDNS: []string{"10.0.0.10", "fd00::a"}, ClusterDomain: "d.local",
	}
	noDomain, none, many := node, node, node
	noDomain.ClusterDomain, none.ClusterDNS, many.ClusterDNS = "", nil, numbered("10.0.0.", 4)
	searches := numbered("s", 30)
	for name, c := range map[string]struct {
		pod  *v1.Pod
		node Node
		want []string
	}{
		"cluster first":             {dnsPod(v1.DNSClusterFirst, nil), node, []string{cluster}},
		"on the node's network":     {dnsPod(v1.DNSClusterFirst, hostNetwork), node, []string{own}},
		"even on that network":      {dnsPod(v1.DNSClusterFirstWithHostNet, hostNetwork), node, []string{cluster}},
		"the node's":                {dnsPod(v1.DNSDefault, nil), node, []string{own}},
		"its own":                   {dnsPod(v1.DNSNone, nil), node, []string{"|  |"}},
		"no domain":                 {dnsPod(v1.DNSClusterFirst, nil), noDomain, []string{"10.0.0.10 fd00::a | corp.example svc.d.local | ndots:5"}},
		"no cluster DNS":            {dnsPod(v1.DNSClusterFirst, nil), none, []string{own, missing}},
		"no cluster DNS, not used":  {dnsPod(v1.DNSDefault, nil), none, []string{own}},
		"servers that are not used": {dnsPod(v1.DNSDefault, nil), many, []string{own}},
		"more servers": {dnsPod(v1.DNSClusterFirst, nil), many, []string{
			"10.0.0.0 10.0.0.1 10.0.0.2 | ns.svc.d.local svc.d.local d.local corp.example | ndots:5",
			"DNSConfigForming: Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line " +
				"is: 10.0.0.0 10.0.0.1 10.0.0.2",
		}},
		"more names and an option": {dnsPod(v1.DNSClusterFirst, func(s *v1.PodSpec) {
			s.DNSConfig = &v1.PodDNSConfig{Searches: searches, Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}}}
		}), node, []string{
			"10.0.0.10 fd00::a | ns.svc.d.local svc.d.local d.local corp.example " + strings.Join(searches[:28], " ") + " | ndots:2",
			"DNSConfigForming: Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " +
				"ns.svc.d.local svc.d.local d.local corp.example " + strings.Join(searches[:28], " "),
		}},
	} {
		dns, err := DNS(c.pod, c.node)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{strings.TrimSpace(strings.Join(slices.Concat(
			[]string{strings.Join(dns.GetServers(), " ")}, []string{strings.Join(dns.GetSearches(), " ")},
			[]string{strings.Join(dns.GetOptions(), " ")},
		), " | "))}
		for _, w := range DNSWarnings(c.pod, c.node) {
			got = append(got, w.Reason+": "+w.Text)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestHostsFileInCluster checks the full name of a pod in its hosts file.
func TestHostsFileInCluster(t *testing.T) {
	pod := dnsPod(v1.DNSClusterFirst, func(s *v1.PodSpec) { s.Subdomain = "sub" })
	text, err := HostsFile(pod, Node{ClusterDomain: "d.local"}, []string{"10.1.0.2"})
	if want := "10.1.0.2\tweb.sub.ns.svc.d.local\tweb\n"; err != nil || !strings.HasSuffix(string(text), want) {
		t.Errorf("%s, %v", text, err)
	}
}
