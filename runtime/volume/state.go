package volume

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Digest returns a digest of the paths, modes, owners and bytes of content. The digest of content from Secrets must not
// be shown; see mounter.digest.
func Digest(content map[string]File) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(content)) {
		f := content[name]
		_, _ = fmt.Fprintf(h, "%q %o %d %d\n", name, f.Mode.Perm(), f.GID, len(f.Data)) // A hash never fails to write.
		_, _ = h.Write(f.Data)
		if f.UID != 0 {
			_, _ = fmt.Fprintf(h, "\nowner %d\n", f.UID)
		}
	}
	return sha256Prefix + hex.EncodeToString(h.Sum(nil))
}

const sha256Prefix = "sha256:"

// digest returns a digest of the volume's content that may be shown. With a plain digest of a secret, a reader could
// try values until one matches. Therefore content from Secrets is digested with the machine's key; the names and modes
// of files are not.
func (m *mounter) digest(content map[string]File) string {
	if !podspec.UsesSecret(m.vol.Volume) {
		return Digest(content)
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(content)) {
		_, _ = fmt.Fprintf(h, "%q %o %d\n", name, content[name].Mode.Perm(), content[name].GID)
	}
	return m.Desired.Seal(sha256Prefix+hex.EncodeToString(h.Sum(nil)), []byte(Digest(content)))
}

// Wanted returns the digest that the volume's content should have now. It is empty if podctl does not write the
// content.
func Wanted(c Context, vol podspec.Volume) (string, error) {
	m := &mounter{c, vol}
	return m.wanted()
}

func (m *mounter) wanted() (string, error) {
	files, err := collector{m}.content()
	if err != nil || files == nil {
		return "", err
	}
	return m.digest(files), nil
}

// incomplete replaces the digest if the content is unfinished or was changed by a container: links differ, or the
// volume has files that podctl did not write.
const incomplete = "incomplete"

// State describes a volume before a pass.
type State struct {
	Name string
	// Prepared reports whether the volume is ready to be mounted. Digest is the digest of content that podctl writes. A
	// volume that cannot be read is not prepared: preparing it reports the reason.
	Prepared bool
	Digest   string
	// Unfinished reports whether the content on disk is not the wanted one, so podctl must write it.
	Unfinished bool
	// Fault is the reason why the volume cannot be prepared.
	Fault error
}

// States returns the states of the volumes that the pod uses, in manifest order. It changes nothing.
func States(c Context) []State {
	var all []State
	for _, vol := range podspec.MountedVolumes(c.Desired) {
		all = append(all, stateOf(&mounter{c, vol}))
	}
	return all
}

func stateOf(m *mounter) State {
	s := State{Name: m.vol.Name}
	wanted, contentErr := m.wanted()
	s.Fault = m.fault(contentErr)
	if digest, prepared, err := m.onDisk(wanted); err == nil {
		s.Digest, s.Prepared = digest, prepared
	}
	s.Unfinished = podspec.HasContent(m.vol.Volume) && (contentErr != nil || s.Digest != wanted)
	return s
}

// fault returns the reason why the volume cannot be prepared, as far as podctl can see it without creating the volume.
// Reasons are a host path of another type or one that cannot be created, an invalid name, files whose paths collide,
// and huge pages that no container requests. A missing path that Prepare or another volume of the pod may create is not
// a fault. A missing object is not a fault either, because it is reported for its reference. contentErr is the error of
// the wanted content.
func (m *mounter) fault(contentErr error) (err error) {
	switch {
	case m.isLocal():
		err = localDir{m}.check()
	case m.vol.HostPath != nil:
		err = m.hostPathFault()
	default:
		err = m.ownFault(contentErr)
	}
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return prepareError(shownName(m, m.vol.Name), err)
}

func (m *mounter) ownFault(contentErr error) error {
	if _, err := m.path(); err != nil {
		return err
	}
	if kind := medium(m.vol.Volume); kind != v1.StorageMediumDefault && kind != v1.StorageMediumMemory {
		if _, err := pageSize(m.Desired.Pod, kind); err != nil {
			return err
		}
	}
	if errors.As(contentErr, new(*UnresolvedError)) {
		return nil
	}
	return contentErr
}

// prepareError adds the phase of the kubelet's that fails, and the name of the volume.
func prepareError(name string, err error) error {
	phase := "MountVolume.SetUp failed"
	if errors.As(err, new(*noPathError)) {
		phase = "MountVolume.NewMounter initialization failed"
	}
	return &model.KubeletError{
		Err:  fmt.Errorf("%s for volume %q: %w", phase, name, err),
		Text: fmt.Sprintf("%s for volume %q : %s", phase, name, cmp.Or(model.KubeletText(err), err.Error())),
	}
}

// shownName returns the name of a volume in messages. For a claim of the API server, it is that of the PersistentVolume
// (kubelet: Spec.Name).
func shownName(m *mounter, name string) string {
	if m != nil && m.vol.Bound != nil && m.Desired.FromCluster() {
		return m.vol.Bound.Name
	}
	return name
}

// onDisk reports whether the volume is prepared, and returns the digest of the content if podctl writes it. wanted is
// the digest that it should have, if that is known. A volume that needs no preparation is prepared. A hostPath is
// prepared if it has the right type.
func (m *mounter) onDisk(wanted string) (digest string, prepared bool, err error) {
	switch vol := m.vol; {
	case m.isLocal():
		return "", localDir{m}.check() == nil && localDir{m}.hasGroup(), nil
	case vol.HostPath != nil:
		return "", checkHostPath(vol) == nil, nil
	case vol.Image != nil:
		return "", true, nil
	case vol.PersistentVolumeClaim != nil:
		prepared, err = claimDir{m.Context, m.claim(vol)}.ready()
		return "", prepared, err
	case podspec.VolumePlugin(vol.Volume) == "":
		return "", false, &UnsupportedError{Path: m.vol.Path}
	}
	prepared, err = m.ready()
	if err != nil || !prepared || !podspec.HasContent(m.vol.Volume) {
		return "", prepared, err
	}
	digest, err = m.read()
	if err != nil {
		return "", false, fmt.Errorf("reading volume %q: %w", m.vol.Name, err)
	}
	if digest == wanted && m.missesMountPoint() {
		return "", false, nil
	}
	return digest, true, nil
}

// missesMountPoint reports whether a volume with the right content lacks a mount point for another volume. This happens
// if the mount is newer than the content; the volume must then be prepared again. New content always comes with its
// mount points.
func (m *mounter) missesMountPoint() bool {
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

// read returns the digest of the content on disk. Call it only if the content was complete once: missing content is
// reported as incomplete.
func (m *mounter) read() (string, error) {
	w, err := m.openWriter()
	if err != nil {
		return "", err
	}
	defer w.close()
	current, valid, err := w.current()
	if err != nil {
		return "", err
	}
	if !valid || current == nil {
		return incomplete, nil
	}
	if complete, err := w.linked(current); err != nil || !complete {
		return incomplete, err
	}
	return m.digest(current), nil
}
