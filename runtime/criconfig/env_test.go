package criconfig

import (
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
)

// TestEveryFieldThatIsValidHasAValue: what the loader accepts as a field of the pod can be
// supplied, the name that old clients have for the node included.
func TestEveryFieldThatIsValidHasAValue(t *testing.T) {
	for path, want := range map[string]string{
		"metadata.name": "web", "metadata.namespace": "default", "metadata.uid": "u-1",
		"metadata.labels['tier']": "front", "metadata.annotations['a/b']": "c",
		"spec.nodeName": "here", "spec.host": "here", "spec.serviceAccountName": "sa",
		"status.hostIP": "192.0.2.1", "status.hostIPs": "192.0.2.1,2001:db8::1",
		"status.podIP": "10.0.0.2", "status.podIPs": "10.0.0.2,fd00::2",
	} {
		t.Run(path, func(t *testing.T) {
			m, err := podspec.Loader{Stdin: strings.NewReader(`apiVersion: v1
kind: Pod
metadata: {name: web, uid: u-1, labels: {tier: front}, annotations: {a/b: c}}
spec:
  serviceAccountName: sa
  containers:
  - name: app
    image: i:1
    env: [{name: F, valueFrom: {fieldRef: {fieldPath: "` + path + `"}}}]
`)}.Load(t.Context(), "-")
			if err != nil || m.Err() != nil {
				t.Fatal(err, m.Err())
			}
			in := &ContainerInput{
				Desired: m.Pods[0], Container: podspec.RegularContainers(m.Pods[0].Pod)[0], PodIPs: []string{"fd00::2", "10.0.0.2"},
				Node: Node{Name: "here", IPs: []string{"192.0.2.1", "2001:db8::1"}},
			}
			env, err := environment(in)
			if err != nil || env.values["F"] != want {
				t.Errorf("%v %v, want %q", env, err, want)
			}
		})
	}
}
