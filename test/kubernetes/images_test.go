package kubernetes

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	imageutils "k8s.io/kubernetes/test/utils/image"
)

// Kubernetes' node tests name images of registry.k8s.io. These images have the same names, and contain programs of this
// machine and of k8s.io/kubernetes/test/images.

const (
	users = "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\n" +
		"nobody:x:65534:65534:nobody:/:/bin/false\n"
	groups = "root:x:0:\ndaemon:x:1:\nnogroup:x:65534:\n"
	// nmeter prints the time of day with milliseconds. The busybox of Debian does not have this command.
	nmeter = "#!/usr/bin/sh\nnow=$EPOCHREALTIME\nTZ=UTC printf '%(%T)T.%.3s\\n' \"${now%.*}\" \"${now#*.}\"\n"
)

// layer is a layer of an image. Its methods add entries.
type layer struct {
	text bytes.Buffer
	tar  *tar.Writer
}

// newLayer calls fill with an empty layer, and returns the bytes of the result.
func newLayer(t *testing.T, fill func(l *layer)) []byte {
	t.Helper()
	l := &layer{}
	l.tar = tar.NewWriter(&l.text)
	fill(l)
	if err := l.tar.Close(); err != nil {
		t.Fatal(err)
	}
	return l.text.Bytes()
}

func (l *layer) add(t *testing.T, header *tar.Header, body []byte) {
	t.Helper()
	header.Size = int64(len(body))
	if err := l.tar.WriteHeader(header); err != nil {
		t.Fatal(err)
	}
	if _, err := l.tar.Write(body); err != nil {
		t.Fatal(err)
	}
}

func (l *layer) dirs(t *testing.T, mode int64, paths ...string) {
	t.Helper()
	for _, p := range paths {
		l.add(t, &tar.Header{Typeflag: tar.TypeDir, Name: p + "/", Mode: mode}, nil)
	}
}

func (l *layer) link(t *testing.T, path, target string) {
	t.Helper()
	l.add(t, &tar.Header{Typeflag: tar.TypeSymlink, Name: path, Linkname: target, Mode: 0o777}, nil)
}

func (l *layer) file(t *testing.T, path string, mode int64, text string) {
	t.Helper()
	l.add(t, &tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: mode}, []byte(text))
}

func (l *layer) copy(t *testing.T, path string, mode int64, source string) {
	t.Helper()
	body, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	l.file(t, path, mode, string(body))
}

var library = regexp.MustCompile(`(?m)/(\S+) \(0x`)

// programs copies programs of this machine, and the libraries that they are linked to.
func (l *layer) programs(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		source, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		l.copy(t, filepath.Join(dir, name), 0o755, source)
		libraries, _ := exec.CommandContext(t.Context(), "ldd", source).Output() // it fails for a static program
		for _, m := range library.FindAllSubmatch(libraries, -1) {
			l.copy(t, string(m[1]), 0o755, "/"+string(m[1]))
		}
	}
}

// addBusybox adds busybox and the files of a small distribution. The shell in /bin is busybox; the one that PATH finds
// is bash, because the shell of Debian's busybox keeps variables with invalid names, which the tests of references look for.
func addBusybox(t *testing.T, l *layer) {
	l.dirs(t, 0o1777, "tmp", "var/tmp")
	l.dirs(t, 0o755, "dev", "etc", "home", "proc", "sys", "root", "sbin", "usr/sbin", "usr/local/bin", "var/log", "mnt")
	l.programs(t, "bin", "busybox")
	commands, err := exec.CommandContext(t.Context(), "busybox", "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(commands)) {
		if name != "busybox" && name != "nmeter" {
			l.link(t, "bin/"+name, "busybox")
		}
		if name != "busybox" && name != "sh" && name != "bash" {
			l.link(t, "usr/bin/"+name, "../../bin/"+name)
		}
	}
	l.programs(t, "usr/bin", "bash")
	l.link(t, "usr/bin/sh", "bash")
	l.file(t, "bin/nmeter", 0o755, nmeter)
	l.file(t, "etc/passwd", 0o644, users)
	l.file(t, "etc/group", 0o644, groups)
	l.file(t, "etc/nsswitch.conf", 0o644, "hosts: files dns\n")
}

