package kubernetes

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
)

const (
	registryAddress = "127.0.0.1:5005"
	ociLayer        = "application/vnd.oci.image.layer.v1.tar"
	ociConfig       = "application/vnd.oci.image.config.v1+json"
	ociManifest     = "application/vnd.oci.image.manifest.v1+json"
)

// registry serves the images that were added to it, under any name.
type registry struct {
	// dir has one file for each blob and manifest, named by its digest.
	dir string
	// manifests maps names such as registry.k8s.io/pause:3.10.2 to digests.
	manifests map[string]string
	// private maps registries that need a login to "USER:PASSWORD".
	private map[string]string
}

// descriptor describes a blob, as in the OCI image specification.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

// imageConfig is the config field of an OCI image configuration.
type imageConfig struct {
	User       string            `json:",omitempty"`
	Env        []string          `json:",omitempty"`
	Entrypoint []string          `json:",omitempty"`
	Cmd        []string          `json:",omitempty"`
	WorkingDir string            `json:",omitempty"`
	Labels     map[string]string `json:",omitempty"`
}

func (r *registry) blob(t *testing.T, mediaType string, body []byte) descriptor {
	t.Helper()
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(body))
	write(t, filepath.Join(r.dir, digest), string(body))
	return descriptor{mediaType, digest, len(body)}
}

func (r *registry) document(t *testing.T, mediaType string, value any) descriptor {
	t.Helper()
	body, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return r.blob(t, mediaType, body)
}

// image adds an image. A label makes its digest unlike that of another image with the same contents.
func (r *registry) image(t *testing.T, name string, config imageConfig, layers ...descriptor) {
	t.Helper()
	config.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, config.Env...)
	config.WorkingDir = "/"
	config.Labels = map[string]string{"replaces": name}
	digests := make([]string, len(layers))
	for i, l := range layers {
		digests[i] = l.Digest
	}
	described := r.document(t, ociConfig, map[string]any{
		"architecture": goruntime.GOARCH, "os": "linux", "config": config,
		"rootfs": map[string]any{"type": "layers", "diff_ids": digests},
	})
	r.manifests[name] = r.document(t, ociManifest, map[string]any{
		"schemaVersion": 2, "mediaType": ociManifest, "config": described, "layers": layers,
	}).Digest
}

// serve answers pulls until the test ends.
func (r *registry) serve(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", registryAddress) //nolint:noctx // it is not slow
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: r} //nolint:gosec // only containerd connects to it
	go server.Serve(listener)          //nolint:errcheck // Close ends it
	t.Cleanup(func() { _ = server.Close() })
}

// ServeHTTP answers /v2/, /v2/NAME/manifests/TAG-OR-DIGEST and /v2/NAME/blobs/DIGEST. The parameter ns is the name of
// the registry that containerd pulls from.
func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if login := r.private[request.URL.Query().Get("ns")]; login != "" {
		if user, password, _ := request.BasicAuth(); user+":"+password != login {
			w.Header().Set("WWW-Authenticate", `Basic realm="tests"`)
			http.Error(w, "no login", http.StatusUnauthorized)
			return
		}
	}
	words := strings.Split(strings.TrimPrefix(request.URL.Path, "/v2/"), "/")
	if len(words) < 3 {
		w.WriteHeader(http.StatusOK)
		return
	}
	repository, kind, digest := strings.Join(words[:len(words)-2], "/"), words[len(words)-2], words[len(words)-1]
	contentType := "application/octet-stream"
	if kind == "manifests" {
		contentType = ociManifest
		if !strings.HasPrefix(digest, "sha256:") {
			digest = r.manifests[request.URL.Query().Get("ns")+"/"+repository+":"+digest]
		}
	}
	if _, err := os.Stat(filepath.Join(r.dir, digest)); digest == "" || err != nil {
		http.NotFound(w, request)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Docker-Content-Digest", digest)
	http.ServeFile(w, request, filepath.Join(r.dir, digest))
}
