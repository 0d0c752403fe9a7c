package executor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/model"
)

// TestMissingPullSecrets checks that a pod of the API server has the kubelet's event for its missing pull secrets before
// that of the pull, once a minute, until it has ended, and that no other pod has it.
func TestMissingPullSecrets(t *testing.T) {
	const reason = "Warning FailedToRetrieveImagePullSecret"
	text := strings.Replace(podspectest.Minimal, "spec:",
		"spec:\n  restartPolicy: Never\n  imagePullSecrets: [{name: one}, {name: ''}, {name: two}]", 1)
	l := newLab(t, "registry.local/app:1")
	ref := model.RefOf(podspectest.FromAPI(t, text).Pod)
	count := func() int {
		h, err := l.layout.Pod(ref.UID).History().Read()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range h.Events {
			if e.Reason == "FailedToRetrieveImagePullSecret" {
				n += e.Count
			}
		}
		return n
	}
	l.applyAPI(text)
	events := l.history(ref)
	want := reason + ": Unable to retrieve some image pull secrets (one, two); attempting to pull the image may not succeed."
	if i := slices.Index(events, want); i != 0 {
		t.Errorf("%q", events)
	}
	l.applyAPI(text)
	if n := count(); n != 1 {
		t.Errorf("%d events after another pass at the same time", n)
	}
	l.clock.Advance(2 * time.Minute)
	l.applyAPI(text)
	if n := count(); n != 2 {
		t.Errorf("%d events after two minutes", n)
	}
	text = strings.Replace(text, "name: web", "name: file", 1)
	l.apply(text)
	if got := l.history(model.RefOf(loadPod(t, text).Pod)); slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, reason) }) {
		t.Errorf("a pod of a file has %q", got)
	}
}
