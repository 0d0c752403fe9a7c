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
	"github.com/podctl/podctl/runtime/imageaccess"
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
	ctx context.Context, name string, own []credential,
) ([]credential, []string, error) {
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
		own = append(slices.Clone(own), credential{auth: users.Auth})
	}
	return own, users.LeftOut, nil
}

// credential is one that a pull tries.
type credential struct {
	// auth is nil for an anonymous pull.
	auth *runtimeapi.AuthConfig
	// secret is the pull secret with the credential; nil if every pod of the machine may use it.
	secret *imageaccess.Secret
}

// Secrets returns the pull secrets with credentials for an image, with hashes of these credentials.
func Secrets(image string, secrets []*v1.Secret) ([]imageaccess.Secret, error) {
	own, err := fromSecrets(image, secrets)
	if err != nil {
		return nil, err
	}
	list := make([]imageaccess.Secret, 0, len(own))
	for _, one := range own {
		list = append(list, *one.secret)
	}
	return list, nil
}

// fromSecrets returns the credentials of pull secrets that match the image (kubelet: secrets.MakeDockerKeyring). It
// skips secrets without credentials. One that cannot be read ends the pull.
func fromSecrets(name string, secrets []*v1.Secret) ([]credential, error) {
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
		keyring.Add(&credentialprovider.CredentialSource{Secret: &credentialprovider.SecretCoordinates{
			UID: string(secret.UID), Namespace: secret.Namespace, Name: secret.Name,
		}}, config)
	}
	repository, err := repositoryOf(name)
	if err != nil {
		return nil, err
	}
	found, _ := keyring.Lookup(repository)
	list := make([]credential, 0, len(found))
	for i := range found {
		list = append(list, credentialOf(&found[i]))
	}
	return list, nil
}

func credentialOf(found *credentialprovider.TrackedAuthConfig) credential {
	auth, from := &found.AuthConfig, found.Source.Secret
	return credential{
		auth: &runtimeapi.AuthConfig{
			Username: auth.Username, Password: auth.Password, Auth: auth.Auth, ServerAddress: auth.ServerAddress,
			IdentityToken: auth.IdentityToken, RegistryToken: auth.RegistryToken,
		},
		secret: &imageaccess.Secret{
			UID: from.UID, Namespace: from.Namespace, Name: from.Name, CredentialHash: found.AuthConfigHash,
		},
	}
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
