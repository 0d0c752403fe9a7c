package kubeletconf

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// k3sKey is a key of k3s and rke2 that sets a flag of the kubelet.
type k3sKey struct {
	flag string
	// inFile reports that k3s writes the value to the first of the kubelet's files, so that later ones replace it.
	inFile bool
}

// k3sKeys returns the keys of k3s and rke2 (k3s: kubeletArgsAndConfig, defaultKubeletConfig).
func k3sKeys() map[string]k3sKey {
	return map[string]k3sKey{
		"node-name":                         {"hostname-override", false},
		"node-ip":                           {"node-ip", false},
		"node-label":                        {"node-labels", false},
		"image-credential-provider-bin-dir": {"image-credential-provider-bin-dir", false},
		"image-credential-provider-config":  {"image-credential-provider-config", false},
		"pause-image":                       {"pod-infra-container-image", false},
		"node-taint":                        {"register-with-taints", true},
		"container-runtime-endpoint":        {"container-runtime-endpoint", true},
		"image-service-endpoint":            {"image-service-endpoint", true},
		"resolv-conf":                       {"resolv-conf", true},
		"protect-kernel-defaults":           {"protect-kernel-defaults", true},
		"cluster-dns":                       {"cluster-dns", true},
		"cluster-domain":                    {"cluster-domain", true},
	}
}

// isK3sKey reports whether a key has the form of a flag of k3s. A plus at its end adds to a list.
func isK3sKey(key string) bool { return regexp.MustCompile(`^[a-z][a-z0-9-]*\+?$`).MatchString(key) }

// longKey returns the key of a flag, which can be its first letter.
func longKey(key string) string {
	switch key {
	case "c":
		return "config"
	case "d":
		return "data-dir"
	case "i":
		return "node-ip"
	default:
		return key
	}
}

// k3s has the settings of k3s or rke2, with their origins.
type k3s map[string][]argument

// addK3s adds a configuration of k3s or rke2, or one of its drop-ins: keys are flags, and lists are repeated flags. A
// later file replaces the value of a key.
func (f *Files) addK3s(name string, tree map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		if !isK3sKey(key) {
			// The key can be a secret if the file is of another kind.
			return fmt.Errorf("%s is neither a configuration of a kubelet nor one of k3s", name)
		}
		values, err := textsOf(tree[key])
		if err != nil {
			return fmt.Errorf("%s: %s: %w", name, key, err)
		}
		bare, adds := strings.CutSuffix(key, "+")
		bare = longKey(bare)
		if before := f.k3s[bare]; !adds && len(before) > 0 {
			f.Notes = append(f.Notes, fmt.Sprintf("%s: %s replaces that of %s", name, key, before[0].origin))
			delete(f.k3s, bare)
		}
		f.k3s[bare] = append(f.k3s[bare], argumentsOf(name, values)...)
	}
	f.k3sFile = name
	return nil
}

// isK3s reports whether a command starts k3s or rke2. systemd allows signs before the path of the program.
func isK3s(command []string) bool {
	if len(command) == 0 {
		return false
	}
	program := filepath.Base(command[0])
	return program == "k3s" || program == "rke2"
}

// fromVariables returns the settings in variables of k3s. Other settings of the kubelet have no variable.
func fromVariables(variables map[string]string, origin string) k3s {
	all := k3s{}
	for name, value := range variables {
		product, key, _ := strings.Cut(name, "_")
		if product != "K3S" && product != "RKE2" {
			continue
		}
		switch key = strings.ToLower(strings.ReplaceAll(key, "_", "-")); key {
		case "config-file":
			key = "config"
		case "node-name", "resolv-conf", "data-dir":
		default:
			key = name
		}
		all[key] = []argument{{value, origin}}
	}
	return all
}

// withCommand returns the settings with those of a command line of k3s and of its variables. k3s reads the files as
// flags before those of the command line: lists are joined, and the last of other values counts (k3s: Parser.Parse).
func (k k3s) withCommand(unit string, words []string, variables map[string]string) k3s {
	all := fromVariables(variables, unit)
	for key, values := range k {
		if key != "config" || len(all[key]) == 0 { // The variable of the configuration takes precedence.
			all[key] = slices.Clone(values)
		}
	}
	for i := 0; i < len(words); i++ {
		name, value, assigned := strings.Cut(words[i], "=")
		if !strings.HasPrefix(name, "-") {
			continue
		}
		if !assigned {
			value = "true"
			if i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
				i++
				value = words[i]
			}
		}
		name = longKey(strings.TrimLeft(name, "-"))
		if name != "config" || len(all[name]) == 0 {
			all[name] = append(all[name], argument{value, unit})
		}
	}
	return all
}

// isK3sList reports whether a key of k3s can be repeated.
func isK3sList(key string) bool {
	switch key {
	case "kubelet-arg", "node-label", "node-taint", "node-ip", "cluster-dns":
		return true
	default:
		return false
	}
}

// value returns the value of a key as one text, with the origin of its last part.
func (k k3s) value(key string) (argument, bool) {
	all := k[key]
	if len(all) == 0 {
		return argument{}, false
	}
	last := all[len(all)-1]
	if isK3sList(key) {
		texts := make([]string, 0, len(all))
		for _, one := range all {
			texts = append(texts, one.word)
		}
		last.word = strings.Join(texts, ",")
	}
	return last, true
}

// inFile returns the flags whose values k3s writes to the first file of its kubelet.
func (k k3s) inFile() (all []argument) {
	known := k3sKeys()
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if value, isSet := k.value(key); isSet && known[key].inFile {
			all = append(all, argument{"--" + known[key].flag + "=" + value.word, value.origin})
		}
	}
	return all
}

