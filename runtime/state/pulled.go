package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/imageaccess"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// imageManagerName is the directory of the records of pulls, in a kubelet and in podctl.
const imageManagerName = "image_manager"

// PulledImages records which images of the runtime podctl pulled, as an empty file for each, named after its id. Only
// the removal of unused images depends on it.
type PulledImages struct{ layout Layout }

func (s PulledImages) dir() string { return filepath.Join(s.layout.Root, "pulled") }

// PulledName returns the file name for an image. An id of the runtime may not be a valid file name.
func PulledName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Add records that podctl pulled an image.
func (s PulledImages) Add(id string) error {
	path := filepath.Join(s.dir(), PulledName(id))
	if there, err := s.layout.dir().Exists(path); err == nil && there {
		return nil
	}
	// Another process may add the same image.
	if err := s.layout.dir().Create(path, nil, 0o600, statedir.Volatile); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("recording that podctl pulled the image %s: %w", id, safefs.Cause(err))
	}
	return nil
}

// Forget removes an image, given by its file name. An image without a record is not an error.
func (s PulledImages) Forget(name string) error {
	err := s.layout.dir().Remove(filepath.Join(s.dir(), name))
	return safefs.Wrapf(safefs.Cause(err), "removing the record of an image that podctl pulled")
}

// List returns the file names of the images that podctl pulled. It ignores other names, which do not belong to podctl.
func (s PulledImages) List() (map[string]bool, error) {
	entries, err := s.layout.dir().Entries(s.dir())
	if err != nil {
		return nil, fmt.Errorf("reading which images podctl pulled: %w", safefs.Cause(err))
	}
	names := map[string]bool{}
	for _, entry := range entries {
		if _, err := hex.DecodeString(entry.Name()); err == nil && len(entry.Name()) == len(PulledName("")) {
			names[entry.Name()] = true
		}
	}
	return names, nil
}

// pullRecordMax limits the bytes read from a record of a pull.
const pullRecordMax = 1 << 20

// pullRecordPrefix begins the names of records, which end with PulledName.
const pullRecordPrefix = "sha256-"

// PullRecords records who pulled the images of the runtime, in the files of a kubelet (kubelet: fsPullRecordsAccessor).
// Pods of the API server need the credentials of such a record. Without it, or if it is unreadable, they must pull.
//
// A file in the directory pulling marks a pull that has begun. Without a record it has the same effect, so that an
// image is never taken for a preloaded one if podctl is killed during the pull. The pulling processes lock the file
// (flock), so that none removes the mark of another.
type PullRecords struct {
	layout Layout
	mu     sync.Mutex
	// pulling has the pulls of this process by image.
	pulling map[string]*pull
}

// pull is a pull of this process, or several ones of the same image.
type pull struct {
	count int
	mark  *os.File
	// unrecorded is set if the image may be present without a record, so that the mark must stay.
	unrecorded bool
}

// NewPullRecords returns the records of the pulls. Each process needs only one for its pulls.
func NewPullRecords(l Layout) *PullRecords {
	return &PullRecords{layout: l, pulling: map[string]*pull{}}
}

func (r *PullRecords) pulledDir() string {
	return filepath.Join(r.layout.Root, imageManagerName, "pulled")
}

func (r *PullRecords) pulledPath(id string) string {
	return filepath.Join(r.pulledDir(), pullRecordPrefix+PulledName(id))
}

// pullingName is the directory of the marks.
const pullingName = "pulling"

func (r *PullRecords) pullingPath(image string) string {
	return filepath.Join(r.layout.Root, imageManagerName, pullingName, pullRecordPrefix+PulledName(image))
}

