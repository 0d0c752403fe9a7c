//go:build e2e

package e2e

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sys/unix"
)

// imageItem is one image in `image ls -o json`.
type imageItem struct {
	ID      string
	Tags    []string
	Digests []string
	Pinned  bool
	UsedBy  []struct {
		Container string
		Running   bool
	}
	NamedBy []struct{ Name string }
}

// image returns the entry of a tag in `image ls`, or nil if there is none.
func (m *machine) image(t *testing.T, tag string) *imageItem {
	t.Helper()
	var list struct{ Items []*imageItem }
	if err := json.Unmarshal([]byte(m.must(t, "image", "ls", "-o", "json").stdout), &list); err != nil {
		t.Fatal(err)
	}
	for _, img := range list.Items {
		if slices.Contains(img.Tags, tag) {
			return img
		}
	}
	return nil
}

// slowRegistry serves an image with two layers slowly, so that the progress can be observed.
func slowRegistry(t *testing.T, pause time.Duration) string {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			w = &slowWriter{ResponseWriter: w, pause: pause}
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/slow:1")
	if err != nil {
		t.Fatal(err)
	}
	img, err := random.Image(3<<20, 2)
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file.OS, file.Architecture = "linux", "amd64"
	if img, err = mutate.ConfigFile(img, file); err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	return ref.Name()
}

// slowWriter pauses between writes.
type slowWriter struct {
	http.ResponseWriter
	pause time.Duration
}

func (w *slowWriter) Write(p []byte) (written int, err error) {
	for chunk := range slices.Chunk(p, 512<<10) {
		n, err := w.ResponseWriter.Write(chunk)
		written += n
		if err != nil {
			return written, err
		}
		if len(chunk) == 512<<10 {
			time.Sleep(w.pause)
		}
	}
	return written, nil
}

// testImages: images are listed with their users, saved, removed and loaded again, and an image in use is kept. The
// test has its own node, because other tests use the same image under other names.
func testImages(t *testing.T, _ *machine) {
	m := newMachine(t)
	const demo = "registry.local/podctl/demo:1"
	m.must(t, "apply", "--wait", "--timeout", "30s", write(t, two))
	if img := m.image(t, demo); img == nil || len(img.UsedBy) != 2 || !img.UsedBy[0].Running || len(img.NamedBy) != 1 {
		t.Errorf("the image of a running pod: %+v", img)
	}
	if img := m.image(t, "registry.local/podctl/pause:1"); img == nil || !img.Pinned {
		t.Errorf("the sandboxes' image: %+v", img)
	}
	for _, c := range []struct{ args, want string }{
		{"ls", "registry.local/podctl/demo    1"},
		{"ls", "default/two"},
		{"ls", "the runtime"},
		{"ls -o name", demo + "\n"},
		{"ls -q", m.image(t, demo).ID + "\n"},
	} {
		if r := m.must(t, append([]string{"image"}, strings.Fields(c.args)...)...); !strings.Contains(r.stdout, c.want) {
			t.Errorf("image %s: %q is missing in\n%s", c.args, c.want, r.stdout)
		}
	}
	r := m.run(t, "image", "rm", demo)
	if r.code != 1 || !strings.Contains(r.stderr, "of pod default/two (running)") || m.image(t, demo) == nil {
		t.Errorf("removing an image in use: exit code %d\n%s", r.code, r.stderr)
	}
	archive := filepath.Join(t.TempDir(), "demo.tar")
	m.must(t, "image", "save", demo, "-o", archive)
	m.must(t, "delete", "two")
	testImageLoad(t, m, demo, archive)
	if r := m.run(t, "image", "save", "registry.local/absent:1", "-o", archive+"2"); r.code != 1 ||
		!strings.Contains(r.stderr, "is absent") {
		t.Errorf("saving a missing image: exit code %d\n%s", r.code, r.stderr)
	}
	if _, err := os.Stat(archive + "2"); err == nil {
		t.Error("a failed save left a file")
	}
	for path, wantMessage := range map[string]string{
		"/etc/passwd": "not an image archive", "/dev/null": "archive", "/absent": "no such file",
	} {
		if r := m.run(t, "image", "load", path); r.code != 1 || !strings.Contains(r.stderr, wantMessage) {
			t.Errorf("loading %s: exit code %d\n%s", path, r.code, r.stderr)
		}
	}
}

