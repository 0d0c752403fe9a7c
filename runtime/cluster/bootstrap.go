package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/podctl/podctl/runtime/cluster/certificates"
	"github.com/podctl/podctl/runtime/safefs"
)

// loaded is the configuration of a connection.
type loaded struct {
	config *rest.Config
	// rotates reports whether podctl replaces the certificate.
	rotates bool
	// server is the cluster of a new kubeconfig. It is nil if the file stays.
	server *clientcmdapi.Cluster
}

// load returns the configuration of the kubeconfig. With a file for the bootstrap, a kubeconfig without a valid client
// certificate is replaced by one that names the certificate of the node, which need not exist yet (kubelet:
// bootstrap.LoadClientConfig). The caller writes that file. A node that was registered also starts without the file,
// because kubeadm removes it after the registration. A kubelet ends.
func (s *Settings) load() (*loaded, error) {
	now, err := readKubeconfig(s.Kubeconfig)
	switch {
	case s.Bootstrap == "" && err != nil, errors.As(err, new(*safefs.UntrustedError)):
		return nil, err
	case s.Bootstrap == "":
		return &loaded{config: now.config, rotates: s.Rotate || isOwn(now.config)}, nil
	case err == nil && hasCertificate(now.config) && checkCertificate(now.config, s.Now()) == nil:
		return &loaded{config: now.config, rotates: true}, nil
	}
	first, missing := readKubeconfig(s.Bootstrap)
	switch {
	case s.Joined && err == nil && hasCertificate(now.config) && errors.Is(missing, fs.ErrNotExist):
		s.Log.Warn("the node has no connection to the API server until there is a new bootstrap kubeconfig",
			"error", missing.Error())
		return &loaded{config: now.config, rotates: true}, nil
	case missing != nil:
		return nil, missing
	}
	config := rest.AnonymousClientConfig(first.config)
	config.CertFile = filepath.Join(s.Dir, certificates.CurrentClient)
	config.KeyFile = config.CertFile
	return &loaded{config: config, rotates: true, server: first.cluster}, nil
}

func hasCertificate(c *rest.Config) bool { return len(c.CertData) > 0 || c.CertFile != "" }

// isOwn reports whether a configuration has the certificate that a kubelet or podctl rotates.
func isOwn(c *rest.Config) bool {
	return c.CertFile == c.KeyFile && filepath.Base(c.CertFile) == certificates.CurrentClient
}

// writeKubeconfig writes the kubeconfig of a node, with the names of a kubelet (writeKubeconfigFromBootstrapping).
func (s *Settings) writeKubeconfig(server *clientcmdapi.Cluster, pair string) error {
	const cluster, user, current = "default-cluster", "default-auth", "default-context"
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{cluster: server},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{user: {ClientCertificate: pair, ClientKey: pair}},
		Contexts: map[string]*clientcmdapi.Context{
			current: {Cluster: cluster, AuthInfo: user, Namespace: "default"},
		},
		CurrentContext: current,
	})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(s.Kubeconfig), 0o700)
	}
	if err == nil {
		err = safefs.CheckParents(s.Kubeconfig)
	}
	if err == nil {
		err = safefs.WriteFile(s.Kubeconfig, text)
	}
	if err != nil {
		return fmt.Errorf("writing the kubeconfig %s: %w", s.Kubeconfig, err)
	}
	s.Log.Info("wrote the kubeconfig of the node", "file", s.Kubeconfig, "bootstrap", s.Bootstrap)
	return nil
}
