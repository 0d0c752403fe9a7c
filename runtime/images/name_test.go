package images

import "testing"

func TestCanonical(t *testing.T) {
	for name, want := range map[string]string{
		"nginx":                       "docker.io/library/nginx:latest",
		"r.local:5000/a":              "r.local:5000/a:latest",
		"r.local/a:1@sha256:" + hex64: "r.local/a@sha256:" + hex64,
		hex64:                         hex64,
		"Not A Name":                  "Not A Name",
	} {
		if got := Canonical(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestPinName(t *testing.T) {
	info := &Info{
		RepoTags:    []string{"docker.io/library/a:1"},
		RepoDigests: []string{"r.local/a@sha256:" + hex64, "docker.io/library/a@sha256:" + hex64},
	}
	for asked, want := range map[string]string{
		"a:1":                  "docker.io/library/a@sha256:" + hex64,
		"r.local/a:2":          "r.local/a@sha256:" + hex64,
		"x@sha256:" + hex64:    "x@sha256:" + hex64,
		"r.local/elsewhere/a:": "",
		"r.local/b:1":          "",
	} {
		if got, err := info.Pin(asked); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s %v, want %s", asked, got, err, want)
		}
	}
	for asked, want := range map[string]string{
		"a:1":                       "docker.io/library/a:1",
		"sha256:1":                  "docker.io/library/a:1",
		"r.local/a@sha256:" + hex64: "r.local/a@sha256:" + hex64,
	} {
		if got, err := info.FullName(asked); got != want || err != nil {
			t.Errorf("%s: %s %v, want %s", asked, got, err, want)
		}
	}
	if _, err := (&Info{}).FullName("x"); err == nil {
		t.Error("an image without a name has one")
	}
}