// testImageLoad: a saved image can be loaded, also compressed and from a pipe, and a pod with it runs.
func testImageLoad(t *testing.T, m *machine, image, archive string) {
	if r := m.must(t, "image", "rm", image); r.stdout != "removed "+image+"\n" || m.image(t, image) != nil {
		t.Errorf("rm prints %q", r.stdout)
	}
	if r := m.must(t, "image", "load", archive); r.stdout != "loaded "+image+"\n" || m.image(t, image) == nil {
		t.Errorf("load prints %q", r.stdout)
	}
	m.must(t, "image", "rm", m.image(t, image).ID[7:19])
	in, out := io.Pipe()
	go func() {
		zip := gzip.NewWriter(out)
		f, err := os.Open(archive)
		if err == nil {
			_, err = io.Copy(zip, f)
		}
		if err == nil {
			err = zip.Close()
		}
		out.CloseWithError(err)
	}()
	cmd := m.command(t.Context(), "image", "load", "-")
	cmd.Stdin = in
	if r := m.runWith(t, cmd); r.code != 0 || r.stdout != "loaded "+image+"\n" {
		t.Errorf("load by a pipe: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	m.must(t, "apply", "--wait", "--timeout", "30s", write(t, two))
	m.must(t, "delete", "two")
}

// testImagePull: a pull shows its progress on a terminal, and uses the pull secrets of a manifest.
func testImagePull(t *testing.T, _ *machine) {
	m := newMachine(t)
	slow := slowRegistry(t, 150*time.Millisecond)
	shown := onTerminal(t, m, "image", "pull", slow)
	if !strings.Contains(shown, "MiB of ") || !strings.Contains(shown, "parts") ||
		!strings.Contains(shown, "pulled "+slow+"  sha256:") {
		t.Errorf("the terminal showed:\n%q", shown)
	}
	private := privateRegistry(t, "reader", "s3cret")
	if r := m.run(t, "image", "pull", private); r.code != 1 || !strings.Contains(r.stderr, "denies access") {
		t.Errorf("without credentials: exit code %d\n%s", r.code, r.stderr)
	}
	host, _, _ := strings.Cut(private, "/")
	config := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host,
		base64.StdEncoding.EncodeToString([]byte("reader:s3cret")))
	manifest := write(t, fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: login}
type: kubernetes.io/dockerconfigjson
data: {.dockerconfigjson: %s}
---
apiVersion: v1
kind: Pod
metadata: {name: private}
spec:
  imagePullSecrets: [{name: login}]
  containers: [{name: app, image: %q}]
`, base64.StdEncoding.EncodeToString([]byte(config)), private))
	if r := m.must(t, "image", "pull", "-f", manifest); !strings.Contains(r.stdout, "pulled "+private) ||
		strings.Contains(r.stdout+r.stderr, "s3cret") {
		t.Errorf("with a pull secret:\n%s%s", r.stdout, r.stderr)
	}
	testImagePullConfig(t, m, private, config)
	testPlanPin(t, m, private, manifest)
	r := m.must(t, "image", "prune", "--dry-run")
	if !strings.Contains(r.stdout, strings.TrimSuffix(slow, ":1")) || strings.Contains(r.stdout, "podctl/pause") ||
		!strings.Contains(r.stdout, "Would remove") {
		t.Errorf("prune --dry-run:\n%s", r.stdout)
	}
	testImagePrune(t, m, slow, private)
}

// testImagePullConfig: pull finds the credentials of docker login.
func testImagePullConfig(t *testing.T, m *machine, image, config string) {
	r := m.run(t, "image", "rm", image)
	if r.code != 0 || !strings.Contains(r.stderr, "registry.local/podctl/demo:1") || m.image(t, image) != nil ||
		m.image(t, "registry.local/podctl/demo:1") == nil {
		t.Errorf("removing one of two names: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := m.command(t.Context(), "image", "pull", image)
	cmd.Env = append(cmd.Env, "DOCKER_CONFIG="+dir)
	if r := m.runWith(t, cmd); r.code != 0 {
		t.Errorf("with docker's config.json: exit code %d\n%s", r.code, r.stderr)
	}
}

// testPlanPin: plan replaces images by digests, and does not print Secrets.
func testPlanPin(t *testing.T, m *machine, image, manifest string) {
	digest := m.image(t, image).Digests[0]
	r := m.must(t, "plan", "--pin", manifest)
	if !strings.Contains(r.stdout, digest) || strings.Contains(r.stdout, "dockerconfigjson") ||
		!strings.Contains(r.stderr, "Secret login is not printed") {
		t.Errorf("plan --pin:\n%s%s", r.stdout, r.stderr)
	}
	if again := m.must(t, "plan", "--pin", write(t, r.stdout)); again.stdout != r.stdout {
		t.Errorf("pinned twice:\n%s", again.stdout)
	}
	r = m.run(t, "plan", "--pin", write(t, strings.Replace(two, "demo:1", "absent:1", 1)))
	if r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, "absent:1 is absent") ||
		!strings.Contains(r.stderr, "demo:1 has no digest") {
		t.Errorf("images without a digest: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// testImagePrune: images are kept if a container, the manifest of a pod or the runtime needs them.
func testImagePrune(t *testing.T, m *machine, unused, named string) {
	pod := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: named}\nspec:\n  restartPolicy: Never\n"+
		"  containers: [{name: app, image: %q, args: [exit, \"0\"]}]\n", named)
	m.must(t, "apply", "--wait=completed", "--timeout", "30s", write(t, pod))
	ended, err := m.cri.ListContainers(t.Context(), byPod("named"))
	if err != nil || len(ended.GetContainers()) != 1 {
		t.Fatalf("%v %v", ended, err)
	}
	removeContainer(t, m, ended.GetContainers()[0].GetId())
	r := m.must(t, "image", "prune")
	if !strings.Contains(r.stdout, "Removed ") || m.image(t, unused) != nil {
		t.Errorf("an unused image is kept:\n%s", r.stdout)
	}
	testDamagedCheckpoint(t, m)
	for _, kept := range []string{named, "registry.local/podctl/demo:1", "registry.local/podctl/pause:1"} {
		if m.image(t, kept) == nil {
			t.Errorf("%s was removed:\n%s", kept, r.stdout)
		}
	}
	m.must(t, "delete", "named")
}

// testDamagedCheckpoint: prune does not remove images if it cannot find out which ones are needed.
func testDamagedCheckpoint(t *testing.T, m *machine) {
	t.Helper()
	damaged := filepath.Join(m.state, "pods", "damaged", "checkpoint.json")
	if err := os.Mkdir(filepath.Dir(damaged), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(damaged, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := m.run(t, "image", "prune"); r.code != 1 ||
		!strings.Contains(r.stderr, "cannot determine which images are in use") {
		t.Errorf("with a damaged checkpoint: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := m.must(t, "image", "ls"); !strings.Contains(r.stderr, "it is damaged") {
		t.Errorf("ls with a damaged checkpoint:\n%s", r.stderr)
	}
	if err := os.RemoveAll(filepath.Dir(damaged)); err != nil {
		t.Fatal(err)
	}
}

// onTerminal runs podctl on a terminal and returns its output.
func onTerminal(t *testing.T, m *machine, args ...string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo terminals here")
	}
	if err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := m.command(t.Context(), args...)
	cmd.Stdout, cmd.Stderr = slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	shown, _ := io.ReadAll(master) // a terminal without users ends with an error
	_ = master.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("podctl %v: %v\n%s", args, err, shown)
	}
	return string(shown)
}
