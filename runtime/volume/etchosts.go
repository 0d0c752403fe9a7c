package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state"
)

// WriteEtcHosts writes the hosts file that the containers of a pod share. Running containers have it mounted, so the
// file is written in place and is never empty. A file with the right content is not written.
func WriteEtcHosts(p state.Pod, content []byte) error {
	dir, err := p.Make(p.Dir(), 0o750)
	if err != nil {
		return err
	}
	f, err := dir.OpenFile(filepath.Base(p.EtcHosts()), os.O_RDWR|os.O_CREATE, 0o644)
	if err = errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("writing the hosts file: %w", err)
	}
	return safefs.Wrapf(errors.Join(overwrite(f, content), f.Close()), "writing the hosts file")
}

func overwrite(f *os.File, content []byte) error {
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	before, err := io.ReadAll(io.LimitReader(f, int64(len(content))+1))
	if err != nil || bytes.Equal(before, content) {
		return err
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(content)))
}

// ChangeEtcHosts changes the hosts file of a pod in place, because containers have it mounted. It does nothing if the
// pod has no hosts file yet.
func ChangeEtcHosts(p state.Pod, change func(before []byte) []byte) error {
	dir, err := p.Open(p.Dir())
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	f, err := dir.OpenFile(filepath.Base(p.EtcHosts()), os.O_RDWR, 0)
	if err = errors.Join(err, dir.Close()); err != nil {
		return safefs.IgnoreMissing(err)
	}
	before, err := io.ReadAll(io.LimitReader(f, state.EtcHostsMax))
	if after := change(before); err == nil && !bytes.Equal(before, after) {
		if _, err = f.WriteAt(after, 0); err == nil {
			err = f.Truncate(int64(len(after)))
		}
	}
	err = errors.Join(err, f.Close())
	return safefs.Wrapf(err, "writing the hosts file")
}
