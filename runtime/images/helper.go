package images

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/docker/cli/cli/config/types"
	"github.com/docker/docker-credential-helpers/credentials"

	"github.com/podctl/podctl/runtime/safefs"
)

const (
	// helperTimeout limits a credential helper, because some query a cloud.
	helperTimeout = time.Minute
	// helperMax limits the bytes read from a helper.
	helperMax = 256 << 10
	// tokenUser is the user name with which a helper marks its secret as a token.
	tokenUser = "<token>"
)

// helperVariables lists the variables that credential helpers need, besides HOME and the proxies: those of keyrings, of
// pass, and of the clouds.
func helperVariables() []string {
	return []string{
		"USER", "LOGNAME", "LANG", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME",
		"DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "GNUPGHOME", "GPG_TTY", "PASSWORD_STORE_DIR", "DOCKER_CONFIG",
		"AWS_", "AZURE_", "ACR_", "GOOGLE_", "CLOUDSDK_", "GCE_", "OCI_",
	}
}

// queryHelper asks a docker credential helper for a registry's credentials. No error contains the helper's answer.
func queryHelper(ctx context.Context, helper, host string) (types.AuthConfig, error) {
	none := types.AuthConfig{}
	if !isHelperName(helper) {
		return none, fmt.Errorf("the credential helper %q is not the name of a program: it may not be a path", helper)
	}
	program, err := safefs.LookPath("docker-credential-"+helper, os.Getenv("PATH"))
	if err != nil {
		return none, fmt.Errorf("the credential helper %s cannot be used: %w", helper, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, helperTimeout, fmt.Errorf("it gave no answer in %v", helperTimeout))
	defer cancel()
	answer, err := runHelper(ctx, program, host)
	program.Close() //nolint:errcheck // A handle on a directory.
	switch {
	case err != nil && credentials.IsErrCredentialsNotFoundMessage(string(answer)):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("the credential helper %s: %w; `echo %s | %s get` shows why",
			program.Path, err, host, program.Path)
	}
	var found credentials.Credentials
	if json.Unmarshal(answer, &found) != nil {
		return none, fmt.Errorf("the credential helper %s does not answer in JSON", program.Path)
	}
	if found.Username == tokenUser {
		return types.AuthConfig{IdentityToken: found.Secret}, nil
	}
	return types.AuthConfig{Username: found.Username, Password: found.Secret}, nil
}

// isHelperName reports whether a text can be the last part of a program's name.
func isHelperName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r == '/' || r == '\\' || !unicode.IsPrint(r)
	})
}

// runHelper runs a helper outside of the caller's directory and without the caller's other variables. It returns the
// output, even if the helper failed.
func runHelper(ctx context.Context, program *safefs.Program, host string) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := bounded{tooLong: cancel}
	cmd := program.Command(ctx, "get")
	cmd.Dir, cmd.Env = "/", safefs.Environ(helperVariables()...)
	cmd.Stdin, cmd.Stdout = strings.NewReader(host), &out
	// A background process of the helper may keep its output open.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("it was stopped: %w", context.Cause(ctx))
	}
	return out.text.Bytes(), err
}

// bounded collects the output of a helper and stops one that prints too much.
type bounded struct {
	text    bytes.Buffer
	tooLong context.CancelCauseFunc
}

// Write fails once helperMax is exceeded.
func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > helperMax {
		err := fmt.Errorf("its answer is longer than %d bytes", helperMax)
		b.tooLong(err)
		return 0, err
	}
	return b.text.Write(p)
}
