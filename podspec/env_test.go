package podspec

import (
	"strings"
	"testing"
)

func TestResolveEnv(t *testing.T) {
	d := desired(t, strings.Replace(withEnv, "    env:\n", "    envFrom: [{configMapRef: {name: settings}, prefix: P_}, {secretRef: {name: absent, optional: true}}]\n    env:\n", 1))
	env, missing := ResolveEnv(d, &d.Pod.Spec.Containers[0])
	var got []string
	for _, e := range env {
		got = append(got, e.Name+"="+e.Value)
	}
	if want := "P_level=3 P_mode=fast A=plain MODE=fast PASSWORD=hunter2"; strings.Join(got, " ") != want || len(missing) > 0 {
		t.Errorf("%v, want %s; missing %v", got, want, missing)
	}
}
