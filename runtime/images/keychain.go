package images

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/credentials"
	"github.com/docker/cli/cli/config/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/safefs"
)

// configMax limits the bytes read from a docker configuration.
const configMax = 1 << 20

// userKeychain reads the credentials that `docker login` and `podman login` wrote for podctl's user. With sudo, HOME
// may belong to another user, whose configuration could name a program that root would run. Such a file is left out.
type userKeychain struct{ getenv func(string) string }

// Find uses DOCKER_AUTH_CONFIG, or else the first existing file (go-containerregistry: keychain.go).
func (k userKeychain) Find(ctx context.Context, host string) (found Found, err error) {
	if found.Auth, err = fromEnvironment(host); found.Auth != nil || err != nil {
		return found, err
	}
	for _, path := range k.files() {
		settings, err := readDockerConfig(path)
		switch untrusted := (*safefs.UntrustedError)(nil); {
		case errors.As(err, &untrusted):
			found.LeftOut = append(found.LeftOut, "credentials were ignored: "+untrusted.Error())
		case safefs.NotExist(err):
		case err != nil:
			return found, err
		default:
			found.Auth, err = authOf(ctx, settings, host)
			if err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
			return found, err
		}
	}
	return found, nil
}

// files lists where credentials may be; the first existing file is used.
func (k userKeychain) files() []string {
	var files []string
	add := func(dir string, names ...string) {
		if dir != "" {
			files = append(files, filepath.Join(append([]string{dir}, names...)...))
		}
	}
	below := func(dir string) string {
		if home := k.getenv("HOME"); home != "" {
			return filepath.Join(home, dir)
		}
		return ""
	}
	add(cmp.Or(k.getenv("DOCKER_CONFIG"), below(".docker")), config.ConfigFileName)
	add(k.getenv("REGISTRY_AUTH_FILE"))
	if dir := k.getenv("XDG_RUNTIME_DIR"); dir != "" {
		add(dir, "containers", "auth.json")
	} else { // As with sudo and in a service, podman then uses a directory per user (containers-auth.json).
		add("/run/containers", strconv.Itoa(os.Getuid()), "auth.json")
	}
	add(cmp.Or(k.getenv("XDG_CONFIG_HOME"), below(".config")), "containers", "auth.json")
	return files
}

// readDockerConfig reads one file. No error contains its content.
func readDockerConfig(path string) (*configfile.ConfigFile, error) {
	f, err := safefs.OpenTrusted(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // a file that was only read
	text, err := input.ReadAtMost(f, configMax)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	settings, err := config.LoadFromReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s is not a docker configuration; log in to the registry again, or remove it", path)
	}
	return settings, nil
}

// fromEnvironment returns a registry's credentials from DOCKER_AUTH_CONFIG; nil if it has none.
func fromEnvironment(host string) (*runtimeapi.AuthConfig, error) {
	// An empty configuration returns the credentials of the environment.
	auth, err := configfile.New("").GetAuthConfig(host)
	if err != nil {
		return nil, errors.New("DOCKER_AUTH_CONFIG cannot be read")
	}
	return requestOf(&auth), nil
}

// authOf returns a registry's credentials from the configured credential helper, or else from the configuration
// itself, like docker.
func authOf(ctx context.Context, settings *configfile.ConfigFile, host string) (*runtimeapi.AuthConfig, error) {
	auth, err := credentials.NewFileStore(settings).Get(host)
	if err != nil {
		return nil, err
	}
	if helper := helperOf(settings, host); helper != "" {
		if auth, err = queryHelper(ctx, helper, host); err != nil {
			return nil, err
		}
	}
	return requestOf(&auth), nil
}

// requestOf returns credentials as a request to the runtime has them; nil if there are none.
func requestOf(auth *types.AuthConfig) *runtimeapi.AuthConfig {
	if auth.ServerAddress = ""; *auth == (types.AuthConfig{}) {
		return nil
	}
	return &runtimeapi.AuthConfig{
		Username: auth.Username, Password: auth.Password, Auth: auth.Auth,
		IdentityToken: auth.IdentityToken, RegistryToken: auth.RegistryToken,
	}
}

// helperOf returns the credential helper for a registry. An empty name for a host means that its credentials are in the
// file.
func helperOf(settings *configfile.ConfigFile, host string) string {
	if helper, ok := settings.CredentialHelpers[host]; ok {
		return helper
	}
	return settings.CredentialsStore
}
