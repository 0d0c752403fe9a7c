package snapshot

import (
	"bytes"
	"testing"
)

// FuzzRead checks that a snapshot that can be read is the same after it is written and read again.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		fuzzSnapshot, `{"apiVersion":"podctl.io/v1alpha1","kind":"SnapshotList","items":[null]}`, `{"kind":"Snapshot"}`, "null", "[]", "{",
		`{"apiVersion":"podctl.io/v1alpha1","kind":"SnapshotList","items":[` + fuzzSnapshot + `,{"sandboxes":[null],"containers":[{}]}]}`,
		`{"apiVersion":"podctl.io/v1alpha1","kind":"Snapshot","checkpoint":{"applied":{"objects":{"secrets":{"a":null}}}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		recording, err := Read(text)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		var first, second bytes.Buffer
		if err = recording.Write(&first); err != nil {
			t.Fatal(err)
		}
		again, err := Read(first.Bytes())
		if err != nil {
			t.Fatalf("the written file cannot be read: %v\n%s", err, first.Bytes())
		}
		if err := again.Write(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("the written file is read as something else: %v\n%s\n%s", err, first.Bytes(), second.Bytes())
		}
	})
}
