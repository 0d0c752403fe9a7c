package kubernetes

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	imageutils "k8s.io/kubernetes/test/utils/image"
)

const (
	// webImage has a server on port 8080, a shell and curl. The pull secret of privateImage is needed to pull it.
	webImage     = "registry.example.com/web:1"
	newWebImage  = "registry.example.com/web:2"
	privateImage = "private.example.com/web:1"
	pullUser     = "puller"
	pullPassword = "pull-password"

	applicationsDir = "testdata/applications"
)

// addClusterImages adds the images of the pods of TestCluster.
func (c *cluster) addClusterImages(t *testing.T) {
	t.Helper()
	r := c.images
	stored := func(fill func(l *layer)) descriptor { return r.blob(t, ociLayer, newLayer(t, fill)) }
	busybox := stored(func(l *layer) { addBusybox(t, l) })
	agnhost := stored(func(l *layer) {
		addAgnhost(t, l, setting(t, "KUBERNETES_BIN"), setting(t, "KUBERNETES_IMAGES"))
	})
	r.image(t, imageutils.GetE2EImage(imageutils.Pause), imageConfig{User: "65535:65535", Entrypoint: []string{"/pause"}},
		stored(func(l *layer) { l.copy(t, "pause", 0o755, filepath.Join(c.node.images, "pause")) }))
	serve := imageConfig{Entrypoint: []string{"/agnhost"}, Cmd: []string{"netexec", "--http-port=8080"}}
	for _, name := range []string{webImage, newWebImage, privateImage} {
		r.image(t, name, serve, busybox, agnhost)
	}
	r.private = map[string]string{"private.example.com": pullUser + ":" + pullPassword}
	r.image(t, "registry.example.com/network:1", imageConfig{Cmd: []string{"sh"}}, busybox, agnhost,
		stored(func(l *layer) { addPlugins(t, l) }))
	r.image(t, "registry.k8s.io/kube-proxy:v1.36.3", imageConfig{}, busybox, stored(func(l *layer) {
		l.copy(t, "usr/local/bin/controlplane", 0o755, c.controlPlane)
		l.file(t, "usr/local/bin/kube-proxy", 0o755, "#!/bin/sh\nexec /usr/local/bin/controlplane kube-proxy \"$@\"\n")
		l.programs(t, "usr/sbin", "nft")
		// Without names of protocols, nft prints numbers. A kube-proxy that starts again then removes all its Services.
		l.file(t, "etc/protocols", 0o644, "tcp 6 TCP\nudp 17 UDP\nsctp 132 SCTP\n")
	}))
	r.image(t, "registry.k8s.io/coredns/coredns:v1.14.3", imageConfig{Entrypoint: []string{"/coredns"}},
		stored(func(l *layer) { l.copy(t, "coredns", 0o755, filepath.Join(setting(t, "KUBERNETES_BIN"), "coredns")) }))
	server := imageConfig{Entrypoint: []string{"/metrics-server"}}
	r.image(t, "registry.k8s.io/metrics-server/metrics-server:v0.9.0", server, stored(func(l *layer) {
		l.copy(t, "metrics-server", 0o755, filepath.Join(setting(t, "KUBERNETES_BIN"), "metrics-server"))
	}))
	c.addApplications(t, busybox, agnhost)
}

// addPlugins adds the CNI plugins of this machine.
func addPlugins(t *testing.T, l *layer) {
	t.Helper()
	for _, dir := range []string{"/opt/cni/bin", "/usr/lib/cni"} {
		if _, err := os.Stat(filepath.Join(dir, "bridge")); err != nil {
			continue
		}
		for _, name := range []string{"bridge", "host-local", "loopback", "portmap"} {
			l.copy(t, filepath.Join("cni", name), 0o755, filepath.Join(dir, name))
		}
		return
	}
	t.Fatal("this machine has no CNI plugins")
}

var imageLine = regexp.MustCompile(`(?m)^\s*-?\s*image: (\S+)(?: *# serves (.*))?$`)

// addApplications adds all images that the manifests of applications name. A comment after the name of an image is the
// command that the image has: "redis:8 # serves agnhost netexec --http-port=6379".
func (c *cluster) addApplications(t *testing.T, layers ...descriptor) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(applicationsDir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no applications: %v", err)
	}
	for _, file := range files {
		for _, m := range imageLine.FindAllStringSubmatch(read(t, file), -1) {
			name, command := fullName(m[1]), m[2]
			if _, known := c.images.manifests[name]; known || command == "" {
				continue
			}
			c.images.image(t, name, imageConfig{Cmd: []string{"/bin/sh", "-c", "exec /" + command}}, layers...)
		}
	}
}

// fullName completes the name of an image: with the registry and the library of Docker, and the tag.
func fullName(name string) string {
	if !strings.Contains(path.Base(name), ":") {
		name += ":latest"
	}
	registry, rest, found := strings.Cut(name, "/")
	switch {
	case !found:
		return "docker.io/library/" + name
	case !strings.ContainsAny(registry, ".:"):
		return "docker.io/" + name
	case registry == "docker.io" && !strings.Contains(rest, "/"):
		return "docker.io/library/" + rest
	}
	return name
}

// tables returns the tables of nftables, such as "ip kube-proxy".
func tables(t *testing.T) []string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "nft", "list", "tables").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		all = append(all, strings.TrimPrefix(strings.TrimSpace(line), "table "))
	}
	return all
}
