package checkpoint

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// TestKubeletsFile: a file that a kubelet 1.36 wrote is read, and podctl writes the same bytes. The file was written by
// the kubelet's package devicemanager/checkpoint.
func TestKubeletsFile(t *testing.T) {
	text, err := os.ReadFile("testdata/kubelet_internal_checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if e := r.Entries; len(e) != 2 || e[0].DeviceIDs[NoNUMA][0] != "gpu-0" || len(r.Registered["example.com/gpu"]) != 3 {
		t.Errorf("%+v", r)
	}
	again, err := r.Encode()
	if err != nil || !bytes.Equal(again, text) {
		t.Errorf("%v\n%s\n%s", err, again, text)
	}
}

// TestDamagedFile: a changed file is not read.
func TestDamagedFile(t *testing.T) {
	text, err := (&Record{Entries: []PodDevicesEntry{{PodUID: "a"}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Decode(bytes.Replace(text, []byte(`"a"`), []byte(`"b"`), 1)); !errors.Is(err, errChecksum) {
		t.Error(err)
	}
	if _, err = Decode(text[:len(text)/2]); err == nil {
		t.Error("read half of a file")
	}
}
