package expand_test

import (
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/expand"
	"github.com/podctl/podctl/podspec/podspectest"
)

func TestResolve(t *testing.T) {
	d := podspectest.Desired(t,
		strings.Replace(podspectest.WithEnv, "    env:\n",
			"    envFrom: [{configMapRef: {name: settings}, prefix: P_}, {secretRef: {name: absent, "+
				"optional: true}}]\n    env:\n", 1))
	env, missing := expand.Resolve(d, podspec.Containers(d.Pod)[0])
	var got []string
	for _, e := range env {
		got = append(got, e.Name+"="+e.Value)
	}
	if want := "P_level=3 P_mode=fast A=plain MODE=fast PASSWORD=hunter2"; strings.Join(got, " ") != want || len(missing) > 0 {
		t.Errorf("%v, want %s; missing %v", got, want, missing)
	}
}
