package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/commands/terminal"
)

// configured returns the global flags after loading a system file, a user file, the environment and the command line.
func configured(t *testing.T, system, user string, environment map[string]string, args ...string) (*Flags, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"system.yaml": system, "podctl/config.yaml": user} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	getenv := func(name string) string {
		if name == "XDG_CONFIG_HOME" {
			return dir
		}
		return environment[name]
	}
	return loaded(t, &terminal.Env{Getenv: getenv, SystemConfig: filepath.Join(dir, "system.yaml")}, args)
}

// loaded returns the flags after loading an environment and a command line.
func loaded(t *testing.T, env *terminal.Env, args []string) (*Flags, error) {
	t.Helper()
	f, set := &Flags{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Register(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	agent := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	agent.Int("parallel", 4, "")
	sources := agent.StringArray("sources", nil, "")
	if err := FileOnly(agent, "sources"); err != nil {
		t.Fatal(err)
	}
	err := f.Load(set, Sections{"agent": agent}, env)
	f.Command = *sources
	return f, err
}

func TestTheLaterSettingWins(t *testing.T) {
	const system = "namespace: system\nstate-dir: /system\nlog-root: /system\nrequest-timeout: 7s\n"
	const user = "# mine\nstate-dir: /user\nlog-root: /user\nverbose: true\n"
	g, err := configured(t, system, user, map[string]string{"PODCTL_LOG_ROOT": "/env", "PODCTL_CGROUP_ROOT": "/env"},
		"--cgroup-root", "/flag")
	if err != nil {
		t.Fatal(err)
	}
	for what, values := range map[string][2]string{
		"the system's file":     {g.Namespace, "system"},
		"the user's file":       {g.StateDir, "/user"},
		"the environment":       {g.LogRoot, "/env"},
		"the command line":      {g.CgroupRoot, "/flag"},
		"an unset flag":         {g.ImageEndpoint, ""},
		"a duration":            {g.RequestTimeout.String(), (7 * time.Second).String()},
		"a boolean":             {map[bool]string{true: "on"}[g.Verbose], "on"},
		"the origin of a value": {filepath.Base(g.Settings["state-dir"].Origin), "config.yaml:2"},
	} {
		if values[0] != values[1] {
			t.Errorf("%s: %q, want %q", what, values[0], values[1])
		}
	}
}

func TestConfigThatMakesNoSense(t *testing.T) {
	for name, c := range map[string]struct {
		text, wantMessage string
		environment       map[string]string
	}{
		"an unknown key": {
			"namespace: a\nnamspace: b\n", `config.yaml:2: unknown key "namspace"; known keys: `, nil,
		},
		"config in a config": {"config: /other\n", `config.yaml:1: unknown key "config"`, nil},
		"a bad value": {
			"\nrequest-timeout: soon\n", `config.yaml:2: request-timeout: time: invalid duration`, nil,
		},
		"a negative time": {"timeout: -1s\n", `config.yaml:1: timeout: must not be negative`, nil},
		"a bad word":      {"color: blue\n", `config.yaml:1: color: must be one of auto, always, never`, nil},
		"a key twice":     {"color: never\ncolor: auto\n", `config.yaml:2: color is set already at`, nil},
		"a list":          {"namespace: [a]\n", `config.yaml:1: namespace takes one value`, nil},
		"nothing":         {"namespace:\n", `config.yaml:1: namespace takes one value`, nil},
		"no map":          {"- a\n", `config.yaml:1: a configuration is a map`, nil},
		"no YAML":         {"a: b\n\tc: d\n", `config.yaml:2: found a tab`, nil},
		"an agent's key": {
			"agent:\n  parallels: 3\n", `config.yaml:2: unknown key "agent.parallels"; known keys: `, nil,
		},
		"an agent's value":   {"agent:\n  parallel: many\n", `config.yaml:2: agent.parallel: `, nil},
		"a list of numbers":  {"agent:\n  parallel: [1]\n", `config.yaml:2: agent.parallel takes one value`, nil},
		"another section":    {"plan:\n  parallel: 1\n", `config.yaml:1: plan takes one value`, nil},
		"a section as text":  {"agent: on\n", `config.yaml:1: unknown key "agent"`, nil},
		"a map in a section": {"agent:\n  sources: {a: b}\n", `config.yaml:2: agent.sources takes one value`, nil},
		"the environment":    {"", `PODCTL_COLOR: color: must be one of`, map[string]string{"PODCTL_COLOR": "blue"}},
		"a missing file": {
			"", `reading the configuration: open /absent.yaml`, map[string]string{"PODCTL_CONFIG": "/absent.yaml"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := configured(t, "", c.text, c.environment); err == nil ||
				!strings.Contains(err.Error(), c.wantMessage) {
				t.Errorf("error %v, want %q", err, c.wantMessage)
			}
		})
	}
}

// TestSection checks that the agent's flags have their own section, that lists are allowed there, and that a later file
// takes precedence.
func TestSection(t *testing.T) {
	const system = "agent:\n  parallel: 2\n  sources: [/a]\n"
	const user = "namespace: b\nagent:\n  sources:\n  - /b\n  - https://c\n"
	g, err := configured(t, system, user, map[string]string{"PODCTL_PARALLEL": "7"})
	if err != nil {
		t.Fatal(err)
	}
	if g.Settings["agent.parallel"].Value != "2" || g.Namespace != "b" ||
		!slices.Equal(g.Command, []string{"/b", "https://c"}) {
		t.Errorf("settings %v, sources %v", g.Settings, g.Command)
	}
}

func TestAConfigThatIsNamedReplacesTheOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte("log-root: /mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := configured(t, "namespace: system\n", "bad: key\n", nil, "--config", file)
	if err != nil || g.LogRoot != "/mine" || g.Namespace != "default" {
		t.Errorf("log root %q, namespace %q, error %v", g.LogRoot, g.Namespace, err)
	}
}

// TestMissingConfigFile checks that a missing configuration is not an error, unless the user named the file.
func TestMissingConfigFile(t *testing.T) {
	for _, args := range [][]string{nil, {"--config", "/dev/null/config.yaml"}} {
		env := &terminal.Env{Getenv: func(name string) string { return map[string]string{"HOME": "/dev/null"}[name] }}
		if _, err := loaded(t, env, args); (err != nil) != (args != nil) {
			t.Errorf("%v: error %v", args, err)
		}
	}
}

func TestEndpointOrigin(t *testing.T) {
	const file = "runtime-endpoint: /file.sock\n"
	for name, c := range map[string]struct {
		environment  map[string]string
		args         []string
		want, origin string
	}{
		"the flag": {
			map[string]string{"CONTAINER_RUNTIME_ENDPOINT": "/env.sock"},
			[]string{"-r", "/flag.sock"},
			"/flag.sock", "--runtime-endpoint",
		},
		"podctl's own variable": {
			map[string]string{"CONTAINER_RUNTIME_ENDPOINT": "/env.sock", "PODCTL_RUNTIME_ENDPOINT": "/own.sock"},
			nil, "/own.sock", "PODCTL_RUNTIME_ENDPOINT",
		},
		"the variable of the CRI": {
			map[string]string{"CONTAINER_RUNTIME_ENDPOINT": "/env.sock"},
			nil, "/env.sock",
			"CONTAINER_RUNTIME_ENDPOINT",
		},
		"the file": {nil, nil, "/file.sock", "config.yaml:1"},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := configured(t, "", file, c.environment, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			got := g.EndpointSources(func(name string) string { return c.environment[name] }).Given
			for len(got) > 0 && got[0].Address == "" {
				got = got[1:]
			}
			if len(got) == 0 || got[0].Address != c.want || !strings.HasSuffix(got[0].Origin, c.origin) {
				t.Errorf("%v, want %s (%s)", got, c.want, c.origin)
			}
		})
	}
}

// TestEveryGlobalFlagIsDescribed checks that docs/configuration.md describes every global flag.
func TestEveryGlobalFlagIsDescribed(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	(&Flags{}).Register(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if isSetting(f) && !strings.Contains(string(page), "\n| `"+f.Name+"` |") {
			t.Errorf("docs/configuration.md does not describe %s", f.Name)
		}
	})
}

