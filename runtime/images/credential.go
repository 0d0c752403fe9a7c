package images

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubernetes/pkg/credentialprovider"

	"github.com/podctl/podctl/podspec"
)

// Keychain finds the credentials of the user that podctl runs as.
type Keychain interface {
	// Find returns the credentials for the host of a registry. Without credentials or an error, the registry is asked
	// anonymously.
	Find(ctx context.Context, host string) (Found, error)
}

// Found is the result of a keychain for a registry.
type Found struct {
	// Auth is nil if there are no credentials.
	Auth *runtimeapi.AuthConfig
	// LeftOut lists untrusted files with reasons, which may explain a failed pull.
	LeftOut []string
}

// credentials returns the credentials to try for an image. First are those of the pod's pull secrets that match
// registry and path as in the kubelet, then those of podctl's user (docker's config.json, podman's auth.json,
// credential helpers). Without any there is one anonymous try. The second result lists files and secrets that were left
// out.
func (p *Puller) credentials(
	ctx context.Context, name string, own []*runtimeapi.AuthConfig,
) ([]*runtimeapi.AuthConfig, []string, error) {
	ref, err := reference.ParseDockerRef(name)
	if err != nil {
		return nil, nil, fmt.Errorf("reading image name %s: %w", name, err)
	}
	keychain := p.Keychain
	if keychain == nil {
		keychain = userKeychain{getenv: os.Getenv}
	}
	users, err := keychain.Find(ctx, hostOf(ref))
	if err != nil {
		return nil, nil, fmt.Errorf("looking up credentials for %s: %w", hostOf(ref), err)
	}
	if users.Auth != nil || len(own) == 0 {
		own = append(slices.Clone(own), users.Auth)
	}
	return own, users.LeftOut, nil
}

// fromSecrets returns the credentials of pull secrets that match the image (kubelet: secrets.MakeDockerKeyring). It
// skips secrets without credentials. One that cannot be read ends the pull.
func fromSecrets(name string, secrets []*v1.Secret) ([]*runtimeapi.AuthConfig, error) {
	keyring := &credentialprovider.BasicDockerKeyring{}
	for _, secret := range secrets {
		if podspec.PullSecretFault(secret) != "" {
			// A note of the manifest and the error of a failed pull report it.
			continue
		}
		config, err := dockerConfig(secret)
		if err != nil {
			return nil, fmt.Errorf("pull secret %s: %w", secret.Name, err)
		}
		keyring.Add(nil, config)
	}
	repository, err := repositoryOf(name)
	if err != nil {
		return nil, err
	}
	found, _ := keyring.Lookup(repository)
	var list []*runtimeapi.AuthConfig
	for i := range found {
		auth := &found[i].AuthConfig
		list = append(list, &runtimeapi.AuthConfig{
			Username: auth.Username, Password: auth.Password, Auth: auth.Auth, ServerAddress: auth.ServerAddress,
			IdentityToken: auth.IdentityToken, RegistryToken: auth.RegistryToken,
		})
	}
	return list, nil
}

// dockerConfig reads a pull secret of either type.
func dockerConfig(secret *v1.Secret) (credentialprovider.DockerConfig, error) {
	if secret.Type == v1.SecretTypeDockerConfigJson {
		var file credentialprovider.DockerConfigJSON
		if err := json.Unmarshal(secret.Data[v1.DockerConfigJsonKey], &file); err != nil {
			return nil, fmt.Errorf("%s is not a docker configuration", v1.DockerConfigJsonKey)
		}
		return file.Auths, nil
	}
	var config credentialprovider.DockerConfig
	if err := json.Unmarshal(secret.Data[v1.DockerConfigKey], &config); err != nil {
		return nil, fmt.Errorf("%s is not a docker configuration", v1.DockerConfigKey)
	}
	return config, nil
}

// repositoryOf returns the image's full name without tag and digest.
func repositoryOf(name string) (string, error) {
	ref, err := reference.ParseDockerRef(name)
	if err != nil {
		return "", fmt.Errorf("reading image name %s: %w", name, err)
	}
	return ref.Name(), nil
}

// dockerHub is docker's name for the credentials of its own registry.
const dockerHub = "https://index.docker.io/v1/"

// hostOf returns the registry's host. Docker's own registry has a special name.
func hostOf(ref reference.Named) string {
	switch host := reference.Domain(ref); host {
	case "docker.io", "index.docker.io":
		return dockerHub
	default:
		return host
	}
}
