package images

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// login returns a docker configuration with a user for registry.local.
func login(user string) string {
	return fmt.Sprintf(`{"auths":{"registry.local":{"auth":%q}}}`, base64.StdEncoding.EncodeToString([]byte(user+":pw")))
}

// put writes a file and creates its parent directories.
func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(path), 0o755),
		os.WriteFile(path, []byte(text), 0o600),
		os.Chmod(path, mode),
	); err != nil {
		t.Fatal(err)
	}
}

// home creates a home directory, below which all searched files are.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "XDG_CONFIG_HOME", "DOCKER_AUTH_CONFIG"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", dir)
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "none")) // Without it, podman's credentials of this machine count.
	return dir
}

// asked pulls an image and returns the users of the requests to the registry.
func asked(t *testing.T, answer error) ([]string, error) {
	t.Helper()
	client := &registryClient{err: answer}
	_, err := (&Puller{}).Pull(t.Context(), client, Request{Image: "registry.local/app:1"})
	return client.asked, err
}

// TestFirstCredentialsFileIsUsed checks that the first existing file is used, even if it has no credentials for the
// registry.
func TestFirstCredentialsFileIsUsed(t *testing.T) {
	dir := home(t)
	for i, c := range []struct{ variable, value, file string }{
		{"", "", ".config/containers/auth.json"},
		{"XDG_CONFIG_HOME", "xdg", "xdg/containers/auth.json"},
		{"XDG_RUNTIME_DIR", "run", "run/containers/auth.json"},
		{"REGISTRY_AUTH_FILE", "auth", "auth"},
		{"", "", ".docker/config.json"},
		{"DOCKER_CONFIG", "docker", "docker/config.json"},
	} {
		if c.variable != "" {
			t.Setenv(c.variable, filepath.Join(dir, c.value))
		}
		user := fmt.Sprintf("user%d", i)
		put(t, filepath.Join(dir, c.file), login(user), 0o600)
		if users, err := asked(t, nil); err != nil || len(users) != 1 || users[0] != user {
			t.Errorf("%s: asked as %q, %v", c.file, users, err)
		}
	}
	put(t, filepath.Join(dir, "docker/config.json"), "{}", 0o600)
	if users, err := asked(t, nil); err != nil || len(users) != 1 || users[0] != "" {
		t.Errorf("an empty file: asked as %q, %v", users, err)
	}
	t.Setenv("DOCKER_AUTH_CONFIG", login("environment"))
	if users, err := asked(t, nil); err != nil || len(users) != 1 || users[0] != "environment" {
		t.Errorf("DOCKER_AUTH_CONFIG: asked as %q, %v", users, err)
	}
}

// TestCredentialsOfTheEnvironment checks that DOCKER_AUTH_CONFIG needs no file, and takes precedence over a broken one.
func TestCredentialsOfTheEnvironment(t *testing.T) {
	dir := home(t)
	t.Setenv("DOCKER_AUTH_CONFIG", login("environment"))
	if users, err := asked(t, nil); err != nil || len(users) != 1 || users[0] != "environment" {
		t.Errorf("without a file: asked as %q, %v", users, err)
	}
	put(t, filepath.Join(dir, ".docker/config.json"), "hunter2", 0o600)
	if users, err := asked(t, nil); err != nil || len(users) != 1 || users[0] != "environment" {
		t.Errorf("with a broken file: asked as %q, %v", users, err)
	}
}

// TestFilesOfPodman checks where `podman login` stores credentials with and without XDG_RUNTIME_DIR.
func TestFilesOfPodman(t *testing.T) {
	for runtimeDir, want := range map[string]string{
		"/run/user/7": "/run/user/7/containers/auth.json",
		"":            fmt.Sprintf("/run/containers/%d/auth.json", os.Getuid()),
	} {
		files := userKeychain{getenv: func(name string) string {
			return map[string]string{"XDG_RUNTIME_DIR": runtimeDir}[name]
		}}.files()
		if len(files) != 1 || files[0] != want {
			t.Errorf("%q: %q, want %s", runtimeDir, files, want)
		}
	}
}

