package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/safefs"
)

// journalMax bounds what is read of a journal, in bytes. Forty ConfigMaps
// of the largest size stay below it.
const journalMax = 64 << 20

// ErrDamaged says that a journal is cut off or is no journal.
var ErrDamaged = errors.New("it is damaged")

// ErrNewer says that a journal was written by a newer podctl.
var ErrNewer = errors.New("it was written by a newer podctl")

// JournalError says that a journal cannot be used. Err is ErrDamaged or ErrNewer,
// with details.
type JournalError struct {
	Path string
	Err  error
}

// Error says what happened and what to do.
func (e *JournalError) Error() string {
	if errors.Is(e.Err, ErrNewer) {
		return fmt.Sprintf("reading the journal %s: %v; use that podctl, or remove the file: %s", e.Path, e.Err, whatIsLost)
	}
	return fmt.Sprintf("reading the journal %s: %v; remove the file: %s", e.Path, e.Err, whatIsLost)
}

const whatIsLost = "running containers are not harmed by that, podctl only forgets the manifest applied last, probe results and restart delays"

// Unwrap returns the cause.
func (e *JournalError) Unwrap() error { return e.Err }

// ReadJournal reads the pod's journal. A missing one is empty; one that is
// damaged, or of a newer podctl, is a *JournalError.
func (p Pod) ReadJournal() (*Journal, error) {
	if err := firstError(p.check(), p.layout.check()); err != nil {
		return nil, err
	}
	return p.readJournal(p.layout.knownKey())
}

// readJournal is ReadJournal where the state directory was looked at and its key read: once
// for all journals, if many are read.
func (p Pod) readJournal(key *digest.Key) (*Journal, error) {
	text, err := readRegular(p.JournalFile(), journalMax)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Journal{Version: journalVersion}, nil
	case errors.Is(err, ErrDamaged):
		return nil, &JournalError{Path: p.JournalFile(), Err: err}
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("reading the journal: %w; run podctl as the user who applied the pod, which is root as a rule", err)
	case err != nil:
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	j, err := decodeJournal(text)
	if err == nil {
		err = p.checkNames(j)
	}
	if err != nil {
		return nil, &JournalError{Path: p.JournalFile(), Err: err}
	}
	j.Applied.UseKey(key)
	j.upgradeDigests()
	return j, nil
}

// checkNames refuses a journal that contradicts itself, or its place, on which pod it is
// about.
func (p Pod) checkNames(j *Journal) error {
	if j.Applied == nil {
		return nil
	}
	ref := model.RefOf(j.Applied.Pod)
	if ref.UID != p.uid || (j.Pod != model.PodRef{} && j.Pod != ref) {
		return fmt.Errorf("%w: it is about pod %s (uid %q), and its manifest about pod %s (uid %q)", ErrDamaged, j.Pod, p.uid, ref, ref.UID)
	}
	return nil
}

// readRegular reads a file that must be an ordinary one of at most so many bytes:
// neither a link to somewhere else nor a pipe that never ends.
func readRegular(path string, limit int64) (text []byte, err error) {
	var f *os.File
	err = inDirOf(path, func(dir *safefs.Dir, name string) (err error) {
		f, err = dir.OpenFile(name, os.O_RDONLY, 0)
		return err
	})
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%w: it is a symbolic link", ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: it is not a regular file", ErrDamaged)
	case info.Size() > limit:
		return nil, fmt.Errorf("%w: its %d bytes are more than the %d that podctl writes", ErrDamaged, info.Size(), limit)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// decodeJournal looks at the version first: a newer form need not decode at all.
func decodeJournal(text []byte) (*Journal, error) {
	var form struct {
		Version int `json:"version"`
	}
	if err := model.DecodeDocument(text, &form); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch {
	case form.Version > journalVersion:
		return nil, fmt.Errorf("%w (its version is %d, this podctl knows %d)", ErrNewer, form.Version, journalVersion)
	case form.Version < journalVersion:
		return nil, fmt.Errorf("%w: it names no version", ErrDamaged)
	}
	var j Journal
	if err := model.DecodeDocument(text, &j); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if j.Applied != nil {
		if err := j.Applied.Check(); err != nil {
			return nil, fmt.Errorf("%w: the manifest in it: %w", ErrDamaged, err)
		}
	}
	return &j, nil
}

// WriteJournal replaces the pod's journal as a whole: after a crash the old one
// or the new one is there. The caller holds the pod's lock.
func (p Pod) WriteJournal(j *Journal) error {
	j.Version = journalVersion
	j.name()
	text, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	if err = p.MakeDir(p.Dir(), podDirMode); err != nil {
		return err
	}
	kept := ""
	if before, lookErr := exists(p.JournalFile()); before && lookErr == nil {
		kept = "; the one before is kept"
	}
	if err = p.removeUnfinished(); err == nil {
		err = renameio.WriteFile(p.JournalFile(), text, 0o600,
			renameio.WithTempDir(p.Dir()), renameio.WithStaticPermissions(0o600))
	}
	if err == nil {
		err = p.sync()
	}
	if err != nil {
		return fmt.Errorf("writing the journal %s: %w%s", p.JournalFile(), cause(err), kept)
	}
	return nil
}

// sync makes the names in the pod's directory durable: a file that was renamed is
// only safe once its directory is.
func (p Pod) sync() error {
	dir, err := p.Open(p.Dir())
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// cause is an error without the name of a file that nobody knows: one that is written
// in the place of another, and takes its name when it is complete.
func cause(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}

// removeUnfinished removes what a process left that was killed while it wrote
// the journal or the id range. Whoever calls it holds the lock, so nobody is writing now.
func (p Pod) removeUnfinished() error {
	dir, err := p.Open(p.Dir())
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	entries, err := dir.Entries()
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, "."+filepath.Base(p.JournalFile())) && !strings.HasPrefix(name, "."+filepath.Base(p.userNamespaceFile())) {
			continue
		}
		if err := dir.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// RemoveJournal ends the pod's memory, and removes its directory. What else lies
// in it has to be removed before (volume.RemoveAll).
func (p Pod) RemoveJournal() error {
	if err := firstError(p.check(), p.layout.check()); err != nil {
		return err
	}
	if there, err := exists(p.Dir()); err == nil && !there {
		return nil
	}
	if err := errors.Join(p.removeUnfinished(), p.UnmarkCgroup()); err != nil {
		return fmt.Errorf("removing the journal: %w", err)
	}
	if err := removeFile(p.JournalFile()); err != nil {
		return fmt.Errorf("removing the journal: %w", err)
	}
	if err := inDirOf(p.Dir(), (*safefs.Dir).RemoveDir); err != nil {
		return fmt.Errorf("removing the pod's directory: %w", err)
	}
	return nil
}
