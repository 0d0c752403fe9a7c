package cluster

import (
	"errors"
	"fmt"
	"io"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/safefs"
)

// maxKubeconfig limits the size of a kubeconfig and of each file it names, in bytes.
const maxKubeconfig = 1 << 20

// parsed is a kubeconfig: the cluster of its current context, and the configuration that follows from the file.
type parsed struct {
	cluster *clientcmdapi.Cluster
	config  *rest.Config
}

// readKubeconfig returns the contents of a kubeconfig file. Errors name the file.
func readKubeconfig(path string) (*parsed, error) {
	text, err := readTrusted(path)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	p, err := parse(path, text)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return p, nil
}

// parse parses a kubeconfig. Relative paths in it are relative to its directory.
func parse(path string, text []byte) (*parsed, error) {
	c, err := clientcmd.Load(text)
	if err != nil {
		return nil, err
	}
	for _, one := range c.Clusters {
		one.LocationOfOrigin = path
	}
	for _, u := range c.AuthInfos {
		u.LocationOfOrigin = path
	}
	if err = clientcmd.ResolveLocalPaths(c); err != nil {
		return nil, err
	}
	if err = checkCurrent(c); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*c, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	return &parsed{cluster: c.Clusters[c.Contexts[c.CurrentContext].Cluster], config: config}, nil
}

// checkCurrent returns an error if the current context does not name a server. client-go would then connect to
// localhost.
func checkCurrent(c *clientcmdapi.Config) error {
	current := c.Contexts[c.CurrentContext]
	switch {
	case c.CurrentContext == "":
		return errors.New("it has no current-context")
	case current == nil:
		return fmt.Errorf("current-context: there is no context %q", c.CurrentContext)
	case c.Clusters[current.Cluster] == nil:
		return fmt.Errorf("contexts: %s: there is no cluster %q", c.CurrentContext, current.Cluster)
	case c.Clusters[current.Cluster].Server == "":
		return fmt.Errorf("clusters: %s: it has no server", current.Cluster)
	case c.AuthInfos[current.AuthInfo] == nil:
		return fmt.Errorf("contexts: %s: there is no user %q", c.CurrentContext, current.AuthInfo)
	}
	return nil
}

// readTrusted reads a file that no other user may change.
func readTrusted(path string) ([]byte, error) {
	f, err := safefs.OpenTrusted(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := input.ReadAtMost(io.Reader(f), maxKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}
