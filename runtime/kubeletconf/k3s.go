package kubeletconf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// k3sFlags are the keys of k3s and rke2 that set a flag of the kubelet, with that flag.
func k3sFlags() map[string]string {
	return map[string]string{
		"node-name":                  "hostname-override",
		"node-ip":                    "node-ip",
		"node-label":                 "node-labels",
		"node-taint":                 "register-with-taints",
		"container-runtime-endpoint": "container-runtime-endpoint",
		"image-service-endpoint":     "image-service-endpoint",
		"resolv-conf":                "resolv-conf",
		"protect-kernel-defaults":    "protect-kernel-defaults",
		"cluster-dns":                "cluster-dns",
		"cluster-domain":             "cluster-domain",
		"pause-image":                "pod-infra-container-image",
	}
}

// addK3s adds a configuration of k3s or rke2, or one of its drop-ins: keys are flags, lists are repeated flags, and
// a plus at the end of a key adds to the list.
func (f *Files) addK3s(name string, tree map[string]any) error {
	var own []string
	known := k3sFlags()
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		bare := strings.TrimSuffix(key, "+")
		values, err := textsOf(tree[key])
		if err != nil {
			return fmt.Errorf("%s: %s: %w", name, key, err)
		}
		flag, isFlag := known[bare]
		switch {
		case bare == "kubelet-arg":
			for _, value := range values {
				f.AddArguments(name, []string{"--" + strings.TrimLeft(value, "-")})
			}
		case isFlag:
			f.AddArguments(name, []string{"--" + flag + "=" + strings.Join(values, ",")})
		default:
			own = append(own, key)
		}
	}
	f.setK3s(name)
	if len(own) > 0 {
		// Their values may be secret, such as the token.
		f.Notes = append(f.Notes, fmt.Sprintf("%s: keys of k3s were not examined: %s", name, strings.Join(own, ", ")))
	}
	return nil
}

// setK3s adds what is the same in each installation of k3s.
func (f *Files) setK3s(name string) {
	if len(f.distribution) > 0 {
		return
	}
	const data, socket = "/var/lib/rancher/k3s/agent/", "unix:///run/k3s/containerd/containerd.sock"
	f.distribution = []Row{
		honoured("", "kubeconfig", Text, "kubeconfig").otherwise(data + "kubelet.kubeconfig"),
		honoured("containerRuntimeEndpoint", "container-runtime-endpoint", Text, "runtime-endpoint").otherwise(socket),
		honoured("authentication.x509.clientCAFile",
			"client-ca-file", Text, "client-ca-file").otherwise(data + "client-ca.crt"),
	}
	f.Notes = append(f.Notes, name+": k3s contains the container runtime and kube-proxy, which end with it: "+
		"start containerd and a network for pods before podctl")
}

// textsOf returns a scalar or a list of scalars as texts.
func textsOf(value any) ([]string, error) {
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	var all []string
	for _, one := range list {
		switch one.(type) {
		case map[string]any, []any:
			return nil, fmt.Errorf("must be a value or a list of values")
		case nil:
		default:
			all = append(all, fmt.Sprint(one))
		}
	}
	return all, nil
}