// TestDockerHubHasAnotherName checks docker's special name for the credentials of its own registry.
func TestDockerHubHasAnotherName(t *testing.T) {
	put(t, filepath.Join(home(t), ".docker/config.json"),
		strings.Replace(login("hub"), "registry.local", "https://index.docker.io/v1/", 1), 0o600)
	for _, name := range []string{"busybox", "docker.io/library/busybox:1", "index.docker.io/library/busybox"} {
		client := &registryClient{}
		if _, err := (&Puller{}).Pull(t.Context(), client, Request{Image: name}); err != nil || client.asked[0] != "hub" {
			t.Errorf("%s: asked as %q, %v", name, client.asked, err)
		}
	}
}

// TestNoProgramOfAnotherUserRuns checks that podctl runs no program through another user's configuration, nor a helper
// in the working directory or one that another user can change.
func TestNoProgramOfAnotherUserRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	const foreignUID = 65534
	store := func(name string) string { return fmt.Sprintf(`{"credsStore":%q}`, name) }
	perHost := func(name string) string { return fmt.Sprintf(`{"credHelpers":{"registry.local":%q}}`, name) }
	give := func(t *testing.T, path string) {
		t.Helper()
		if err := os.Lchown(path, foreignUID, foreignUID); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		config string
		// change modifies the configuration or the program as another user could.
		change func(t *testing.T, config, program string)
		// wantMessage is part of the pull's error. It is "" if the pull is anonymous; note is then in the error of a
		// failed pull.
		wantMessage, note string
	}{
		"his configuration": {store("x"), func(t *testing.T, config, _ string) { give(t, config) }, "", "belongs to user 65534"},
		"one he can write to": {store("x"), func(t *testing.T, config, _ string) {
			_ = os.Chmod(config, 0o666)
		}, "", "can be written by others"},
		"his link to one": {store("x"), func(t *testing.T, config, _ string) {
			_ = os.Rename(config, config+"2")
			_ = os.Symlink(config+"2", config)
			give(t, config)
		}, "", "leads through the link"},
		"a path as a store":     {store("x/evil"), nil, `"x/evil" is not the name of a program`, ""},
		"a path as a helper":    {perHost("x/evil"), nil, `"x/evil" is not the name of a program`, ""},
		"control characters":    {perHost("x\n"), nil, "is not the name of a program", ""},
		"a backslash":           {perHost(`x\y`), nil, "is not the name of a program", ""},
		"the working directory": {store("here"), nil, "executable file not found", ""},
		"a program of his":      {store("x"), func(t *testing.T, _, program string) { give(t, program) }, "belongs to user 65534", ""},
		"one he can write": {store("x"), func(t *testing.T, _, program string) {
			_ = os.Chmod(program, 0o777)
		}, "can be written by others", ""},
		"one in his directory": {store("x"), func(t *testing.T, _, program string) {
			give(t, filepath.Dir(program))
		}, "belongs to user 65534", ""},
		"one in /tmp": {store("x"), func(t *testing.T, _, program string) {
			_ = os.Chmod(filepath.Dir(program), 0o777)
		}, "can be written by others", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := home(t)
			config, ran := filepath.Join(dir, ".docker/config.json"), filepath.Join(dir, "ran")
			program := filepath.Join(dir, "bin/docker-credential-x")
			evil := "#!/bin/sh\n: >" + ran + "\necho '{\"Username\":\"evil\",\"Secret\":\"s\"}'\n"
			put(t, config, c.config, 0o600)
			for _, path := range []string{program, dir + "/cwd/docker-credential-here", dir + "/cwd/docker-credential-x/evil"} {
				put(t, path, evil, 0o755)
			}
			t.Chdir(filepath.Join(dir, "cwd"))
			t.Setenv("PATH", ".::"+filepath.Dir(program)+":/bin")
			if c.change != nil {
				c.change(t, config, program)
			}
			users, err := asked(t, nil)
			if _, statErr := os.Stat(ran); statErr == nil {
				t.Error("the program was run")
			}
			if c.wantMessage != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantMessage) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || len(users) != 1 || users[0] != "" {
				t.Errorf("an image for everybody: asked as %q, %v", users, err)
			}
			if _, err := asked(t, status.Error(codes.Unknown, "401 Unauthorized")); err == nil ||
				!strings.Contains(err.Error(), "credentials were ignored: "+config+" "+c.note) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestHelpersAnswer checks that a helper runs outside of the user's directory and without other secrets, and that no
// error contains its answer.
func TestHelpersAnswer(t *testing.T) {
	for name, c := range map[string]struct{ script, user, wantMessage string }{
		"with a user": {
			`read host; echo "{\"Username\":\"$host as $AWS_PROFILE in $PWD${OTHER:+ with $OTHER}\",\"Secret\":\"s3cret\"}"`,
			"registry.local as dev in /",
			"",
		},
		"with nothing":      {`echo "credentials not found in native keychain"; exit 1`, "", ""},
		"with a failure":    {`echo s3cret; echo s3cret >&2; exit 3`, "", "exit status 3; `echo registry.local | "},
		"with nonsense":     {`echo s3cret`, "", "does not answer in JSON"},
		"without an end":    {`while echo s3cret; do :; done`, "", "its answer is longer than"},
		"and leaves others": {`echo '{"Username":"quick","Secret":"s3cret"}'; sleep 5 >/dev/null & exit 0`, "quick", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := home(t)
			put(t, filepath.Join(dir, ".docker/config.json"), `{"credHelpers":{"registry.local":"x"},"credsStore":"absent"}`, 0o600)
			put(t, filepath.Join(dir, "bin/docker-credential-x"), "#!/bin/sh\n"+c.script+"\n", 0o755)
			t.Setenv("PATH", filepath.Join(dir, "bin")+":/bin:/usr/bin")
			t.Setenv("AWS_PROFILE", "dev")
			t.Setenv("OTHER", "s3cret")
			users, err := asked(t, nil)
			if (err == nil) != (c.wantMessage == "") ||
				(err != nil && (!strings.Contains(err.Error(), c.wantMessage) || strings.Contains(err.Error(), "s3cret"))) {
				t.Errorf("error %v", err)
			}
			if err == nil && (len(users) != 1 || users[0] != c.user) {
				t.Errorf("asked as %q", users)
			}
		})
	}
}