// arguments returns the flags that k3s passes to its kubelet. A flag of kubelet-arg replaces that of a key. With a plus
// or a minus at its end, it adds to it (k3s: GetArgs).
func (k k3s) arguments() []argument {
	var all []argument
	known, own := k3sKeys(), map[string]argument{}
	for key, to := range known {
		if value, isSet := k.value(key); isSet && !to.inFile {
			own[to.flag] = value
		}
	}
	for _, value := range k["kubelet-arg"] {
		name, text, assigned := strings.Cut(strings.TrimPrefix(value.word, "--"), "=")
		flag := strings.TrimRight(name, "+-")
		before, isSet := own[flag]
		delete(own, flag)
		this := argument{"--" + flag + "=" + text, value.origin}
		if !assigned {
			this.word = "--" + flag
		}
		before.word = "--" + flag + "=" + before.word
		switch {
		case isSet && strings.HasSuffix(name, "+"):
			all = append(all, before, this)
		case isSet && strings.HasSuffix(name, "-"):
			all = append(all, this, before)
		default:
			all = append(all, this)
		}
	}
	var kept []argument
	for _, flag := range slices.Sorted(maps.Keys(own)) {
		kept = append(kept, argument{"--" + flag + "=" + own[flag].word, own[flag].origin})
	}
	return append(kept, all...)
}

// others returns the keys that set no flag of the kubelet.
func (k k3s) others() (keys []string) {
	known := k3sKeys()
	for _, key := range slices.Sorted(maps.Keys(k)) {
		_, isFlag := known[key]
		isVariable := strings.HasPrefix(key, "K3S_") || strings.HasPrefix(key, "RKE2_")
		switch key {
		case "kubelet-arg", "config", "data-dir", "docker", "with-node-id":
			continue
		}
		if !isFlag && (isK3sKey(key) || isVariable) {
			keys = append(keys, key)
		}
	}
	return keys
}

// k3sOrder returns the name of a configuration that decides about its precedence: k3s copies those that flags name to
// the directory of the others.
func k3sOrder(f *Files, file string) string {
	const dir = "/kubelet.conf.d/"
	if _, name, inDir := strings.Cut(file, dir); inDir {
		return name
	}
	for _, s := range f.flags() {
		if s.row != nil && s.row.Flag == configDirFlag && strings.HasPrefix(file, filepath.Clean(s.text)+"/") {
			return "20-cli-config-dir/" + file
		}
	}
	return "10-cli-config.conf"
}

// isK3sDefaults reports whether k3s writes a file at each start.
func isK3sDefaults(file string) bool {
	return strings.HasSuffix(file, "/00-k3s-defaults.conf") || strings.HasSuffix(file, "/00-rke2-defaults.conf")
}

// k3sDefaults returns what is the same in each installation of k3s or rke2.
func (f *Files) k3sDefaults() []Row {
	k, file := f.k3sSettings()
	if file == "" {
		return nil
	}
	data := "/var/lib/rancher/" + productOf(file)
	if dir, _ := k.value("data-dir"); filepath.IsAbs(dir.word) {
		data = dir.word
	}
	data = filepath.Join(data, "agent")
	socket := "unix:///run/k3s/containerd/containerd.sock"
	if docker, _ := k.value("docker"); docker.word == "true" {
		socket = "unix:///run/k3s/cri-dockerd/cri-dockerd.sock"
	}
	const disks = "imagefs.available%s5%%,nodefs.available%[1]s5%%"
	hard := fmt.Sprintf(disks, "<")
	reclaim := strings.ReplaceAll(fmt.Sprintf(disks, "="), "5%", "10%")
	var rows []Row
	for _, d := range []struct{ flag, value string }{
		{"kubeconfig", data + "/kubelet.kubeconfig"},
		{"pod-manifest-path", data + "/pod-manifests"},
		{"container-runtime-endpoint", socket},
		{"client-ca-file", data + "/client-ca.crt"},
		{"tls-cert-file", data + "/serving-kubelet.crt"},
		{"tls-private-key-file", data + "/serving-kubelet.key"},
		{"serialize-image-pulls", "false"},
		{"eviction-hard", hard},
		{"eviction-minimum-reclaim", reclaim},
	} {
		rows = append(rows, f.table.flags[d.flag].otherwise(d.value))
	}
	return rows
}

// productOf returns the distribution that a file belongs to.
func productOf(file string) string {
	if strings.Contains(file, "rke2") {
		return "rke2"
	}
	return "k3s"
}

// k3sNotes lists what was not examined. It shows no values, because they may be secret, such as the token.
func (f *Files) k3sNotes() (notes []string) {
	k, file := f.k3sSettings()
	if file == "" {
		return nil
	}
	product := productOf(file)
	notes = append(notes, file+": "+product+" contains the container runtime and kube-proxy, which end with it: "+
		"start containerd and a network for pods before podctl")
	if len(f.documents) == 0 {
		notes = append(notes, file+": no file has the settings that "+product+" computes, such as --cluster-dns: "+
			"copy them from its log (Running kubelet) into --kubelet-args")
	}
	if id, _ := k.value("with-node-id"); cmp.Or(id.word, "false") != "false" {
		notes = append(notes, id.origin+": with-node-id adds an ID to the node name: "+
			"set node-name to the name of the Node")
	}
	for _, key := range slices.Sorted(maps.Keys(f.k3s)) {
		if before, now := f.k3s[key], k[key]; len(now) > len(before) && !isK3sList(key) {
			last := now[len(now)-1]
			notes = append(notes, fmt.Sprintf("%s: %s replaces that of %s", last.origin, key, before[0].origin))
		}
	}
	if others := k.others(); len(others) > 0 {
		notes = append(notes, fmt.Sprintf("%s: keys of %s were not examined: %s",
			file, product, strings.Join(others, ", ")))
	}
	return notes
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
