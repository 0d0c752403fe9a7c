package pods

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
)

// TestAsOf checks that each list, each change and each bookmark of the API server sets the time of the copies.
func TestAsOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Settings{
			Node: "n", Known: func(types.UID) bool { return false },
			Load: func(pod *v1.Pod) (*podspec.Desired, error) { return podspec.New(pod, "api", pod.UID), nil },
		})
		if !s.AsOf().IsZero() {
			t.Errorf("before the first list: %s", s.AsOf())
		}
		to, web := newStore(s), podNamed("web", "u")
		begun := time.Now()
		for what, do := range map[string]func() error{
			"a list":     func() error { return to.Replace([]any{&web}, "1") },
			"a new pod":  func() error { return to.Add(&web) },
			"a change":   func() error { return to.Update(&web) },
			"a deletion": func() error { return to.Delete(&web) },
			"a bookmark": func() error { to.UpdateResourceVersion("2"); return nil },
			"a bad answer": func() error {
				if to.Replace([]any{"x"}, "3") == nil {
					t.Error("it is accepted")
				}
				return nil
			},
		} {
			time.Sleep(time.Second)
			err := do()
			if want := what != "a bad answer"; err != nil || s.AsOf().Equal(time.Now()) != want {
				t.Errorf("%s: %v, as of %s", what, err, s.AsOf().Sub(begun))
			}
		}
	})
}
