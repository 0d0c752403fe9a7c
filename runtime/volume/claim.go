package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// prepareClaim makes the directory behind a claim, if it is not there from an
// earlier pod. It is given to the pod's group whenever that is another one.
func (c Context) prepareClaim(vol *v1.Volume) error {
	dir := c.Path(vol)
	ready, err := c.claimReady(vol)
	if err != nil || ready {
		return err
	}
	if err = c.Pod.MakeClaims(c.Desired.Pod.Namespace); err != nil {
		return err
	}
	if err = makeClaim(dir); err != nil {
		return err
	}
	if group := c.fsGroup(); group != nil {
		if err = giveVolume(dir, int(*group)); err != nil {
			return fmt.Errorf("giving it to group %d (fsGroup): %w", *group, err)
		}
	}
	return nil
}

// makeClaim makes a directory into which whoever the containers run as may write, as into
// a fresh emptyDir. One that is there has the mode that its pods gave it.
func makeClaim(dir string) error {
	return withoutUmask(func() error {
		err := os.Mkdir(dir, volumeMode)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.Chmod(dir, volumeMode)
	})
}

// claimReady tells that the directory is there and belongs to the pod's group.
func (c Context) claimReady(vol *v1.Volume) (bool, error) {
	info, err := os.Lstat(c.Path(vol))
	if err != nil {
		return false, ignoreMissing(err)
	}
	if !info.IsDir() {
		return false, fmt.Errorf("%s is no directory", c.Path(vol))
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	group := c.fsGroup()
	return group == nil || (ok && int64(owner.Gid) == *group), nil
}

// RemoveClaim removes a claim's directory with all that is in it. It is set aside before
// the last look whether it is still unused, so that no pod that comes meanwhile loses what
// it has seen: needed tells why it must stay, and it is put back.
func RemoveClaim(dir string, needed func() error) error {
	parent, name := filepath.Split(dir)
	aside := "." + name + ".removed"
	if err := os.Rename(dir, parent+aside); err != nil {
		return ignoreMissing(err)
	}
	err := needed()
	if err == nil {
		return removeTree(parent, aside)
	}
	if back := unix.Renameat2(unix.AT_FDCWD, parent+aside, unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE); back != nil {
		err = errors.Join(err, fmt.Errorf("what was in %s is in %s now: %w", dir, parent+aside, back))
	}
	return err
}

// RemoveClaims removes the directories behind the pod's claims, with all that is
// in them.
func RemoveClaims(c Context, keep func(claim string) bool) error {
	var errs []error
	for i := range c.Desired.Pod.Spec.Volumes {
		vol := &c.Desired.Pod.Spec.Volumes[i]
		if vol.PersistentVolumeClaim == nil || keep(vol.PersistentVolumeClaim.ClaimName) {
			continue
		}
		dir := c.Path(vol)
		if err := removeTree(filepath.Dir(dir), filepath.Base(dir)); err != nil {
			errs = append(errs, fmt.Errorf("removing the claim %s: %w", vol.PersistentVolumeClaim.ClaimName, err))
		}
	}
	return errors.Join(errs...)
}
