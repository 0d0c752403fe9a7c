package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// Claim names a persistent volume claim with data on this machine.
type Claim struct{ Namespace, Name string }

// check returns a *NameError for a claim with an invalid name.
func (c Claim) check() error {
	return statedir.FirstError(
		statedir.CheckName(statedir.KindNamespace, c.Namespace),
		statedir.CheckName(statedir.KindClaim, c.Name),
	)
}

// claimsRemoved is the directory for claims being removed, beside the claims of a namespace. No claim has this name,
// because names do not begin with a dot.
const claimsRemoved = ".removed"

const claimsName = "claims"

const (
	claimsMode  = 0o711
	removedMode = 0o700
)

// Claims holds the directories behind persistent volume claims. They belong to no pod.
type Claims struct {
	layout Layout
	// refused is the reason why the pod that uses the claims is invalid; usually nil.
	refused error
}

// dir returns the directory of a namespace, or of all claims if there are no names.
func (s Claims) dir(names ...string) string {
	return filepath.Join(append([]string{s.layout.Root, claimsName}, names...)...)
}

// Dir returns the directory with the data of a claim. The error is a *NameError.
func (s Claims) Dir(c Claim) (string, error) {
	if err := c.check(); err != nil {
		return "", err
	}
	return s.dir(c.Namespace, c.Name), nil
}

// List returns the claims with data by namespace and name, including those with an interrupted removal. It ignores
// files with other names, which do not belong to podctl.
func (s Claims) List() ([]Claim, error) {
	var found []Claim
	err := s.layout.dir().Walk(s.dir(), func(names []string, entry fs.DirEntry) error {
		switch {
		case !entry.IsDir() || len(names) < 2 || len(names) == 2 && names[1] == claimsRemoved:
			return nil
		default:
			found = append(found, Claim{names[0], names[len(names)-1]})
			return fs.SkipDir
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing claims: %w", err)
	}
	found = slices.DeleteFunc(found, func(c Claim) bool { return c.check() != nil })
	slices.SortStableFunc(found, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(found), nil
}

// CreatedAt returns when the directory behind a claim was created, or zero if the file system does not record it.
func (s Claims) CreatedAt(c Claim) time.Time {
	path, err := s.Dir(c)
	if err != nil {
		return time.Time{}
	}
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st) != nil ||
		st.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
}

// Open opens the directory behind a claim without following links.
func (s Claims) Open(c Claim) (*safefs.Dir, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return s.layout.dir().Open(claimsName, c.Namespace, c.Name)
}

// Make opens the directory behind a claim. If it does not exist, Make creates it with exactly this mode.
func (s Claims) Make(ctx context.Context, c Claim, perm fs.FileMode) (made *safefs.Dir, err error) {
	if err = statedir.FirstError(c.check(), s.refused); err != nil {
		return nil, err
	}
	lock, err := s.layout.Locks().claims(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if made, err = s.layout.dir().Make(claimsMode, perm, claimsName, c.Namespace, c.Name); err != nil {
		return nil, fmt.Errorf("creating the directory of the claim: %w", err)
	}
	return made, nil
}

// Remove removes a claim's directory with its contents, and leftovers of an interrupted removal. If needed returns an
// error, the claim stays.
func (s Claims) Remove(ctx context.Context, c Claim, needed func() error) error {
	if err := c.check(); err != nil {
		return err
	}
	dir, err := s.layout.dir().Open(claimsName, c.Namespace)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	if err = removeCondemned(dir, c.Name); err == nil {
		err = s.condemn(ctx, c.Name, dir, needed)
	}
	if err == nil {
		err = removeCondemned(dir, c.Name)
	}
	return errors.Join(err, s.tidy(ctx, dir))
}

// condemn moves a claim into claimsRemoved unless it is needed. A pod writes its checkpoint before it creates the
// directory, which requires the same lock. So either needed sees the pod, or the pod creates a new directory
// afterwards.
func (s Claims) condemn(ctx context.Context, name string, dir *safefs.Dir, needed func() error) (err error) {
	lock, err := s.layout.Locks().claims(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if err = needed(); err != nil {
		return err
	}
	removed, err := dir.Make(claimsRemoved, removedMode)
	if err != nil {
		return err
	}
	return errors.Join(safefs.IgnoreMissing(dir.Rename(name, removed, name)), removed.Close())
}

// removeCondemned removes a claim from claimsRemoved. It may take long and needs no lock.
func removeCondemned(dir *safefs.Dir, name string) error {
	removed, err := dir.Open(claimsRemoved)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	return errors.Join(removed.RemoveAll(name), removed.Close())
}

// tidy removes claimsRemoved if it is empty. The lock protects a process that is about to move a claim there.
func (s Claims) tidy(ctx context.Context, dir *safefs.Dir) error {
	lock, err := s.layout.Locks().claims(ctx)
	if err != nil {
		return err
	}
	if err = dir.RemoveDir(claimsRemoved); errors.Is(err, unix.ENOTEMPTY) {
		err = nil
	}
	return errors.Join(safefs.IgnoreMissing(err), lock.Unlock())
}

// Size returns the disk usage of a claim in bytes, including leftovers of interrupted removals.
func (s Claims) Size(c Claim) int64 {
	if c.check() != nil {
		return 0
	}
	var sum int64
	for _, name := range []string{c.Name, filepath.Join(claimsRemoved, c.Name)} {
		sum += statedir.Size(s.dir(c.Namespace, name))
	}
	return sum
}
