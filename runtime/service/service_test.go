package service

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podctl/podctl/podspec"
)

// web returns a Service with a named port.
func web(name string, change ...func(*v1.Service)) *v1.Service {
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1.ServiceSpec{
		Type: v1.ServiceTypeClusterIP, Selector: map[string]string{"app": "web"},
		Ports: []v1.ServicePort{{Name: "http", Protocol: v1.ProtocolTCP, Port: 80, TargetPort: intstr.FromString("www")}},
	}}
	for _, c := range change {
		c(s)
	}
	return s
}

func ofType(t v1.ServiceType) func(*v1.Service) { return func(s *v1.Service) { s.Spec.Type = t } }

func headless(s *v1.Service) { s.Spec.ClusterIP = v1.ClusterIPNone }

func onNode(port int32) func(*v1.Service) {
	return func(s *v1.Service) { s.Spec.Type, s.Spec.Ports[0].NodePort = v1.ServiceTypeNodePort, port }
}

func at(address string) func(*v1.Service) { return func(s *v1.Service) { s.Spec.ClusterIP = address } }

// pod returns a ready pod with an address.
func pod(name, ip string, change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name:  "a",
			Ports: []v1.ContainerPort{{Name: "www", ContainerPort: 8080, Protocol: v1.ProtocolTCP}},
		}}},
		Status: v1.PodStatus{
			Phase:      v1.PodRunning,
			PodIPs:     []v1.PodIP{{IP: ip}},
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func unready(p *v1.Pod) { p.Status.Conditions = nil }

// TestEndpoints checks that selected, ready and present pods get traffic, each at its own port.
func TestEndpoints(t *testing.T) {
	pods := []*v1.Pod{
		pod("b", "10.0.0.2"), pod("a", "10.0.0.1"), pod("unready", "10.0.0.3", unready),
		pod("deleted", "10.0.0.4", func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} }),
		pod("over", "10.0.0.5", func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }),
		pod("other", "10.0.0.6", func(p *v1.Pod) { p.Labels["app"] = "db" }),
		pod("elsewhere", "10.0.0.7", func(p *v1.Pod) { p.Namespace = "other" }),
		pod("new", "", func(p *v1.Pod) { p.Status.PodIPs = nil }),
		pod("portless", "10.0.0.8", func(p *v1.Pod) { p.Spec.Containers[0].Ports[0].Name = "x" }),
		pod("udp", "10.0.0.9", func(p *v1.Pod) { p.Spec.Containers[0].Ports[0].Protocol = v1.ProtocolUDP }),
		pod("sidecar", "10.0.0.10", func(p *v1.Pod) {
			p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil
			p.Spec.InitContainers[0].RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		}),
		pod("two", "10.0.0.11", func(p *v1.Pod) { p.Status.PodIPs = append(p.Status.PodIPs, v1.PodIP{IP: "fd00::1"}) }),
	}
	for _, c := range []struct {
		change func(*v1.Service)
		want   string
	}{
		{func(*v1.Service) {}, "10.0.0.1:8080 10.0.0.2:8080 10.0.0.10:8080 10.0.0.11:8080 [fd00::1]:8080"},
		{func(s *v1.Service) {
			s.Spec.PublishNotReadyAddresses = true
		}, "10.0.0.1:8080 10.0.0.2:8080 10.0.0.3:8080 10.0.0.10:8080 10.0.0.11:8080 [fd00::1]:8080"},
		{func(s *v1.Service) {
			s.Spec.Ports[0].TargetPort = intstr.FromInt32(9)
		}, "10.0.0.1:9 10.0.0.2:9 10.0.0.8:9 10.0.0.9:9 10.0.0.10:9 10.0.0.11:9 [fd00::1]:9"},
		{func(s *v1.Service) { s.Spec.Selector = nil }, ""},
	} {
		s := web("web", at("10.96.0.1"), c.change)
		s.Spec.ClusterIPs = []string{"10.96.0.1"}
		routes := Routes([]*v1.Service{s}, pods)
		var got []string
		for _, e := range routes[0].Endpoints {
			got = append(got, e.String())
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s, want %s", text, c.want)
		}
	}
}

