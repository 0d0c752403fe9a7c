package load

import (
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
)

// loadServices loads a manifest like commands that accept workloads.
func loadServices(t *testing.T, text string) *Manifest {
	t.Helper()
	m, err := Loader{Reader: input.Reader{Stdin: strings.NewReader(text)}, Workloads: true}.Load(t.Context(), "-")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestService checks that a Service gets the API server's defaults, and that every field without effect is noted.
func TestService(t *testing.T) {
	m := loadServices(t, `apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  externalTrafficPolicy: Local
  type: NodePort
  ports: [{port: 80}]
`)
	if m.Err() != nil || len(m.Objects) != 1 || len(m.NoEffect) != 1 || m.NoEffect[0].Path != "spec.externalTrafficPolicy" {
		t.Fatalf("%+v %v", m.NoEffect, m.Err())
	}
	if s := m.Objects[0].Service; s.Namespace != "default" || s.Spec.Ports[0].Protocol != "TCP" || s.Spec.Ports[0].TargetPort.IntVal != 80 {
		t.Errorf("%+v", s)
	}
}

// TestHealthCheckNodePortIsAssigned checks healthCheckNodePort with externalTrafficPolicy: Local, which charts of
// ingress controllers use. The API server assigns it if it is missing; a given one must be valid.
func TestHealthCheckNodePortIsAssigned(t *testing.T) {
	const local = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n" +
		"spec: {selector: {app: web}, type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]"
	m := loadServices(t, local+"}\n")
	if m.Err() != nil || m.Objects[0].Service.Spec.HealthCheckNodePort != 0 {
		t.Errorf("%+v %v", m.Objects, m.Err())
	}
	if err := loadServices(t, local+", healthCheckNodePort: 70000}\n").Err(); err == nil ||
		!strings.Contains(err.Error(), "spec.healthCheckNodePort") {
		t.Errorf("%v", err)
	}
}

// TestServicesThatAreRefused checks that all problems are reported with their lines, and that Services are refused that
// would allow more clients than they list.
func TestServicesThatAreRefused(t *testing.T) {
	for text, want := range map[string][]string{
		"spec: {ports: [{port: 0}, {port: 70000, name: UP}]}": {
			"4 problems",
			"-:4:16: spec.ports[0].name: is required",
			"-:4:28: spec.ports[1].port: 70000 is not valid",
			"-:4:41: ",
		},
		"spec: {ports: [{port: 80}], loadBalancerSourceRanges: [10.0.0.0/8]}": {
			"-:4:29: spec.loadBalancerSourceRanges: podctl does not filter clients",
			"-:4:29: spec.loadBalancerSourceRanges: is not allowed here",
		},
		"spec: {ports: [{port: 80}], externalIPs: [8.8.8.8]}": {
			"-:4:29: spec.externalIPs: podctl accepts traffic only on",
		},
		"spec: {ports: [{port: 80}], selektor: {a: b}}": {
			"-:4:29: spec.selektor: unknown field; did you mean selector?",
		},
		"spec: {ports: [{port: 80, nodePort: 30000}]}":                             {"-:4:27: spec.ports[0].nodePort: is not allowed here"},
		"spec: {type: ExternalName, ports: [{port: 80}]}":                          {"is required"},
		"spec: {clusterIP: None, type: NodePort, ports: [{port: 80}]}":             {"may not be set to 'None'"},
		"spec: {ports: [{port: 80}], clusterIP: ../../x, sessionAffinity: Sticky}": {"-:4:29: ", "-:4:49: "},
	} {
		m := loadServices(t, "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"+text+"\n")
		err := m.Err()
		if slices.ContainsFunc(m.NoEffect, func(n document.Note) bool { return n.Detail == "" }) {
			t.Errorf("%s: %v", text, m.NoEffect)
		}
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %s", text, err, part)
			}
		}
	}
}

// TestServicesWithoutEffect checks that Services without endpoints are noted.
func TestServicesWithoutEffect(t *testing.T) {
	for spec, path := range map[string]string{
		"{type: ExternalName, externalName: db.example.com}": "spec.type",
		"{ports: [{port: 80}]}":                              "spec.selector",
	} {
		m := loadServices(t, "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: "+spec+"\n")
		found := false
		for _, n := range m.NoEffect {
			found = found || n.Path == path
		}
		if m.Err() != nil || !found {
			t.Errorf("%s: %+v %v", spec, m.NoEffect, m.Err())
		}
	}
}

// TestServicesOnlyWithWorkloads checks that commands that accept only pods refuse Services.
func TestServicesOnlyWithWorkloads(t *testing.T) {
	m, err := Load(t.Context(), input.Reader{Stdin: strings.NewReader("{apiVersion: v1, kind: Service, metadata: {name: web}}")}, "-")
	if err != nil || m.Err() == nil || !strings.Contains(m.Err().Error(), "podctl does not run v1 Service") {
		t.Errorf("%v %v", err, m.Err())
	}
}
