package membership

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecord checks the name of the first registration.
func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFor(dir, "any"); err != nil {
		t.Error(err)
	}
	record := Record{Name: "n", UID: "u", BootID: "b"}
	if err := record.Write(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFor(dir, "n"); err != nil {
		t.Error(err)
	}
	if _, err := ReadFor(dir, "m"); err == nil || !strings.Contains(err.Error(), "--node-name n") ||
		!strings.Contains(err.Error(), Path(dir)) {
		t.Error(err)
	}
	large := `{"name":"` + strings.Repeat("n", recordMax) + `"}`
	for name, text := range map[string]string{"damaged": "{", "empty": "{}", "large": large} {
		if err := os.WriteFile(Path(dir), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFor(dir, "n"); err == nil || !strings.Contains(err.Error(), Path(dir)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestForget checks that a machine can join another cluster under the same name.
func TestForget(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if registered, err := Forget(dir); registered || err != nil {
		t.Errorf("without a record: %v %v", registered, err)
	}
	record := Record{Name: "n", UID: "u", Service: "s", BootID: "b"}
	if err := record.Write(dir); err != nil {
		t.Fatal(err)
	}
	if registered, err := Forget(dir); !registered || err != nil {
		t.Errorf("%v %v", registered, err)
	}
	if r, err := Read(dir); err != nil || *r != (Record{Name: "n", BootID: "b"}) || Judge(r, Seen{Node: "x", Service: "y"}) != Same {
		t.Errorf("%+v %v", r, err)
	}
}

// TestJudge checks all differences between an API server and the record.
func TestJudge(t *testing.T) {
	record := &Record{Name: "n", UID: "u", Service: "s"}
	for _, c := range []struct {
		name   string
		record *Record
		seen   Seen
		want   Verdict
	}{
		{"nothing is recorded", nil, Seen{Node: "x", Service: "y"}, Same},
		{"the Service is not recorded", &Record{Name: "n", UID: "u"}, Seen{Node: "x", Service: "y"}, Same},
		{"both are the same", record, Seen{Node: "u", Service: "s"}, Same},
		{"the Node was deleted", record, Seen{Node: "", Service: "s"}, Same},
		{"the Node was created again", record, Seen{Node: "x", Service: "s"}, Same},
		{"the Service was created again", record, Seen{Node: "u", Service: "y"}, Same},
		{"the Service does not exist yet", record, Seen{Node: "u", Service: ""}, Same},
		{"an empty API server that starts", record, Seen{Node: "", Service: ""}, Unknown},
		{"a restored API server that starts", record, Seen{Node: "x", Service: ""}, Unknown},
		{"the Service is hidden", record, Seen{Node: "x", Hidden: true}, Same},
		{"another cluster", record, Seen{Node: "", Service: "y"}, Other},
		{"another cluster with such a node", record, Seen{Node: "x", Service: "y"}, Other},
	} {
		if got := Judge(c.record, c.seen); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