// Read returns what is recorded about an image. image is its name in a manifest, and id that of the runtime.
func (r *PullRecords) Read(image, id string) imageaccess.Image {
	found := imageaccess.Image{Name: image}
	// Another process may end the pull now. It writes the record before it removes the mark.
	begun, failed := r.layout.dir().Exists(r.pullingPath(image))
	text, err := r.layout.dir().Read(r.pulledPath(id), pullRecordMax)
	if errors.Is(err, fs.ErrNotExist) {
		found.Pulled = begun || failed != nil
		return found
	}
	found.Pulled = true
	if err == nil {
		// An unreadable record allows no pod to use the image. The next pull replaces it.
		found.Record, _ = imageaccess.Decode(text, id)
	}
	return found
}

// Begin marks the begin of a pull. Without an error, End must follow.
func (r *PullRecords) Begin(image string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pulling[image]
	if p == nil {
		mark, found, err := r.mark(image)
		if err != nil {
			return fmt.Errorf("recording that image %s is pulled: %w", image, safefs.Cause(err))
		}
		// A mark of another process, which may have been killed, may belong to a present image.
		p = &pull{mark: mark, unrecorded: found}
		r.pulling[image] = p
	}
	p.count++
	return nil
}

// sharedMark ends a mark that a second process has found. The first one then keeps the mark if its pull fails, because
// the second one may be killed, or end without a record.
const sharedMark = '\n'

