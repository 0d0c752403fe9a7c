package volume

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/podctl/podctl/podspec"
)

// Digest identifies content: the same digest, the same paths, modes, groups and
// bytes. Of content that comes from Secrets it must not be told: see mounter.digest.
func Digest(content map[string]File) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(content)) {
		f := content[name]
		_, _ = fmt.Fprintf(h, "%q %o %d %d\n", name, f.Mode.Perm(), f.GID, len(f.Data)) // A hash takes every write.
		_, _ = h.Write(f.Data)
	}
	return sha256Prefix + hex.EncodeToString(h.Sum(nil))
}

const sha256Prefix = "sha256:"

// digest identifies a volume's content in a form that may be told. Whoever knows the
// digest of a secret can try values until one fits, so what comes from Secrets is
// digested with the machine's key, apart from the names and modes of the files.
func (m *mounter) digest(content map[string]File) string {
	if !podspec.UsesSecret(m.vol) {
		return Digest(content)
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(content)) {
		_, _ = fmt.Fprintf(h, "%q %o %d\n", name, content[name].Mode.Perm(), content[name].GID)
	}
	return m.Desired.Seal(sha256Prefix+hex.EncodeToString(h.Sum(nil)), []byte(Digest(content)))
}

// Wanted is the digest that a volume's content should have now; empty for a
// volume whose content podctl does not write.
func Wanted(c Context, name string) (string, error) {
	m, err := c.find(name)
	if err != nil || !HasContent(m.vol) {
		return "", err
	}
	files, err := collector{m}.content()
	if err != nil {
		return "", err
	}
	return m.digest(files), nil
}

// incomplete stands for the digest of content that was not finished, or that a container has
// changed: its links are not as they should be, or there is more than podctl wrote. It is no
// digest of anything.
const incomplete = "incomplete"

// State is what is known of a volume before a pass.
type State struct {
	Name string
	// Prepared reports whether the volume is ready to be mounted, and Digest is that of its content if podctl writes it. A
	// volume that cannot be read counts as not prepared: preparing it says why.
	Prepared bool
	Digest   string
	// Unfinished reports whether podctl is yet to write the content: what lies there now says nothing.
	Unfinished bool
	// Fault is why the volume cannot be made ready.
	Fault error
}

// Look looks at the volumes that a pod uses, in the order of its manifest. It changes nothing.
func Look(c Context) []State {
	var all []State
	for _, vol := range podspec.UsedVolumes(c.Desired.Pod) {
		s := State{Name: vol.Name, Fault: faultOf(c, vol.Name)}
		if digest, prepared, err := onDisk(c, vol.Name); err == nil {
			s.Digest, s.Prepared = digest, prepared
		}
		if HasContent(vol) {
			wanted, err := Wanted(c, vol.Name)
			s.Unfinished = err != nil || s.Digest != wanted
		}
		all = append(all, s)
	}
	return all
}

// onDisk returns what lies on disk for a volume: whether it is prepared, and for
// one whose content podctl writes, the content's digest. A volume that needs no
// preparation is prepared; a hostPath is when it is of its type.
func onDisk(c Context, name string) (digest string, prepared bool, err error) {
	m, err := c.find(name)
	if err != nil {
		return "", false, err
	}
	switch vol := m.vol; {
	case vol.HostPath != nil:
		return "", checkHostPath(vol.HostPath, m.at) == nil, nil
	case vol.Image != nil:
		return "", true, nil
	case vol.PersistentVolumeClaim != nil:
		prepared, err = claimDir{c, c.claim(vol)}.ready()
		return "", prepared, err
	case pluginOf(vol) == "":
		return "", false, &UnsupportedError{Path: m.at}
	}
	prepared, err = m.ready()
	if err != nil || !prepared || !HasContent(m.vol) {
		return "", prepared, err
	}
	digest, err = m.read()
	if err != nil {
		return "", false, fmt.Errorf("reading volume %q: %w", name, err)
	}
	if m.lacksMountPoint(digest) {
		return "", false, nil
	}
	return digest, true, nil
}

// lacksMountPoint reports whether a volume with the content that it should have lacks a mount point
// of another volume: the mount is newer than the content, and the volume is prepared once more.
// Other content brings the mount points with it.
func (m *mounter) lacksMountPoint(have string) bool {
	wanted, err := Wanted(m.Context, m.vol.Name)
	if err != nil || have != wanted {
		return false
	}
	path, err := m.path()
	if err != nil {
		return false
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return false
	}
	defer root.Close() //nolint:errcheck // A handle on a directory.
	return slices.ContainsFunc(nestedMounts(m.Desired.Pod, m.vol.Name), func(mount string) bool {
		_, err := root.Stat(mount)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// read is the digest of the content on disk. It was there once: without it the volume is not
// complete.
func (m *mounter) read() (string, error) {
	w, err := m.openWriter()
	if err != nil {
		return "", err
	}
	defer w.close()
	current, sound, err := w.current()
	if err != nil {
		return "", err
	}
	if !sound || current == nil {
		return incomplete, nil
	}
	if complete, err := w.linked(current); err != nil || !complete {
		return incomplete, err
	}
	return m.digest(current), nil
}
