package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// shape describes the expected result for the output of a tool.
type shape struct {
	// notes are fields and objects without effect, applied are the objects that apply stores.
	notes, applied []string
}

// shapes are the files of testdata/shapes. Each has the form of the output of helm template, kustomize build, kompose
// convert or podman generate kube.
func shapes() map[string]shape {
	return map[string]shape{
		"helm": {
			notes: []string{
				"skipped: ServiceAccount/r1-shop ", "skipped: PodDisruptionBudget/r1-shop ",
				"skipped: NetworkPolicy/r1-shop ",
				"skipped: ClusterRole/r1-shop ", "skipped: RoleBinding/r1-shop ",
				"skipped: HorizontalPodAutoscaler/r1-shop-web ",
				"skipped: Ingress/r1-shop ", "skipped: ServiceMonitor/r1-shop (it is for an operator",
				"skipped: Pod/r1-shop-test-connection (it is a hook, ",
				"metadata.annotations[helm.sh/hook]: A hook of helm is applied with everything else",
			},
			applied: []string{
				"deployment default/r1-shop-web created\n", "statefulset default/r1-shop-db created\n",
				"job default/r1-shop-migrate created\n",
			},
		},
		"kustomize": {
			notes:   []string{"skipped: Namespace/shop "},
			applied: []string{"daemonset shop/my-log created\n", "cronjob shop/my-backup created\n"},
		},
		"kompose": {
			notes:   []string{"skipped: NetworkPolicy/default ", "A claim is a directory that podctl creates"},
			applied: []string{"deployment default/web created\n", "deployment default/web: 1 of 1 pods"},
		},
		"podman": {
			notes: []string{
				"A claim is a directory that podctl creates",
				":13:3: metadata.annotations: Only podman reads annotations of podman",
				": spec.template.metadata.annotations: Only podman reads",
			},
			applied: []string{"deployment default/api created\n", "pod default/web applied"},
		},
	}
}

// TestShapes checks that output of other tools is validated, planned, applied, then unchanged, and deleted. Each field
// without effect has a note, and no value of a Secret is printed.
func TestShapes(t *testing.T) {
	for name, s := range shapes() {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			file := "testdata/shapes/" + name + ".yaml"
			l.Must("validate", "-f", file)
			if code, stdout, stderr := l.Call("plan", "--exit-code", "-f", file); code != exit.Pending {
				t.Errorf("plan: %d\n%s%s", code, stdout, stderr)
			}
			stdout, stderr := l.Must("apply", "--set", "site", "-f", file)
			for _, want := range s.notes {
				if !strings.Contains(stderr, want) {
					t.Errorf("want the note %q:\n%s", want, stderr)
				}
			}
			for _, want := range s.applied {
				if !strings.Contains(stdout, want) {
					t.Errorf("want %q:\n%s", want, stdout)
				}
			}
			if strings.Contains(stdout+stderr, "hunter2") || strings.Contains(stdout+stderr, "aHVudGVyMi1zZWNyZXQ=") {
				t.Errorf("prints a secret: %s%s", stdout, stderr)
			}
			if stdout, _ := l.Must("apply", "-f", file); strings.Contains(stdout, " created\n") ||
				strings.Contains(stdout, " configured\n") {
				t.Errorf("applied again: %s", stdout)
			}
			l.Must("delete", "--volumes", "-f", file)
			if left := everything(l); left != "" {
				t.Errorf("left: %s", left)
			}
		})
	}
}