// TestAConfigOfAnotherUserIsRefused checks that a configuration of another user is refused. With sudo, the home
// directory may be another user's, and the configuration names the runtime that root connects to.
func TestAConfigOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner of a file")
	}
	file := filepath.Join(t.TempDir(), "podctl", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		owner int
		mode  os.FileMode
		args  []string
		want  string
	}{
		"one's own":             {0, 0o644, nil, ""},
		"another's":             {65534, 0o644, nil, "belongs to user 65534, and podctl runs as 0"},
		"written by everybody":  {0, 0o646, nil, "can be written by others"},
		"written by a group":    {0, 0o664, nil, "can be written by others"},
		"a pipe":                {0, 0o600, nil, "is not a regular file"},
		"another's, and named":  {65534, 0o644, []string{"--config", file}, ""},
		"behind another's link": {0, 0o644, nil, "leads through the link config.yaml of user 65534"},
		"and that one named":    {0, 0o644, []string{"--config", file}, ""},
		"behind one's own link": {0, 0o644, nil, ""},
		"far too long":          {0, 0o600, nil, "config.yaml: it is larger than 65536 bytes"},
		"far too long, and not": {0, 0o600, []string{"--config", os.DevNull}, ""},
	} {
		text := "namespace: edge\n"
		if strings.HasPrefix(name, "far") {
			text += strings.Repeat("# filler\n", 10_000)
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		create := func() error { return os.WriteFile(file, []byte(text), 0o600) }
		if name == "a pipe" {
			create = func() error { return unix.Mkfifo(file, 0o600) }
		}
		if err := errors.Join(create(), os.Chmod(file, c.mode), os.Chown(file, c.owner, c.owner)); err != nil {
			t.Fatal(err)
		}
		linkOwners := map[string]int{
			"behind another's link": 65534,
			"and that one named":    65534,
			"behind one's own link": 0,
		}
		if linkOwner, linked := linkOwners[name]; linked {
			target := filepath.Join(t.TempDir(), "target")
			if err := errors.Join(os.Rename(file, target), os.Symlink(target, file), os.Lchown(file, linkOwner, linkOwner)); err != nil {
				t.Fatal(err)
			}
		}
		env := &terminal.Env{Getenv: func(name string) string {
			return map[string]string{"XDG_CONFIG_HOME": filepath.Dir(filepath.Dir(file))}[name]
		}}
		_, err := loaded(t, env, c.args)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestRelativeDirectories checks that relative directories become absolute, because the runtime uses them in another
// working directory.
func TestRelativeDirectories(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	g, err := configured(t, "", "", nil, "--state-dir", "s", "--log-root", "/logs/")
	if err != nil || g.StateDir != filepath.Join(dir, "s") || g.LogRoot != "/logs" {
		t.Errorf("%s %s %v", g.StateDir, g.LogRoot, err)
	}
}
