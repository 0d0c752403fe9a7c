package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDescribe(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.2.3", Main: debug.Module{Path: "example.org/tool", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.org/Big/lib", Version: "v1.0.0+incompatible", Sum: "h1:abc="},
			{
				Path:    "example.org/old",
				Version: "v1.0.0",
				Replace: &debug.Module{Path: "example.org/new", Version: "v2.0.0", Sum: "h1:def="},
			},
		},
	}
	created := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	d := describe(info, binary{name: "tool", version: "v9", sum: [32]byte{0xab}}, created)
	sum := "ab" + strings.Repeat("0", 62)
	want := []component{
		{
			ID: "SPDXRef-Program", Name: "example.org/tool", Version: "v9", File: "tool", Purpose: "APPLICATION", Location: unknown,
			Concluded: unknown, Declared: "Apache-2.0", Copyright: unknown, Checksums: []checksum{{"SHA256", sum}},
			Refs: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/example.org/tool@v9"}},
		},
		{
			ID: "SPDXRef-Go", Name: "stdlib", Version: "1.2.3", Purpose: "LIBRARY", Location: "https://go.dev/dl/",
			Concluded: unknown, Declared: "BSD-3-Clause", Copyright: unknown,
			Refs: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/stdlib@1.2.3"}},
		},
		{
			ID:        "SPDXRef-Module-example.org-Big-lib-v1.0.0-incompatible",
			Name:      "example.org/Big/lib",
			Version:   "v1.0.0+incompatible",
			Purpose:   "LIBRARY",
			Location:  "https://proxy.golang.org/example.org/!big/lib/@v/v1.0.0+incompatible.zip",
			Concluded: unknown,
			Declared:  unknown,
			Copyright: unknown,
			Refs: []reference{
				{"PACKAGE-MANAGER", "purl", "pkg:golang/example.org/big/lib@v1.0.0%2Bincompatible"},
				{"OTHER", "go-sum", "h1:abc="},
			},
		},
		{
			ID: "SPDXRef-Module-example.org-new-v2.0.0", Name: "example.org/new", Version: "v2.0.0", Purpose: "LIBRARY",
			Location: "https://proxy.golang.org/example.org/new/@v/v2.0.0.zip", Concluded: unknown, Declared: unknown, Copyright: unknown,
			Refs: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/example.org/new@v2.0.0"}, {"OTHER", "go-sum", "h1:def="}},
		},
	}
	if diff := cmp.Diff(want, d.Packages); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if d.Namespace != "https://example.org/tool/sbom/"+sum || d.Creation.Created != "2026-05-04T12:00:00Z" {
		t.Errorf("%+v", d)
	}
}

// TestDocument checks that the document of a real program follows SPDX, and is the same each time.
func TestDocument(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1770000000")
	program := filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, "../mkimage")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	texts := [2]bytes.Buffer{}
	for i := range texts {
		if err := run(&texts[i], program, "v1"); err != nil {
			t.Fatal(err)
		}
	}
	if texts[0].String() != texts[1].String() {
		t.Error("two documents of one program differ")
	}
	var d document
	if err := json.Unmarshal(texts[0].Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) == 0 || len(d.Packages) != len(info.Deps)+2 || len(d.Relationships) != len(d.Packages) {
		t.Errorf("%d modules, %d packages, %d relationships", len(info.Deps), len(d.Packages), len(d.Relationships))
	}
	seen := map[string]bool{}
	for i, p := range d.Packages {
		if seen[p.ID] || !regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`).MatchString(p.ID) {
			t.Errorf("identifier %q is taken, or none", p.ID)
		}
		if d.Relationships[i].To != p.ID {
			t.Errorf("%s belongs to nothing", p.ID)
		}
		for _, r := range p.Refs {
			if r.Locator == "" || strings.ContainsAny(r.Locator, " \t") {
				t.Errorf("%s: reference %+v", p.ID, r)
			}
		}
		seen[p.ID] = true
	}
}

func TestInvalidInput(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, text + "absent"} {
		if err := run(&bytes.Buffer{}, path, ""); err == nil {
			t.Errorf("%s was described", path)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if err := run(&bytes.Buffer{}, text, ""); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Error(err)
	}
}
