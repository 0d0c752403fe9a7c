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

// TestUnenforcedDiskLimitsAreNoted checks the notes for limits of disk usage, for which a kubelet evicts pods.
func TestUnenforcedDiskLimitsAreNoted(t *testing.T) {
	const measures = "podctl does not measure how much a pod writes to disk."
	for text, want := range map[string]string{
		"    resources: {limits: {cpu: 1, ephemeral-storage: 1Gi}}\n":          "spec.containers[0].resources.limits.ephemeral-storage",
		"    resources: {requests: {cpu: 1, ephemeral-storage: 1Gi}}\n":        "spec.containers[0].resources.requests.ephemeral-storage",
		"  volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}]\n":                 "spec.volumes[0].emptyDir.sizeLimit",
		"  volumes: [{name: a, emptyDir: {sizeLimit: 1Gi, medium: Memory}}]\n": "",
		"    resources: {limits: {cpu: 1, memory: 1Gi}}\n":                     "",
	} {
		m := parsed(t, minimal+text)
		var noted []string
		for _, n := range m.NoEffect {
			if strings.HasSuffix(n.Detail, measures) {
				noted = append(noted, n.Path)
			}
		}
		if m.Err() != nil || strings.Join(noted, " ") != want {
			t.Errorf("%s: %v, notes %v, want %s", text, m.Err(), noted, want)
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
