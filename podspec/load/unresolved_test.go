package load

import (
	"strings"
	"testing"
)

// TestUnusablePullSecrets checks that unusable pull secrets are noted at their reference, and accepted.
func TestUnusablePullSecrets(t *testing.T) {
	const secrets = `  imagePullSecrets: [{name: fine}, {name: old}, {name: opaque}, {name: empty}]
---
apiVersion: v1
kind: Secret
metadata: {name: fine}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: '{"auths":{}}'}
---
apiVersion: v1
kind: Secret
metadata: {name: old}
type: kubernetes.io/dockercfg
stringData: {.dockercfg: '{}'}
---
apiVersion: v1
kind: Secret
metadata: {name: opaque}
stringData: {.dockerconfigjson: '{"auths":{}}'}
---
apiVersion: v1
kind: Secret
metadata: {name: empty}
stringData: {.dockercfg: '{}'}
`
	m := parsed(t, minimal+secrets)
	if len(m.Problems) > 0 {
		t.Errorf("problems %v", m.Problems)
	}
	var got []string
	for _, n := range m.NoEffect {
		got = append(got, n.String())
	}
	want := []string{
		"-:9:49: spec.imagePullSecrets[2]: images are pulled without Secret default/opaque: its type is Opaque, " +
			"not kubernetes.io/dockerconfigjson",
		"-:9:65: spec.imagePullSecrets[3]: images are pulled without Secret default/empty: its type is Opaque, " +
			"not kubernetes.io/dockerconfigjson",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("notes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
