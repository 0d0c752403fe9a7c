package load

import (
	"slices"
	"strings"
	"testing"
)

// TestEmptyUnsupportedFieldsAreAccepted checks that an empty list or map in an unsupported field is accepted, but an
// empty source of a volume is a volume.
func TestEmptyUnsupportedFieldsAreAccepted(t *testing.T) {
	for text, refused := range map[string]string{
		"    volumeDevices: []\n":                                                "",
		"    volumeDevices: null\n":                                              "",
		"    volumeDevices:\n":                                                   "",
		"    securityContext: {windowsOptions: {}}\n":                            "",
		"    resources: {claims: []}\n":                                          "",
		"  resourceClaims: []\n  tolerations: []\n  nodeSelector: {}\n":          "",
		"  volumes: []\n  initContainers: []\n":                                  "",
		"  affinity: {nodeAffinity: {}}\nstatus: {}\n":                           "",
		"    volumeDevices: [{name: a, devicePath: /dev/a}]\n":                   "volumeDevices",
		"  volumes: [{name: a, nfs: {}}]\n":                                      "volumes[0].nfs: This kind",
		"  volumes: [{name: a, cephfs: {monitors: []}}]\n":                       "volumes[0].cephfs: This kind",
		"  volumes: [{name: a, projected: {sources: [{podCertificate: {}}]}}]\n": "podCertificate: Only an API server issues it",
	} {
		m := parsed(t, minimal+text)
		if err := m.Err(); (err != nil) != (refused != "") || (err != nil && !strings.Contains(err.Error(), refused)) {
			t.Errorf("%s: %v, want %q", text, err, refused)
		}
		if len(m.NoEffect) > 0 {
			t.Errorf("unexpected note for %s: %v", text, m.NoEffect)
		}
	}
}

// TestDiskLimitsAreNotNoted checks that limits of disk usage have an effect.
func TestDiskLimitsAreNotNoted(t *testing.T) {
	for _, text := range []string{
		"    resources: {limits: {cpu: 1, ephemeral-storage: 1Gi}}\n",
		"    resources: {requests: {cpu: 1, ephemeral-storage: 1Gi}}\n",
		"  volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}]\n",
		"  volumes: [{name: a, emptyDir: {sizeLimit: 1Gi, medium: Memory}}]\n",
	} {
		if m := parsed(t, minimal+text); m.Err() != nil || len(m.NoEffect) > 0 {
			t.Errorf("%s: %v, notes %v", text, m.Err(), m.NoEffect)
		}
	}
}

// TestPortsOfInitContainersAreNoted checks the notes for ports that neither podctl nor a kubelet publishes on the node.
func TestPortsOfInitContainersAreNoted(t *testing.T) {
	const ports = "ports: [{containerPort: 80, hostPort: 80, hostIP: 127.0.0.1}, {containerPort: 81}]"
	const ofInit = "spec.initContainers[0].ports[0].hostIP spec.initContainers[0].ports[0].hostPort"
	for text, want := range map[string]string{
		"    " + ports + "\n": "",
		"  initContainers: [{name: i, image: i, " + ports + "}]\n":                                                   ofInit,
		"  initContainers: [{name: i, image: i, restartPolicy: Always, " + ports + "}]\n":                            ofInit,
		"  initContainers: [{name: i, image: i, ports: [{containerPort: 80}]}]\n":                                    "",
		"  hostNetwork: true\n  initContainers: [{name: i, image: i, ports: [{containerPort: 80, hostPort: 80}]}]\n": "",
	} {
		m := accepted(t, minimal+text)
		var noted []string
		for _, n := range m.NoEffect {
			if noted = append(noted, n.Path); !strings.Contains(n.Detail, "ports of init containers and sidecars are not published") {
				t.Errorf("%s: %s", text, n)
			}
		}
		if slices.Sort(noted); strings.Join(noted, " ") != want {
			t.Errorf("%s: notes %v, want %s", text, noted, want)
		}
	}
}
