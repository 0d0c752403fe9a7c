package volume

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// Digest identifies content: the same digest, the same paths, modes, groups and
// bytes. Of content that comes from Secrets it must not be told: see Context.digest.
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
func (c Context) digest(vol *v1.Volume, content map[string]File) string {
	if !podspec.UsesSecret(vol) {
		return Digest(content)
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(content)) {
		_, _ = fmt.Fprintf(h, "%q %o %d\n", name, content[name].Mode.Perm(), content[name].GID)
	}
	return c.Desired.Seal(sha256Prefix+hex.EncodeToString(h.Sum(nil)), []byte(Digest(content)))
}

// Wanted is the digest that a volume's content should have now; empty for a
// volume whose content podctl does not write.
func Wanted(c Context, name string) (string, error) {
	vol, _, err := c.find(name)
	if err != nil || !hasContent(vol) {
		return "", err
	}
	files, err := Content(c, vol)
	if err != nil {
		return "", err
	}
	return c.digest(vol, files), nil
}

// incomplete stands for the digest of content that was not finished, or that a container has
// changed: its links are not as they should be, or there is more than podctl wrote. It is no
// digest of anything.
const incomplete = "incomplete"

// OnDisk tells what lies on disk for a volume: whether it is prepared, and for
// one whose content podctl writes, the content's digest. A volume that needs no
// preparation is prepared; a hostPath is when it is of its type.
func OnDisk(c Context, name string) (digest string, prepared bool, err error) {
	vol, at, err := c.find(name)
	switch {
	case err != nil:
		return "", false, err
	case vol.HostPath != nil:
		return "", checkHostPath(vol.HostPath, at) == nil, nil
	case vol.Image != nil:
		return "", true, nil
	case vol.PersistentVolumeClaim != nil:
		prepared, err = c.claimReady(vol)
		return "", prepared, err
	case pluginOf(vol) == "":
		return "", false, &UnsupportedError{Path: at}
	}
	prepared, err = c.ready(vol)
	if err != nil || !prepared || !hasContent(vol) {
		return "", prepared, err
	}
	digest, err = c.read(vol)
	if err != nil {
		return "", false, fmt.Errorf("reading volume %q: %w", name, err)
	}
	return digest, true, nil
}

// read is the digest of the content on disk. It was there once: without it the volume is not
// complete.
func (c Context) read(vol *v1.Volume) (string, error) {
	w, err := openWriter(c, vol)
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
	return c.digest(vol, current), nil
}
