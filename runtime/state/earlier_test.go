package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

func withSecret(values ...string) *podspec.Desired {
	s := &v1.Secret{Data: map[string][]byte{}}
	for i, value := range values {
		s.Data[fmt.Sprint(i)] = []byte(value)
	}
	return &podspec.Desired{Objects: podspec.Objects{Secrets: map[string]*v1.Secret{"s": s}}}
}

// TestEarlierSecretsAreKept checks that replaced values are redacted, within the limits for generations and bytes, and
// that an equal generation does not count.
func TestEarlierSecretsAreKept(t *testing.T) {
	j := &Checkpoint{}
	apply := func(d *podspec.Desired) {
		j.KeepEarlierSecrets(d)
		j.Applied = d
	}
	apply(withSecret("value-number-0", "the-same"))
	for i := range 10 {
		apply(withSecret(fmt.Sprintf("value-number-%d", i), "the-same"))
		apply(withSecret(fmt.Sprintf("value-number-%d", i), "the-same"))
	}
	text := "0 value-number-0, 1 value-number-1, 8 value-number-8, 9 value-number-9, the-same"
	if got := j.Redactor(nil).Text(text); strings.Contains(got, "value-number-1") ||
		strings.Contains(got, "value-number-8") || strings.Contains(got, "the-same") {
		t.Errorf("%s", got)
	}
	if len(j.EarlierSecrets) != earlierGenerations || len(j.EarlierSecrets[0]) != 1 || string(j.EarlierSecrets[0][0]) != "value-number-1" {
		t.Errorf("%q", j.EarlierSecrets)
	}
	large := strings.Repeat("x", earlierBytes/2)
	for i := range 5 {
		apply(withSecret(fmt.Sprint(i, large)))
	}
	if bytesOf(j.EarlierSecrets) > earlierBytes || len(j.EarlierSecrets) != 1 {
		t.Errorf("%d bytes in %d generations", bytesOf(j.EarlierSecrets), len(j.EarlierSecrets))
	}
	if got := j.Redactor(withSecret("value-of-the-next")).Text("value-of-the-next"); got != "(secret)" {
		t.Errorf("the next one: %q", got)
	}
}

// TestOldCheckpointsHaveNoEarlierSecrets checks that a checkpoint with and without the field is read.
func TestOldCheckpointsHaveNoEarlierSecrets(t *testing.T) {
	old, err := decodeCheckpoint([]byte(`{"version":1,"generation":3,"backoffs":null}`))
	if err != nil || old.EarlierSecrets != nil || old.Generation != 3 {
		t.Errorf("%+v %v", old, err)
	}
	text, err := json.Marshal(&Checkpoint{Version: 1, EarlierSecrets: [][][]byte{{[]byte("a\xff"), []byte("b")}, {[]byte("c")}}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := decodeCheckpoint(text)
	if err != nil || len(again.EarlierSecrets) != 2 || !bytes.Equal(again.EarlierSecrets[0][0], []byte("a\xff")) {
		t.Errorf("%+v %v", again, err)
	}
	if text, err = json.Marshal(&Checkpoint{}); err != nil || strings.Contains(string(text), "earlier") {
		t.Errorf("%s %v", text, err)
	}
}
