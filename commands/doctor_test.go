package commands

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/doctor"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

func TestDoctorText(t *testing.T) {
	doc := &doctorDocument{Checks: []doctor.Check{
		{Name: "endpoint", Result: doctor.OK, Found: "here"},
		{Name: "bridge", Result: doctor.Warning, Found: "no\x1b[31m bridge", Advice: "modprobe bridge"},
		{Name: "capabilities", Result: doctor.Failed, Found: "none", Advice: "run as root"},
	}}
	want := `✓ endpoint      here
! bridge        no\x1b[31m bridge
                → modprobe bridge
✗ capabilities  none
                → run as root

Pods cannot run on this machine: 1 problem, 1 warning.
`
	if diff := cmp.Diff(want, doctorText(terminal.Colors{}, doc)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	doc.CanRunPods, doc.Checks = true, doc.Checks[:1]
	if text := doctorText(terminal.Colors{}, doc); !strings.HasSuffix(text, "\nPods can run on this machine.\n") {
		t.Errorf("all in order:\n%s", text)
	}
}

// TestDoctorWithoutARuntime checks that doctor runs all checks that need no runtime, and writes the bundle.
func TestDoctorWithoutARuntime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	code, stdout, stderr := call(t, "", "doctor", "-r", "/absent.sock", "--bundle", file)
	if code != exit.Error || !strings.Contains(stdout, "✗ endpoint") ||
		!strings.Contains(stdout, "--runtime-endpoint") ||
		!strings.Contains(stdout, "cgroups") || !strings.Contains(stdout, "Pods cannot run") ||
		!strings.Contains(stderr, "bundle.tar.gz written") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the bundle: %v %v", info, err)
	}
	files := commandstest.Unpack(t, file)
	if len(files) != 3 || files["podctl-bundle/events.json"] == "" ||
		!strings.Contains(files["podctl-bundle/doctor.json"], `"kind": "Doctor"`) ||
		files["podctl-bundle/version.json"] == "" {
		t.Errorf("the bundle has %v", files)
	}
}

func TestScrub(t *testing.T) {
	secrets := map[string][]byte{
		"word":   []byte("hunter2"),
		"longer": []byte("hunter2-and-more"),
		"quoted": []byte(`pass"word` + "\n"),
		"bool":   []byte("true"),
		"file":   []byte("-----BEGIN-----\nMIIEowIBAAKC\n-----END-----\n"),
		"short":  []byte("a"),
	}
	s := session.NewRedactor([]state.AppliedPod{{Desired: &podspec.Desired{Objects: podspec.Objects{
		Secrets: map[string]*v1.Secret{"s": {Data: secrets, StringData: map[string]string{"x": "stringly"}}},
	}}}})
	document := map[string]any{
		"plain":  "it is hunter2!",
		"longer": "hunter2-and-more",
		"base64": base64.StdEncoding.EncodeToString([]byte("hunter2")),
		"nested": `{"password":"pass\"word\n"}`, "line": "read MIIEowIBAAKC there", "stringly": "stringly",
		"true": true, "number": 12, "short": "a bad day", "quotes": `say "hunter2"`,
	}
	text, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"plain": "it is (secret)!", "longer": "(secret)", "base64": "(secret)",
		"nested": `{"password":"(secret)"}`, "line": "read (secret) there", "stringly": "(secret)",
		"true": true, "number": 12.0, "short": "a bad day", "quotes": `say "(secret)"`,
	}
	var got map[string]any
	if err := json.Unmarshal(redactJSON(s, text), &got); err != nil {
		t.Fatalf("%v\n%s", err, redactJSON(s, text))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := s.Text("failed: hunter2"); got != "failed: (secret)" {
		t.Errorf("a text: %q", got)
	}
}

// TestCommonWordsAsSecrets checks that documents stay readable if the values of a Secret are common words. The words
// are hidden only in text from other programs.
func TestCommonWordsAsSecrets(t *testing.T) {
	desired := &podspec.Desired{Pod: &v1.Pod{}, Objects: podspec.Objects{Secrets: map[string]*v1.Secret{"s": {Data: map[string][]byte{
		"a": []byte("2026"),
		"b": []byte("default"),
		"c": []byte("podctl"),
		"d": []byte("v1alpha1"),
		"e": []byte("Error"),
		"f": []byte("Snapshot"),
	}}}}}
	desired.Pod.Namespace, desired.Pod.Name = "default", "web"
	r := session.NewRedactor([]state.AppliedPod{{Desired: desired}})
	own := `{"apiVersion":"podctl.dev/v1alpha1","kind":"Snapshot","takenAt":"2026-11-22T01:02:03.5Z",` +
		`"pod":{"namespace":"default","name":"podctl","uid":"2026-1"},` +
		`"status":{"state":"Error","reason":"Error","id":"2026","created_at":"1792026000000000000",` +
		`"linux":{"cpu_quota":"-2026"}},"containers":[{"name":"default"}]}`
	if got := string(redactJSON(r, []byte(own))); got != own {
		t.Errorf("%s\n  is %s", own, got)
	}
	for text, want := range map[string]string{
		`{"message":"Error of 2026","annotations":{"name":"default"}}`: `{"message":"(secret) of (secret)",` +
			`"annotations":{"name":"(secret)"}}`,
		`{"reason":"an Error","list":[{"name":"a"},"podctl"]}`: `{"reason":"an (secret)","list":[{"name":"a"},"(secret)"]}`,
		`{"a" : {"name":"X"}, "name" : "Error"}`:               `{"a" : {"name":"X"}, "name" : "(secret)"}`,
		`{"created_at":"in 2026","n":"12026"}`:                 `{"created_at":"in (secret)","n":"1(secret)"}`,
		`{"labels":{"created_at":"2026"}}`:                     `{"labels":{"created_at":"(secret)"}}`,
	} {
		if got := string(redactJSON(r, []byte(text))); got != want {
			t.Errorf("%s\n  is %s\nwant %s", text, got, want)
		}
	}
	got := r.Text("pod default/web: Error in default/webs of default")
	if got != "pod default/web: (secret) in (secret)/webs of (secret)" {
		t.Error(got)
	}
}

// TestDoctorWithCommonWordsAsSecrets checks that a Secret with common words does not change the output of doctor.
func TestDoctorWithCommonWordsAsSecrets(t *testing.T) {
	l := newLab(t)
	manifest := l.Path("web.yaml")
	text := strings.Replace(rotated, `{config: '{"db":{"host":"db.example.com","password":"SECRET"}}'}`,
		"{a: memory, b: ready, c: Doctor, d: machine, e: swordfish}", 1)
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, before, _ := l.Call("doctor", "-o", "json")
	l.Must("apply", manifest)
	if _, after, _ := l.Call("doctor", "-o", "json"); strings.Contains(after, redaction.Hidden) ||
		strings.Contains(before, redaction.Hidden) {
		t.Errorf("words of podctl doctor are hidden:\n%s", after)
	}
	l.Fail(runtimetest.Fault{Method: "Status", Times: 6, Err: status.Error(codes.Unknown, "no swordfish here")})
	for _, args := range [][]string{{"doctor"}, {"doctor", "-o", "json"}} {
		if _, stdout, _ := l.Call(args...); strings.Contains(stdout, "swordfish") ||
			!strings.Contains(stdout, "no (secret) here") {
			t.Errorf("%v:\n%s", args, stdout)
		}
	}
}