// TestRoutes checks that a port of a Service is reached at the Service's addresses and, depending on the type, at ports
// of the node.
func TestRoutes(t *testing.T) {
	var taken Taken
	services := []*v1.Service{
		web("node", onNode(30007)), web("inner"), web("none", headless), web("outside", ofType(v1.ServiceTypeExternalName)),
		web("balanced", ofType(v1.ServiceTypeLoadBalancer), func(s *v1.Service) {
			s.Spec.AllocateLoadBalancerNodePorts, s.Spec.SessionAffinity = new(false), v1.ServiceAffinityClientIP
		}),
	}
	for _, s := range services {
		if err := taken.Fill(s, nil); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, r := range Routes(services, nil) {
		got = append(got, fmt.Sprint(r.Name, r.NodePorts, len(r.Addresses), r.Sticky))
	}
	want := []string{"default/balanced:http[80] 1 true", "default/inner:http[] 1 false", "default/node:http[30007] 1 false"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNames checks the names of Services, headless Services and their pods with a hostname. Only pods of the same
// namespace get the short name, and a pod that does not use the DNS of a cluster gets no names.
func TestNames(t *testing.T) {
	member := pod("db-0", "10.0.0.1", func(p *v1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "db-0", "db" })
	single := web("web", at("10.96.0.1"), func(s *v1.Service) { s.Spec.ClusterIPs = []string{"10.96.0.1"} })
	services := []*v1.Service{single, web("db", headless), web("outside", ofType(v1.ServiceTypeExternalName))}
	names := Names(services, []*v1.Pod{member, pod("x", "10.0.0.2", unready)})
	want := "\n# Services, by podctl.\n" +
		"10.0.0.1\tdb.default.svc.cluster.local\tdb.default.svc\tdb.default\tdb\n" +
		"10.0.0.1\tdb-0.db.default.svc.cluster.local\tdb-0.db.default.svc\tdb-0.db.default\tdb-0.db\n" +
		"10.96.0.1\tweb.default.svc.cluster.local\tweb.default.svc\tweb.default\tweb\n"
	if got := string(Hosts(member, "node", names)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := string(Hosts(pod("p", "", func(p *v1.Pod) {
		p.Namespace = "other"
	}), "node", names)); strings.Contains(got, "\tweb\n") || !strings.Contains(got, "\tweb.default\n") {
		t.Error(got)
	}
	for policy, onNode := range map[v1.DNSPolicy]bool{v1.DNSDefault: false, v1.DNSNone: false, v1.DNSClusterFirst: true} {
		if got := Hosts(pod("p", "", func(p *v1.Pod) {
			p.Spec.DNSPolicy, p.Spec.HostNetwork = policy, onNode
		}), "node", names); got != nil {
			t.Errorf("%s: %s", policy, got)
		}
	}
	known := NewKnown(services, names)
	text, err := known.Encode()
	if again := DecodeKnown(text); err != nil || !slices.Equal(again.Names, names) ||
		again.Variables(member)["WEB_SERVICE_HOST"] != "10.96.0.1" || len(DecodeKnown([]byte("{")).Names) > 0 {
		t.Errorf("%v %v", again, err)
	}
	deaf, elsewhere := pod("p", ""), pod("p", "")
	deaf.Spec.EnableServiceLinks, elsewhere.Namespace = new(false), "other"
	if v := known.Variables(member); v["WEB_PORT_80_TCP_ADDR"] != "10.96.0.1" || v["WEB_SERVICE_PORT_HTTP"] != "80" ||
		v["DB_SERVICE_HOST"] != "" || len(known.Variables(deaf))+len(known.Variables(elsewhere)) > 0 {
		t.Errorf("variables %v", v)
	}
}

// TestServiceNamesOverrideNoOtherNames checks that the names of Services never override a name on the Internet, of the
// machine or of the pod.
func TestServiceNamesOverrideNoOtherNames(t *testing.T) {
	addr := netip.MustParseAddr("10.96.0.1")
	own := pod("web", "10.0.0.1", func(p *v1.Pod) { p.Spec.Hostname = "web-host" })
	for _, c := range []struct {
		namespace, name string
		has, hasNot     []string
	}{
		{"com", "github", []string{"github.com.svc", "github.com.svc.cluster.local"}, []string{"github.com", "github"}},
		{"dev", "web-0.go", []string{"web-0.go.dev.svc"}, []string{"web-0.go.dev"}},
		{"localdomain", "localhost", []string{"localhost.localdomain.svc"}, []string{"localhost.localdomain", "localhost"}},
		{"local", "printer", []string{"printer.local.svc"}, []string{"printer.local"}},
		{"np", "github", []string{"github.np.svc"}, []string{"github.np"}},
		{"internal", "metadata", nil, []string{"metadata.internal"}},
		{"team-a", "db", []string{"db.team-a", "db.team-a.svc"}, []string{"db"}},
		{"default", "db", []string{"db", "db.default"}, nil},
		{"default", "localhost", []string{"localhost.default"}, []string{"localhost"}},
		{"default", "ip6-allnodes", []string{"ip6-allnodes.default"}, []string{"ip6-allnodes"}},
		{"default", "web", []string{"web.default"}, []string{"web"}},
		{"default", "web-host", []string{"web-host.default"}, []string{"web-host"}},
		{"default", "node-1", []string{"node-1.default"}, []string{"node-1"}},
		{"default", "github.com", []string{"github.com.default"}, []string{"github.com"}},
		{"default", "db-0.db", []string{"db-0.db", "db-0.db.default"}, nil},
	} {
		words := strings.Fields(string(Hosts(own, "node-1.example.net", []Name{{c.namespace, c.name, addr}})))
		for _, name := range c.has {
			if !slices.Contains(words, name) {
				t.Errorf("%s/%s: %s is missing in %q", c.namespace, c.name, name, words)
			}
		}
		for _, name := range c.hasNot {
			if slices.Contains(words, name) {
				t.Errorf("%s/%s: %s is in %q", c.namespace, c.name, name, words)
			}
		}
	}
}

// TestDomainOfTheNode checks that Services do not get names in the node's own domain.
func TestDomainOfTheNode(t *testing.T) {
	hosts := string(Hosts(pod("p", ""), "node-1.rack", []Name{{"rack", "node-1", netip.MustParseAddr("10.96.0.1")}}))
	if words := strings.Fields(hosts); slices.Contains(words, "node-1.rack") || !slices.Contains(words, "node-1.rack.svc") {
		t.Error(hosts)
	}
}

// TestNamesOfAHostsFile checks that names in the file keep their addresses, whatever the names of Services are.
func TestNamesOfAHostsFile(t *testing.T) {
	p := pod("p", "")
	p.Namespace = "default"
	const file = "127.0.0.1 localhost\n192.0.2.1\tdb  DB.default # not web\n"
	names := []Name{{"default", "db", netip.MustParseAddr("10.96.0.1")}, {"default", "web", netip.MustParseAddr("10.96.0.2")}}
	want := file + hostsHead + "10.96.0.1\tdb.default.svc.cluster.local\tdb.default.svc\n" +
		"10.96.0.2\tweb.default.svc.cluster.local\tweb.default.svc\tweb.default\tweb\n"
	if got := string(WithHosts([]byte(file), Hosts(p, "node", names))); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestLinesInAHostsFile checks that the lines replace the earlier ones, and that the rest of the file is unchanged.
func TestLinesInAHostsFile(t *testing.T) {
	lines := Hosts(pod("p", ""), "node", []Name{{"default", "web", netip.MustParseAddr("10.96.0.1")}})
	for before, want := range map[string]string{
		"127.0.0.1 localhost\n":                        "127.0.0.1 localhost\n" + string(lines),
		"127.0.0.1 localhost\n" + string(lines):        "127.0.0.1 localhost\n" + string(lines),
		"127.0.0.1 localhost\n" + hostsHead + "x\ty\n": "127.0.0.1 localhost\n" + string(lines),
		"": string(lines),
	} {
		if got := string(WithHosts([]byte(before), lines)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := string(WithHosts([]byte(want), nil)); got+string(lines) != want {
			t.Errorf("without Services: %q", got)
		}
	}
}

// TestFill checks that a Service gets the same free addresses and ports each time, and keeps those that it had.
func TestFill(t *testing.T) {
	first, again := web("web", onNode(0)), web("web", onNode(0))
	var one, other Taken
	if err := errors.Join(one.Fill(first, nil), other.Fill(again, nil)); err != nil ||
		first.Spec.ClusterIP != again.Spec.ClusterIP || first.Spec.Ports[0].NodePort != again.Spec.Ports[0].NodePort {
		t.Fatalf("%+v %+v %v", first.Spec, again.Spec, err)
	}
	if port := first.Spec.Ports[0].NodePort; port < firstPort ||
		port > lastPort || !netip.MustParsePrefix(range4).Contains(Addresses(first)[0]) {
		t.Errorf("%+v", first.Spec)
	}
	thief := web("thief", at(first.Spec.ClusterIP))
	moved := web("moved", onNode(first.Spec.Ports[0].NodePort))
	for _, s := range []*v1.Service{thief, moved} {
		if refused := (*TakenError)(nil); !errors.As(one.Fill(s, nil), &refused) {
			t.Errorf("%s takes what the first has", s.Name)
		}
	}
	edited := web("web", ofType(v1.ServiceTypeLoadBalancer))
	edited.Spec.Ports[0].Name = "www"
	var third Taken
	if err := third.Fill(edited, first); err != nil ||
		edited.Spec.ClusterIP != first.Spec.ClusterIP || edited.Spec.Ports[0].NodePort != first.Spec.Ports[0].NodePort {
		t.Errorf("an edit has %+v, before %+v: %v", edited.Spec, first.Spec, err)
	}
	inner := web("web")
	if err := new(Taken).Fill(inner, first); err != nil ||
		inner.Spec.Ports[0].NodePort != 0 || inner.Spec.ClusterIP != first.Spec.ClusterIP {
		t.Errorf("without a port of the node: %+v %v", inner.Spec, err)
	}
	dual := web("dual", func(s *v1.Service) { s.Spec.IPFamilyPolicy = new(v1.IPFamilyPolicyPreferDualStack) })
	if err := one.Fill(dual, nil); err != nil || len(dual.Spec.ClusterIPs) != 2 || !Addresses(dual)[1].Is6() {
		t.Errorf("%+v %v", dual.Spec, err)
	}
}

// TestFillNamesTheOtherService checks two Services of one manifest that request the same port of the node.
func TestFillNamesTheOtherService(t *testing.T) {
	taken := Taken{}
	if err := taken.Fill(web("a", ofType(v1.ServiceTypeLoadBalancer)), nil); err != nil {
		t.Fatal(err)
	}
	if err := taken.Fill(web("b", ofType(v1.ServiceTypeLoadBalancer)), nil); err == nil ||
		!strings.HasSuffix(err.Error(), "is used by service default/a") {
		t.Errorf("%v", err)
	}
}

// TestFillRefuses checks that a Service cannot take traffic of others: addresses outside of podctl's ranges and ports
// in use are refused.
func TestFillRefuses(t *testing.T) {
	busy := Taken{Process: func(p podspec.Port) string {
		if p.Number == 22 || p.Number == 30001 {
			return "a process"
		}
		return ""
	}}
	busy.Publish([]podspec.Port{{Protocol: v1.ProtocolTCP, Number: 80}}, "pod default/front")
	lb := ofType(v1.ServiceTypeLoadBalancer)
	twice := func(s *v1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, s.Spec.Ports[0])
		s.Spec.Ports[1].Port = 81
	}
	for want, s := range map[string]*v1.Service{
		"spec.clusterIPs[0]: 8.8.8.8 is not one of":                           web("a", at("8.8.8.8")),
		"spec.clusterIPs[0]: 127.0.0.1 is not one of":                         web("b", at("127.0.0.1")),
		"spec.ports[0].nodePort: 22 is not one of":                            web("c", onNode(22)),
		"spec.ports[0]: port 30001/TCP of the node is used by a process":      web("d", onNode(30001)),
		"spec.ports[0]: port 80/TCP of the node is used by pod default/front": web("e", lb),
		"spec.ports[0]: port 22/TCP of the node is used by a process": web("f",
			lb, func(s *v1.Service) { s.Spec.Ports[0].Port = 22 }),
		"spec.ports[1]: port 30002/TCP of the node is used by service default/g itself": web("g", onNode(30002), twice),
	} {
		taken := busy
		if err := taken.Fill(s, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	mine := web("h", onNode(30001))
	again := Taken{Process: busy.Process}
	if err := again.Fill(mine, web("h", onNode(30001))); err != nil {
		t.Errorf("a port that it had before: %v", err)
	}
	if notes := again.Shadowed(mine, web("h", onNode(30001))); len(notes) != 1 || !strings.HasPrefix(notes[0], "port 30001/TCP ") {
		t.Errorf("a process has its port, too: %q", notes)
	}
	if notes := again.Shadowed(mine, web("h", onNode(30002))); len(notes) > 0 {
		t.Errorf("a port that it did not have: %q", notes)
	}
}

// TestAddressesRunOut checks that each of the 65,534 addresses is assigned once, and then there is an error.
func TestAddressesRunOut(t *testing.T) {
	taken := Taken{addresses: map[netip.Addr]string{}}
	addr := netip.MustParsePrefix(range4).Addr()
	for range hosts - 1 {
		addr = addr.Next()
		taken.addresses[addr] = "other"
	}
	last := web("last")
	if err := taken.Fill(last, nil); err != nil || Addresses(last)[0] != addr.Next() {
		t.Errorf("%v %v", last.Spec.ClusterIPs, err)
	}
	if err := taken.Fill(web("none"), nil); err == nil || !strings.Contains(err.Error(), "are taken") {
		t.Error(err)
	}
}

// TestTarget checks that a port of a Service is found by its number and its name, and leads to the pod's port.
func TestTarget(t *testing.T) {
	for port, want := range map[string]uint16{"80": 8080, "http": 8080, "81": 0, "www": 0, "": 0} {
		if _, got := Target(web("web"), port, pod("p", "")); got != want {
			t.Errorf("%q leads to %d, want %d", port, got, want)
		}
	}
}

// TestEndpointDocuments checks that ready and unready pods are listed separately, each under its own port number.
func TestEndpointDocuments(t *testing.T) {
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: v1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Ports: []v1.ServicePort{
			{Name: "http", Port: 80, Protocol: v1.ProtocolTCP, TargetPort: intstr.FromString("http")},
		},
	}}
	one := func(name, ip string, port int32, ready bool) *v1.Pod {
		p := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}},
			Spec: v1.PodSpec{Containers: []v1.Container{{
				Name:  "a",
				Ports: []v1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: v1.ProtocolTCP}},
			}}},
			Status: v1.PodStatus{Phase: v1.PodRunning, PodIPs: []v1.PodIP{{IP: ip}}},
		}
		if ready {
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		}
		return p
	}
	pods := []*v1.Pod{one("a", "10.0.0.1", 8080, true), one("b", "10.0.0.2", 8080, false), one("c", "10.0.0.3", 9090, false)}
	text := func() string {
		var all []string
		for _, subset := range Endpoints(s, pods).Subsets {
			line := ""
			for _, p := range subset.Ports {
				line += fmt.Sprint(p.Name, p.Port)
			}
			for _, a := range subset.Addresses {
				line += " +" + a.IP + "=" + a.TargetRef.Name
			}
			for _, a := range subset.NotReadyAddresses {
				line += " -" + a.IP
			}
			all = append(all, line)
		}
		return strings.Join(all, "; ")
	}
	if got := text(); got != "http8080 +10.0.0.1=a -10.0.0.2; http9090 -10.0.0.3" {
		t.Error(got)
	}
	s.Spec.PublishNotReadyAddresses = true
	if got := text(); got != "http8080 +10.0.0.1=a +10.0.0.2=b; http9090 +10.0.0.3=c" {
		t.Error(got)
	}
	s.Spec.Ports = nil
	if got := text(); got != " +10.0.0.1=a +10.0.0.2=b +10.0.0.3=c" {
		t.Error(got)
	}
}

