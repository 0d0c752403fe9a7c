package image

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubernetes/pkg/credentialprovider"

	"github.com/podctl/podctl/podspec"
)

// Keychain finds credentials for a registry, as docker's and podman's log-in
// keeps them.
type Keychain = authn.Keychain

// credentials lists what to try for an image: those of the pod's pull secrets by the
// kubelet's matching of registry and path, then the credentials of the user
// podctl runs as (docker's config.json, podman's auth.json, credential helpers).
// Without any there is one anonymous try.
func (p *Puller) credentials(ctx context.Context, name string, own []*runtimeapi.AuthConfig) ([]*runtimeapi.AuthConfig, error) {
	users, err := p.fromKeychain(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(own)+len(users) == 0 {
		return []*runtimeapi.AuthConfig{nil}, nil
	}
	return slices.Concat(own, users), nil
}

// fromSecrets takes the credentials of pull secrets that match the image
// (kubelet: secrets.MakeDockerKeyring). Secrets that hold none are left out; one
// that cannot be read ends the pull.
func fromSecrets(name string, secrets []*v1.Secret) ([]*runtimeapi.AuthConfig, error) {
	keyring := &credentialprovider.BasicDockerKeyring{}
	for _, secret := range secrets {
		if podspec.PullSecretFault(secret) != "" {
			// The notes of the manifest say so, and the error of a pull that fails.
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

// repositoryOf is the image's name without tag and digest, in full.
func repositoryOf(name string) (string, error) {
	ref, err := reference.ParseDockerRef(name)
	if err != nil {
		return "", fmt.Errorf("reading image name %s: %w", name, err)
	}
	return ref.Name(), nil
}

// registry is the host an image comes from, as go-containerregistry wants it.
type registry string

func (r registry) String() string { return string(r) }

// RegistryStr is the host.
func (r registry) RegistryStr() string { return string(r) }

func (p *Puller) fromKeychain(ctx context.Context, name string) ([]*runtimeapi.AuthConfig, error) {
	keychain := p.Keychain
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	ref, err := reference.ParseDockerRef(name)
	if err != nil {
		return nil, fmt.Errorf("reading image name %s: %w", name, err)
	}
	found, err := authn.Resolve(ctx, keychain, registry(hostOf(ref)))
	if err != nil {
		return nil, fmt.Errorf("looking up credentials for %s: %w", hostOf(ref), err)
	}
	if found == authn.Anonymous {
		return nil, nil
	}
	auth, err := authn.Authorization(ctx, found)
	if err != nil {
		return nil, fmt.Errorf("looking up credentials for %s: %w", hostOf(ref), err)
	}
	return []*runtimeapi.AuthConfig{{
		Username: auth.Username, Password: auth.Password, Auth: auth.Auth,
		IdentityToken: auth.IdentityToken, RegistryToken: auth.RegistryToken,
	}}, nil
}

// hostOf is the registry's host; docker's own is kept under another name.
func hostOf(ref reference.Named) string {
	if host := reference.Domain(ref); host != "docker.io" {
		return host
	}
	return authn.DefaultAuthKey
}