// TestTokensAndEmptyHelpers checks a helper's secret that is a token, and an empty helper name, which means that the
// file has the credentials.
func TestTokensAndEmptyHelpers(t *testing.T) {
	dir := home(t)
	put(t, filepath.Join(dir, "bin/docker-credential-x"), "#!/bin/sh\necho '{\"Username\":\"<token>\",\"Secret\":\"t0ken\"}'\n", 0o755)
	t.Setenv("PATH", filepath.Join(dir, "bin")+":/bin")
	put(t, filepath.Join(dir, ".docker/config.json"), `{"credsStore":"x"}`, 0o600)
	found, err := userKeychain{getenv: os.Getenv}.Find(t.Context(), "registry.local")
	if err != nil || found.Auth.GetIdentityToken() != "t0ken" || found.Auth.GetUsername() != "" {
		t.Errorf("%+v %v", found, err)
	}
	put(t, filepath.Join(dir, ".docker/config.json"), `{"credsStore":"x","credHelpers":{"registry.local":""},`+login("file")[1:], 0o600)
	found, err = userKeychain{getenv: os.Getenv}.Find(t.Context(), "registry.local")
	if err != nil || found.Auth.GetUsername() != "file" {
		t.Errorf("%+v %v", found, err)
	}
}

// TestHelperIsInterrupted checks that a helper that hangs ends with the pull.
func TestHelperIsInterrupted(t *testing.T) {
	dir := home(t)
	put(t, filepath.Join(dir, "bin/docker-credential-x"), "#!/bin/sh\n: >"+dir+"/begun\nsleep 600\n", 0o755)
	t.Setenv("PATH", filepath.Join(dir, "bin")+":/bin:/usr/bin")
	put(t, filepath.Join(dir, ".docker/config.json"), `{"credsStore":"x"}`, 0o600)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(dir + "/begun"); err == nil || t.Context().Err() != nil {
				cancel()
				return
			}
		}
	}()
	if _, err := (userKeychain{getenv: os.Getenv}).Find(ctx, "registry.local"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestBadDockerConfigs checks that errors have their path, but not their content.
func TestBadDockerConfigs(t *testing.T) {
	path := filepath.Join(home(t), ".docker/config.json")
	for text, want := range map[string]string{
		"hunter2": "is not a docker configuration",
		`{"auths":{"r":{"auth":"aHVudGVyMg=="}}}`:    "is not a docker configuration",
		`{"auths":{"r":{"password":{"hunter2":1}}}}`: "is not a docker configuration",
		strings.Repeat(" ", configMax+1):             "is larger than",
	} {
		put(t, path, text, 0o600)
		if _, err := asked(t, nil); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v", err)
		}
	}
}
