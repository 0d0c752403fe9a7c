package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/plan/planfile"
	"github.com/podctl/podctl/runtime/podstatus"
)

// FuzzSavedPlan: whatever is read as a saved plan, it is refused, or what comes of it is
// steps that are made here and now.
func FuzzSavedPlan(f *testing.F) {
	m, err := podspec.Loader{}.Load(f.Context(), "../docs/examples/hello.yaml")
	if err != nil || m.Err() != nil {
		f.Fatal(err, m.Err())
	}
	d := m.Pods[0]
	in := &plan.Input{Pod: model.RefOf(d.Pod), Input: podstatus.Input{Desired: d, Now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}}
	made := planfile.Make(in)
	kept := *in
	kept.Options.KeepBasis = true
	for _, doc := range []any{planDocument([]*plan.Plan{planfile.Make(&kept)}), planDocument([]*plan.Plan{planfile.Make(&kept), made})} {
		text, err := json.Marshal(doc)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"apiVersion":"podctl.io/v1alpha1","kind":"PlanList","items":[null]}`))
	f.Add([]byte(`{"apiVersion":"podctl.io/v1alpha1","kind":"Plan","pod":{"namespace":"default","name":"hello","uid":"` + string(d.Pod.UID) + `"},"basis":{"desired":{"objects":{"secrets":{"a":null}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		saved, err := parseSaved(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of two lines: %q", err)
			}
			return
		}
		one, err := saved.of(d)
		if err != nil {
			return
		}
		p, err := planfile.MakeAgain(in, one)
		if err != nil {
			return
		}
		got, gotErr := json.Marshal(p.Steps)
		want, wantErr := json.Marshal(made.Steps)
		if string(got) != string(want) || gotErr != nil || wantErr != nil {
			t.Errorf("a file made other steps:\n%s\n%s", got, want)
		}
	})
}

// FuzzConfig: whatever a configuration says, an error names the file and, where there is
// one, the line; a setting names where it comes from.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{"", "namespace: edge\nstate-dir: /data # here\n", "a: &a [*a]\n", "- a\n", "a: b\na: c\n", "? {a: b}\n: c\n", "a: |\n  b\n", "{<<: *a}", "\xff"} {
		f.Add([]byte(seed))
	}
	place := regexp.MustCompile(`^f\.yaml(:\d+)?: `)
	f.Fuzz(func(t *testing.T, text []byte) {
		settings, err := parseConfig("f.yaml", text)
		if err != nil && !place.MatchString(err.Error()) {
			t.Errorf("error without a place: %q", err)
		}
		for key, s := range settings {
			if !strings.HasPrefix(s.origin, "f.yaml:") || !s.fromFile {
				t.Errorf("%q comes from %q", key, s.origin)
			}
		}
	})
}

// FuzzPrintable: whatever others wrote, it moves no cursor, changes no colour and turns
// no line round.
func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{"plain\n\ttext", "\x1b[31m", "\x9b1m", "\u009b", "\u202eevil\u2066", "\x00\x7f\r\x08", "\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range printable(text) {
			if (r < 0x20 && r != '\n' && r != '\t') || (r >= 0x7f && r < 0xa0) || (r >= 0x2028 && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) {
				t.Errorf("%q lets %q pass", text, r)
			}
		}
	})
}

// TestFuzzTargets: `make fuzz` runs every fuzz test there is.
func TestFuzzTargets(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`).FindAllSubmatch(text, -1) {
			found++
			if target := strings.TrimPrefix(filepath.Dir(path), "../") + ":" + string(m[1]); !strings.Contains(string(makefile), target) {
				t.Errorf("make fuzz does not run %s", target)
			}
		}
		return err
	})
	if err != nil || found < 10 {
		t.Errorf("%d fuzz tests are found: %v", found, err)
	}
}
