package commands

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// rotated is a pod whose Secret has a JSON value. SECRET is the placeholder for it.
const rotated = `apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {config: '{"db":{"host":"db.example.com","password":"SECRET"}}'}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: a
    image: i:1
    envFrom: [{secretRef: {name: s}}]
`

// TestNoOutputContainsASecret checks that no output has a Secret value, even if a program, the runtime or a probe
// repeats it quoted, encoded or cut off. This includes values from before a rotation.
func TestNoOutputContainsASecret(t *testing.T) {
	const before, after = "9fK2&xQ7\"vLm4Zp8Wt1", "swordfish-5Hn3Jd6Rb0Yc"
	l := newLab(t)
	manifest := l.Path("web.yaml")
	apply := func(secret string) {
		quoted, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(rotated, `"SECRET"`, string(quoted), 1)
		if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l.Must("apply", manifest)
	}
	l.Behave("a", runtimetest.Behaviour{After: time.Second, ExitCode: 1})
	apply(before)
	// The container was started with the old value, and nothing restarts it.
	apply(after)
	l.Clock.Advance(10 * time.Second)
	files, err := filepath.Glob(l.Path("state/pods/*/containers/a/*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	words := fmt.Sprintf("tail %s of it; db.example.com said %q and {\"p\":%q} %s %s",
		after[8:], before, fmt.Sprintf("%q", before),
		base64.StdEncoding.EncodeToString([]byte("web:"+after)), before[:9])
	for _, file := range files {
		if err := os.WriteFile(file, []byte(words), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repeats := func(args ...string) string {
		_, stdout, stderr := l.Call(args...)
		for _, secret := range []string{before, after} {
			for i := 0; i+6 <= len(secret); i++ {
				if strings.Contains(stdout+stderr, secret[i:i+6]) {
					t.Errorf("%v prints %q:\n%s%s", args, secret[i:i+6], stdout, stderr)
					break
				}
			}
		}
		return stdout + stderr
	}
	bundle := l.Path("bundle.tar.gz")
	for _, args := range [][]string{
		{"get", "web", "-o", "json"},
		{"get", "-o", "yaml"},
		{"get", "-o", "jsonpath={.items[0].status}"},
		{"describe", "web"},
		{"snapshot", "web"},
		{"plan"},
		{"plan", manifest, "-o", "json"},
		{"events", "-o", "json"},
		{"apply", manifest, "-o", "json"},
		{"-v", "--log-format", "json", "get"},
		{"wait", "--for", "ready", "web", "--timeout", "1s"},
		{"probe", "web", "-o", "json"},
		{"doctor", "-o", "json", "--bundle", bundle},
		{"render", manifest, "--cri"},
	} {
		got := repeats(args...)
		if (args[0] == "describe" || args[0] == "snapshot") && !strings.Contains(got, "db.example.com said ") {
			t.Errorf("%v has no message:\n%s", args, got)
		}
	}
	failing := status.Errorf(codes.Unknown, "failed to create: exec: %q: env %+q", before, []string{"P=" + after})
	for _, method := range []string{
		"PodSandboxStatus", "ContainerStatus", "ListContainerStats", "ListPodSandbox", "ImageStatus", "ExecSync",
		"Exec", "Status", "Version",
	} {
		l.Fail(runtimetest.Fault{Method: method, Times: 6, Err: failing})
		for _, args := range [][]string{
			{"get"}, {"plan"}, {"top", "--once"}, {"exec", "web", "--", "x"}, {"doctor"}, {"version"},
		} {
			repeats(args...)
		}
	}
	text := contentsOf(t, l.Path("state/pods/*/checkpoint.json"))
	if !strings.Contains(text, "earlierSecrets") {
		t.Error("the checkpoint has no earlier Secrets")
	}
	for _, args := range [][]string{{"snapshot", "web"}, {"plan", "-o", "json"}, {"get", "-o", "json"}} {
		if _, stdout, _ := l.Call(args...); strings.Contains(stdout, "earlierSecrets") {
			t.Errorf("%v has the earlier Secrets", args)
		}
	}
	if packed := fmt.Sprint(commandstest.Unpack(t, bundle)); strings.Contains(packed, "earlierSecrets") ||
		strings.Contains(packed, after[:8]) || !strings.Contains(packed, "(secret)") {
		t.Errorf("the bundle:\n%s", packed)
	}
}

// TestFailedStartsContainNoSecret checks that apply does not print an environment that the runtime quotes in the error
// of a start, in any output format.
func TestFailedStartsContainNoSecret(t *testing.T) {
	const secret = "pa ss\"w&rd-9fK2xQ7vLm4"
	quoted := fmt.Sprintf("%q", secret)
	l := newLab(t)
	manifest := l.Path("web.yaml")
	if err := os.WriteFile(manifest, []byte(strings.Replace(rotated, `"SECRET"`, quoted, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"apply", manifest}, {"apply", manifest, "-o", "json"}, {"apply", "--wait", manifest}, {"run", manifest},
	} {
		l.Fail(runtimetest.Fault{
			Method: "CreateContainer", Times: 1,
			Err: status.Errorf(codes.Unknown, "runc: %q: bad env", []string{"CONFIG=" + secret}),
		})
		l.InTime("--timeout", args, func(code int, text string) bool {
			return code != exit.OK && !strings.Contains(text, "9fK2") && strings.Contains(text, "bad env")
		})
	}
}

// TestMessagesAreWithheldWithoutCheckpoint checks that podctl withholds messages of pods whose checkpoint is missing or
// unreadable, because their Secrets are unknown. A manifest has the Secrets.
func TestMessagesAreWithheldWithoutCheckpoint(t *testing.T) {
	const secret = "swordfish-5Hn3Jd6Rb0Yc"
	for name, lose := range map[string]func(checkpoint string) error{
		"damaged": func(checkpoint string) error { return os.WriteFile(checkpoint, []byte(`{"x`), 0o600) },
		"gone":    os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			manifest := l.Path("web.yaml")
			if err := os.WriteFile(manifest, []byte(strings.Replace(rotated, "SECRET", secret, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			l.Behave("a", runtimetest.Behaviour{After: time.Nanosecond, ExitCode: 1})
			l.Must("apply", manifest)
			for _, pattern := range []string{"state/pods/*/containers/a/*", "state/pods/*/checkpoint.json"} {
				files, err := filepath.Glob(l.Path(pattern))
				if err != nil || len(files) != 1 {
					t.Fatal(pattern, files, err)
				}
				switch filepath.Base(pattern) {
				case "*":
					err = os.WriteFile(files[0], []byte("words: "+secret), 0o600)
				default:
					err = lose(files[0])
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range []struct {
				wantMessage string
				args        []string
			}{
				{"(message withheld: ", []string{"get", "-A", "-o", "json"}},
				{"", []string{"events", "-A", "-o", "json"}},
				{"", []string{"describe", "web"}},
				{"", []string{"snapshot", "web"}},
				{"", []string{"doctor", "-o", "json", "--bundle", l.Path("bundle.tar.gz")}},
				{"words: (secret)", []string{"get", manifest, "-o", "json"}},
				{"", []string{"plan", manifest, "-o", "json"}},
			} {
				_, stdout, stderr := l.Call(c.args...)
				if strings.Contains(stdout+stderr, secret[:9]) || !strings.Contains(stdout, c.wantMessage) {
					t.Errorf("%v: want %q\n%s%s", c.args, c.wantMessage, stdout, stderr)
				}
			}
			packed := fmt.Sprint(commandstest.Unpack(t, l.Path("bundle.tar.gz")))
			if strings.Contains(packed, secret[:9]) {
				t.Errorf("the bundle:\n%s", packed)
			}
		})
	}
}
