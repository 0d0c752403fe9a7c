package inspect_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

const kept = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {tier: a}}
data: {"app.ini": "first\nsecond\n", mode: fast}
binaryData: {logo: aGVsbG8=}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: hunter2-and-more}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: headless}
spec: {clusterIP: None, selector: {app: none}}
---
`

// stocked returns a lab with a Service, whose pods are a ready and a not ready one, and objects of every other kind.
func stocked(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	path := l.Path("shop.yaml")
	slow := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: slow, labels: {app: web}}\n" +
		"spec: {containers: [{name: a, image: 'i:1', readinessProbe: {exec: {command: [x]}, " +
		"initialDelaySeconds: 3600}}]}\n"
	if err := os.WriteFile(path, []byte(kept+shop+slow), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Call("apply", path)
	return l
}

// TestDescribeObjects: describe takes KIND/NAME, KIND NAME and KIND. It never prints a value of a Secret. A missing
// object does not hide others.
func TestDescribeObjects(t *testing.T) {
	l := stocked(t)
	for args, wants := range map[string][]string{
		"cm/settings": {
			"Kind:               ConfigMap\n", "tier=a", "  app.ini:\n    first\n    second\n",
			"  mode:\n    fast\n", "  logo:             5 bytes\n", "!Secret",
		},
		"configmap settings": {"  mode:\n    fast\n"},
		"secret/login":       {"Type:               Opaque\n", "  password:         16 bytes\n", "!hunter2"},
		"secrets":            {"  password:         16 bytes\n", "!hunter2", "!ConfigMap"},
		"pvc disk": {
			"Capacity:           2Gi\n", "Access Modes:       ReadWriteOnce\n", "Status:             Pending\n",
		},
		"svc/web": {
			"Type:               ClusterIP\n", "Selector:           app=web\n", "  80/TCP:\n",
			"    Target Port:    80\n", "    Endpoints:      10.", "    Not Ready:      10.",
			"Pods:               slow, web-0\n", "!UID:",
		},
		"svc headless": {"IPs:                None\n", "Endpoints:          <none>\n", "Not Ready:          <none>\n"},
		"deploy web":   {"Kind:               Deployment\n", "\n\nName:               web-0\n", "!slow"},
		"deploy/web cm/settings slow": {
			"Kind:               Deployment\n", "  mode:\n    fast\n", "Name:               web-0\n",
			"Name:               slow\n",
		},
		"cm,secrets":   {"Name:               settings\n", "Name:               login\n"},
		"cm -l tier=a": {"Name:               settings\n"},
		"cm -l tier=b": {"!settings"},
		"pods":         {"Name:               web-0\n", "Name:               slow\n"},
	} {
		out, _ := l.Must(append([]string{"describe"}, strings.Fields(args)...)...)
		for _, want := range wants {
			if not, unwanted := strings.CutPrefix(want, "!"); strings.Contains(out, not) == unwanted {
				t.Errorf("describe %s: %q in\n%s", args, want, out)
			}
		}
	}
	for args, want := range map[string]string{
		"cm/absent cm/settings": "no configmap default/absent is stored here",
		"svc/web deploy/absent": "no deployment default/absent is stored here",
		"cm/settings -o json":   "-o and --timeline are for pods and workloads",
		"cm/settings -l a=b":    "cannot be used with names",
	} {
		if code, _, stderr := l.Call(append([]string{"describe"}, strings.Fields(args)...)...); code != exit.Error ||
			!strings.Contains(stderr, want) {
			t.Errorf("describe %s: %d %s", args, code, stderr)
		}
	}
}

// TestGetEndpoints: tables and documents list ready pods and not ready pods separately.
func TestGetEndpoints(t *testing.T) {
	l := stocked(t)
	for args, want := range map[string]string{
		"endpoints": `NAME +ENDPOINTS +NOT READY +AGE\nheadless +<none> +<none> +\S+\n` +
			`web +10\.\S+:80 +10\.\S+:80 +\S+\n`,
		"ep web --no-headers":          `^web   10\.\S+:80   10\.\S+:80   \S+\n`,
		"endpoints/web -o json":        `(?s)"kind": "Endpoints".*"addresses".*"web-0".*"notReadyAddresses".*"slow"`,
		"endpoints -o name":            `^endpoints/headless\nendpoints/web\n$`,
		"endpoints -l app=web -o name": `^endpoints/web\n$`,
		"ep web -o jsonpath={.subsets[*].notReadyAddresses[*].targetRef.name}": `^slow`,
	} {
		out, _ := l.Must(append([]string{"get"}, strings.Fields(args)...)...)
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("get %s:\n%s", args, out)
		}
	}
}