// mark creates and locks the mark of an image. found is set if there was one.
func (r *PullRecords) mark(image string) (mark *os.File, found bool, err error) {
	dir, err := r.layout.dir().Make(0o700, 0o700, imageManagerName, pullingName)
	if err != nil {
		return nil, false, err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	err = fs.ErrNotExist
	for errors.Is(err, fs.ErrNotExist) { // Another process may remove the mark until it is locked.
		mark, found, err = openMark(dir, filepath.Base(r.pullingPath(image)))
	}
	if err != nil {
		return nil, false, err
	}
	text := imageaccess.Intent(image)
	if found {
		text = append(text, sharedMark)
	}
	if _, err = mark.WriteAt(text, 0); err != nil {
		if !found {
			_ = r.unmark(image, mark)
		}
		return nil, false, errors.Join(err, mark.Close())
	}
	return mark, found, nil
}

func openMark(dir *safefs.Dir, name string) (mark *os.File, found bool, err error) {
	mark, err = dir.OpenFile(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
	if found = errors.Is(err, fs.ErrExist); found {
		mark, err = dir.OpenFile(name, unix.O_RDWR, 0o600)
	}
	if err != nil {
		return nil, false, err
	}
	if err = lockMark(mark, unix.LOCK_SH); err != nil {
		_ = mark.Close()
	}
	return mark, found, err
}

// lockMark locks an open mark. If it has been removed, it returns fs.ErrNotExist.
func lockMark(mark *os.File, how int) error {
	var stat unix.Stat_t
	err := lockFile(mark, how)
	if err == nil {
		err = unix.Fstat(int(mark.Fd()), &stat)
	}
	if err == nil && stat.Nlink == 0 {
		err = fs.ErrNotExist
	}
	return err
}

// PullEnd is the end of a pull.
type PullEnd int

// Ends of a pull. After PullUnrecorded, the image is present without a record.
const (
	PullFailed PullEnd = iota
	PullRecorded
	PullUnrecorded
)

// End marks the end of a pull. While the image may be present without a record, the mark of the begin stays: a pull
// that fails must not make it a preloaded image.
func (r *PullRecords) End(image string, end PullEnd) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pulling[image]
	if end != PullFailed {
		p.unrecorded = end == PullUnrecorded
	}
	if p.count--; p.count > 0 {
		return nil
	}
	delete(r.pulling, image)
	defer p.mark.Close() //nolint:errcheck // This frees the lock.
	if p.unrecorded || end == PullFailed && isShared(image, p.mark) {
		return nil
	}
	return safefs.Wrapf(safefs.Cause(r.unmark(image, p.mark)), "recording the end of a pull")
}

func isShared(image string, mark *os.File) bool {
	info, err := mark.Stat()
	return err != nil || info.Size() > int64(len(imageaccess.Intent(image)))
}

// unmark removes a mark, unless another process pulls the image, too.
func (r *PullRecords) unmark(image string, mark *os.File) error {
	err := lockMark(mark, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	}
	if err == nil {
		err = r.layout.dir().Remove(r.pullingPath(image))
	}
	return safefs.IgnoreMissing(err)
}

// Settle removes the marks of pulls that no process continues. If such an image is present, Settle first records it as
// pulled with unknown credentials, because a pod may know it by another name (kubelet: PullManager.initialize). find
// returns the runtime's ID of an image, or an empty string. Marks of absent images stay if the pull began after until,
// because the runtime may still store the image.
func (r *PullRecords) Settle(until time.Time, find func(image string) (id string, err error)) error {
	dir, err := r.layout.dir().Open(imageManagerName, pullingName)
	if err != nil {
		return safefs.Wrapf(safefs.Cause(safefs.IgnoreMissing(err)), "reading the marks of pulls")
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	entries, err := dir.Entries()
	errs := []error{err}
	for _, entry := range entries {
		mark, info, err := dir.OpenRegular(entry.Name())
		if err != nil {
			continue // Another process has removed it, or it is not a mark.
		}
		if err = lockMark(mark, unix.LOCK_EX|unix.LOCK_NB); err == nil {
			errs = append(errs, r.settle(mark, info.ModTime(), until, find))
		}
		_ = mark.Close()
	}
	return safefs.Wrapf(safefs.Cause(errors.Join(errs...)), "ending interrupted pulls")
}

// settle settles one locked mark.
func (r *PullRecords) settle(mark *os.File, begun, until time.Time, find func(string) (string, error)) error {
	text, err := io.ReadAll(io.LimitReader(mark, pullRecordMax))
	if err != nil {
		return err
	}
	image := imageaccess.DecodeIntent(text)
	if filepath.Base(mark.Name()) != filepath.Base(r.pullingPath(image)) {
		return nil // It is damaged, but still protects the image that it is named after.
	}
	id, err := find(image)
	if err == nil && id == "" && !begun.Before(until) {
		return nil
	}
	if err == nil && id != "" {
		err = r.Add(image, id, imageaccess.Credentials{}, time.Now())
	}
	if err != nil {
		return err
	}
	return r.layout.dir().Remove(r.pullingPath(image))
}

// Add records the credentials of a pull that succeeded.
func (r *PullRecords) Add(image, id string, c imageaccess.Credentials, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, changed, err := r.Read(image, id).Record.With(image, id, c, now)
	if err != nil {
		return err
	}
	sync := statedir.Sync(statedir.Volatile)
	if changed {
		sync = statedir.Complete
	}
	text, err := json.Marshal(next)
	if err == nil {
		// Without changes, only the time of the file is new, which Prune depends on.
		path := r.pulledPath(id)
		err = r.layout.dir().Replace(path+".tmp", path, text, 0o600, sync)
	}
	return safefs.Wrapf(safefs.Cause(err), "recording the pull of image %s", image)
}

// Prune removes the records of images that the runtime no longer has. present has the PulledNames of the others.
// Records that were written after a time stay, because the image may have been pulled since the images were listed.
func (r *PullRecords) Prune(present map[string]bool, until time.Time) error {
	entries, err := r.layout.dir().Entries(r.pulledDir())
	if err != nil {
		return fmt.Errorf("reading the records of pulls: %w", safefs.Cause(err))
	}
	var errs []error
	for _, entry := range entries {
		name, isRecord := strings.CutPrefix(entry.Name(), pullRecordPrefix)
		info, err := entry.Info()
		if !isRecord || present[name] || err != nil || !info.ModTime().Before(until) {
			continue
		}
		errs = append(errs, r.layout.dir().Remove(filepath.Join(r.pulledDir(), entry.Name())))
	}
	return safefs.Wrapf(safefs.Cause(errors.Join(errs...)), "removing records of pulls")
}
