package interact

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/remote"
	runtimesession "github.com/podctl/podctl/runtime/session"
	"github.com/podctl/podctl/runtime/state"
)

func TestProcessCode(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"nothing":           {nil, exit.OK},
		"a process":         {&remote.ExitError{Code: 7}, 7},
		"podctl's own":      {errors.New("x"), exit.ExecFailed},
		"no such pod":       {notFoundCode(&state.NotFoundError{Name: "default/web"}), exit.NotFound},
		"an unobserved pod": {notFoundCode(errors.New("x")), exit.ExecFailed},
	} {
		if got := exit.Code(t.Context(), processCode(c.err)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestInContainer(t *testing.T) {
	for arg, want := range map[string][2]string{
		"web:/etc/hosts": {"web", "/etc/hosts"}, "default/web:x": {"default/web", "x"}, "web:": {"web", ""},
		"./a:b": {"", "./a:b"}, "/a:b": {"", "/a:b"}, "plain": {"", "plain"}, ":x": {"", ":x"},
	} {
		pod, path, in := inContainer(arg)
		if pod != want[0] || path != want[1] || in != (want[0] != "") {
			t.Errorf("%s: %q %q %v", arg, pod, path, in)
		}
	}
}

func TestDebugProfiles(t *testing.T) {
	if debugProfile("baseline") != nil || !*debugProfile("sysadmin").Privileged ||
		!*debugProfile("restricted").RunAsNonRoot {
		t.Error("a profile allows other things")
	}
}

// TestExecOptions: --workdir must be absolute, and a variable without a value gets podctl's value.
func TestExecOptions(t *testing.T) {
	o := &execOptions{command: runtimesession.Command{Dir: "/tmp", Env: []string{"A=b=c", "HOME", "E="}}}
	err := o.complete(func(name string) string { return "my " + name })
	if diff := cmp.Diff([]string{"A=b=c", "HOME=my HOME", "E="}, o.command.Env); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, bad := range []runtimesession.Command{{Dir: "tmp"}, {Env: []string{"=x"}}} {
		if err := (&execOptions{command: bad}).complete(nil); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