// TestVariablesInCluster checks the variables that a pod of a cluster gets: those of its namespace if it requests links,
// and always those of default/kubernetes, unless its namespace has a Service of that name.
func TestVariablesInCluster(t *testing.T) {
	one := func(namespace, name, ip string) *v1.Service {
		return &v1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       v1.ServiceSpec{ClusterIP: ip, Ports: []v1.ServicePort{{Port: 443}}},
		}
	}
	known := InCluster([]*v1.Service{
		one("default", "kubernetes", "10.0.0.1"), one("default", "web", "10.0.0.2"), one("a", "web", "10.0.0.3"),
		one("b", "kubernetes", "10.0.0.4"), one("a", "headless", "None"),
	})
	for _, c := range []struct {
		namespace string
		links     bool
		want      string
	}{
		{"default", true, "10.0.0.1 10.0.0.2 "},
		{"default", false, "10.0.0.1  "},
		{"a", true, "10.0.0.1 10.0.0.3 "},
		{"a", false, "10.0.0.1  "},
		{"b", true, "10.0.0.4  "},
		{"none", true, "10.0.0.1  "},
	} {
		p := pod("p", "")
		p.Namespace, p.Spec.EnableServiceLinks = c.namespace, &c.links
		v := known.Variables(p)
		got := v["KUBERNETES_SERVICE_HOST"] + " " + v["WEB_SERVICE_HOST"] + " " + v["HEADLESS_SERVICE_HOST"]
		if got != c.want {
			t.Errorf("%s, links %t: %q, want %q", c.namespace, c.links, got, c.want)
		}
	}
	other := InCluster([]*v1.Service{one("default", "kubernetes", "10.0.0.1"), one("b", "kubernetes", "10.0.0.4")})
	delete(other.Links["b"], "KUBERNETES_PORT_443_TCP")
	inB := pod("p", "")
	inB.Namespace = "b"
	if v := other.Variables(inB); v["KUBERNETES_PORT_443_TCP"] != "" {
		t.Errorf("variables of two Services with one name are mixed: %v", v)
	}
	if len(known.Variables(pod("p", ""))) == 0 || len(known.Always) == 0 || known.Always["WEB_SERVICE_HOST"] != "" {
		t.Errorf("%v", known.Always)
	}
}