// addAgnhost adds agnhost and what Kubernetes' image of it has.
func addAgnhost(t *testing.T, l *layer, bin, sources string) {
	l.copy(t, "agnhost", 0o755, filepath.Join(bin, "agnhost"))
	l.link(t, "agnhost-2", "agnhost")
	l.dirs(t, 0o755, "uploads")
	l.file(t, "etc/os-release", 0o644, "NAME=\"Alpine Linux\"\n")
	for _, name := range []string{"localhost.crt", "localhost.key"} {
		l.copy(t, name, 0o644, filepath.Join(sources, "agnhost/porter", name))
	}
	// The shell of Debian's busybox-static runs its own nc, which lacks UDP, and not the one in /usr/bin.
	l.programs(t, "bin", "bash")
	l.link(t, "bin/sh", "bash")
	l.programs(t, "usr/bin", "curl", "nc.openbsd")
	l.link(t, "usr/bin/nc", "nc.openbsd")
	user := "user-defined-in-image"
	l.file(t, "etc/passwd", 0o644, users+user+":x:1000:1000::/home/"+user+":/bin/sh\n")
	l.file(t, "etc/group", 0o644, groups+user+":x:1000:\ngroup-defined-in-image:x:50000:"+user+"\n")
}

// addImages adds the images of Kubernetes' node tests. bin is the directory of the programs that make built, and
// sources the directory test/images of k8s.io/kubernetes.
func (n *node) addImages(t *testing.T, r *registry, bin, sources string) {
	t.Helper()
	stored := func(fill func(l *layer)) descriptor { return r.blob(t, ociLayer, newLayer(t, fill)) }
	add := func(id imageutils.ImageID, c imageConfig, layers ...descriptor) {
		r.image(t, imageutils.GetE2EImage(id), c, layers...)
	}
	shell, pause := imageConfig{Cmd: []string{"sh"}}, imageConfig{Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}}
	busybox := stored(func(l *layer) { addBusybox(t, l) })
	agnhost := stored(func(l *layer) { addAgnhost(t, l, bin, sources) })
	add(imageutils.BusyBox, shell, busybox)
	add(imageutils.NonRoot, imageConfig{User: "1234", Cmd: []string{"sh"}}, busybox)
	add(imageutils.Agnhost, pause, busybox, agnhost)
	add(imageutils.AgnhostPrev, pause, busybox, agnhost)

	kitten := stored(func(l *layer) {
		for _, name := range []string{"kitten.jpg", "data.json"} {
			l.copy(t, name, 0o644, filepath.Join(sources, "kitten/html", name))
		}
	})
	add(imageutils.Kitten, imageConfig{Entrypoint: []string{"/agnhost"}, Cmd: []string{"test-webserver"}}, busybox, agnhost, kitten)
	// A server on port 80, in a process with this name.
	nginx := stored(func(l *layer) { l.link(t, "usr/sbin/nginx", "/agnhost"); l.dirs(t, 0o755, "var/run") })
	serve := imageConfig{Cmd: []string{"/bin/sh", "-c", "echo $$ >/var/run/nginx.pid; exec /usr/sbin/nginx test-webserver"}}
	add(imageutils.Nginx, serve, busybox, agnhost, nginx)
	add(imageutils.NginxNew, serve, busybox, agnhost, nginx)

	add(imageutils.Pause, imageConfig{User: "65535:65535", Entrypoint: []string{"/pause"}}, stored(func(l *layer) {
		l.copy(t, "pause", 0o755, filepath.Join(n.images, "pause"))
		l.dirs(t, 0o755, "dev", "proc", "sys", "etc")
	}))
	add(imageutils.Nonewprivs, imageConfig{Cmd: []string{"nnp"}}, busybox, stored(func(l *layer) {
		l.copy(t, "usr/local/bin/nnp", 0o6755, filepath.Join(bin, "nonewprivs"))
	}))
	add(imageutils.IpcUtils, shell, busybox, stored(func(l *layer) { l.programs(t, "usr/bin", "ipcs", "ipcmk", "ipcrm") }))
	add(imageutils.GlibcDnsTesting, shell, busybox, stored(func(l *layer) {
		l.programs(t, "bin", "hostname")
		l.programs(t, "usr/bin", "hostname")
	}))
}
