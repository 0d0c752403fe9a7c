package podspec

import "testing"

func TestUIDIsStable(t *testing.T) {
	if got := UID("default", "hello"); got != "91f3cae3-9cbf-5b3b-95f4-1dd3c4beb6d1" {
		t.Errorf("the uid of default/hello changed to %s: every pod would be a new one", got)
	}
}
