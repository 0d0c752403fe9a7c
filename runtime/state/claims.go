package state

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// Claim names a persistent volume claim whose data lies here.
type Claim struct{ Namespace, Name string }

// check is a *NameError for a claim that podctl does not touch.
func (c Claim) check() error {
	return statedir.FirstError(statedir.CheckName(statedir.KindNamespace, c.Namespace), statedir.CheckName(statedir.KindClaim, c.Name))
}

// Beside the claims of a namespace lie those that were set aside to be removed. As long as
// that is not decided a claim lies in claimsAside, whole, and after that in claimsRemoved. No
// claim has these names, as they begin with a point.
const (
	claimsAside   = ".aside"
	claimsRemoved = ".removed"
)

const (
	claimsMode = 0o711
	asideMode  = 0o700
)

// Claims holds the directories behind persistent volume claims. They belong to no pod.
type Claims struct {
	layout Layout
	// refused is why the pod for which they are used is not taken; nil as a rule.
	refused error
}

// dir is the directory of a namespace, or with no names that of all.
func (s Claims) dir(names ...string) string {
	return filepath.Join(append([]string{s.layout.Root, "claims"}, names...)...)
}

// Dir is the directory in which the data of a claim lies. The error is a *NameError.
func (s Claims) Dir(c Claim) (string, error) {
	if err := c.check(); err != nil {
		return "", err
	}
	return s.dir(c.Namespace, c.Name), nil
}

// Overlap reports whether one of two claims may lie in the other. Two names that are no
// paths do so only if they are the same; by a path an older podctl may have put a claim into
// another one, or above several.
func (s Claims) Overlap(a, b Claim) bool {
	dirA := s.dir(a.Namespace, a.Name) + "/"
	dirB := s.dir(b.Namespace, b.Name) + "/"
	return strings.HasPrefix(dirA, dirB) || strings.HasPrefix(dirB, dirA)
}

// List lists the claims that have data, by namespace and name, those included of which a
// removal was cut off. What lies there under names that no claim has is not podctl's.
func (s Claims) List() ([]Claim, error) {
	if err := s.layout.dir().Check(); err != nil {
		return nil, err
	}
	root, err := s.layout.dir().OpenDir(s.dir())
	if err != nil {
		return nil, listingClaims(safefs.IgnoreMissing(err))
	}
	defer root.Close() //nolint:errcheck // A handle on a directory.
	namespaces, err := statedir.Subdirs(root)
	var found []Claim
	for _, namespace := range namespaces {
		var names []string
		names, err = claimNames(root, namespace)
		if err != nil {
			break
		}
		for _, name := range names {
			found = append(found, Claim{namespace, name})
		}
	}
	return slices.DeleteFunc(found, func(c Claim) bool { return c.check() != nil }), listingClaims(err)
}

func listingClaims(err error) error {
	if err != nil {
		return fmt.Errorf("listing claims: %w", err)
	}
	return nil
}

// claimNames lists the claims of a namespace, each once.
func claimNames(root *safefs.Dir, namespace string) ([]string, error) {
	dir, err := root.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	var names []string
	for _, place := range []string{"", claimsAside, claimsRemoved} {
		found, err := statedir.SubdirsOf(dir, place)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	for i, name := range names {
		if old, ok := formerAside(name); ok {
			names[i] = old
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// formerAside is the claim that an older podctl set aside under a name.
func formerAside(name string) (claim string, ok bool) {
	if name, ok = strings.CutPrefix(name, "."); ok {
		return strings.CutSuffix(name, ".removed")
	}
	return "", false
}

// openNamespace opens the directory in which a claim lies.
func (s Claims) openNamespace(c Claim) (*safefs.Dir, error) {
	if err := statedir.FirstError(c.check(), s.layout.dir().Check()); err != nil {
		return nil, err
	}
	return s.layout.dir().OpenDir(s.dir(c.Namespace))
}

// CreatedAt is when the directory behind a claim was made; zero if the file system does not record that.
func (s Claims) CreatedAt(c Claim) time.Time {
	path, err := s.Dir(c)
	if err != nil {
		return time.Time{}
	}
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st) != nil || st.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
}

// Open opens the directory behind a claim. Links are not followed.
func (s Claims) Open(c Claim) (*safefs.Dir, error) {
	dir, err := s.openNamespace(c)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	return dir.Open(c.Name)
}

// Make opens the directory behind a claim, and makes it with exactly this mode if there
// is none. One that was set aside by a removal which was cut off is taken back instead.
func (s Claims) Make(c Claim, perm fs.FileMode) (*safefs.Dir, error) {
	if err := statedir.FirstError(c.check(), s.refused, s.layout.Prepare()); err != nil {
		return nil, err
	}
	dir, err := s.layout.dir().MakeDir(s.dir(c.Namespace), claimsMode, claimsMode)
	if err != nil {
		return nil, fmt.Errorf("creating the directory of claims: %w", err)
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	if err := takeBack(dir, c.Name); err != nil {
		return nil, err
	}
	return dir.Make(c.Name, perm)
}

// takeBack gives a claim that was set aside its place again. Where it has none, or another
// has come into its place, nothing happens.
func takeBack(dir *safefs.Dir, name string) error {
	aside, err := dir.Open(claimsAside)
	if safefs.Missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	err = aside.Rename(name, dir, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, aside.Close())
}

// Remove removes a claim's directory with all that is in it, and what an earlier removal
// of it left that was cut off. It is set aside before the last look whether it is still unused,
// so that no pod that comes meanwhile loses what it has seen: needed returns why it must stay,
// and it is put back.
func (s Claims) Remove(c Claim, needed func() error) error {
	dir, err := s.openNamespace(c)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	r := &claimRemoval{dir: dir, name: c.Name}
	if err = r.open(); err == nil {
		err = r.run(needed)
	}
	return errors.Join(err, r.close())
}

// claimRemoval is the removal of one claim.
type claimRemoval struct {
	dir, aside, removed *safefs.Dir
	name                string
}

func (r *claimRemoval) open() (err error) {
	if r.aside, err = r.dir.Make(claimsAside, asideMode); err == nil {
		r.removed, err = r.dir.Make(claimsRemoved, asideMode)
	}
	return err
}

// close removes the directories that are empty now.
func (r *claimRemoval) close() error {
	var errs []error
	for name, dir := range map[string]*safefs.Dir{claimsAside: r.aside, claimsRemoved: r.removed} {
		if dir == nil {
			continue
		}
		errs = append(errs, dir.Close())
		if err := r.dir.RemoveDir(name); !errors.Is(err, unix.ENOTEMPTY) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (r *claimRemoval) run(needed func() error) error {
	err := r.dir.Rename(r.name, r.aside, r.name)
	another := errors.Is(err, fs.ErrExist)
	if err != nil && !another && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := needed(); err != nil {
		return errors.Join(err, r.putBack())
	}
	if err := r.condemn(); err != nil {
		return err
	}
	if another {
		// What lay aside is what an earlier removal left. Its place is free now.
		return r.run(needed)
	}
	return r.removeFormer()
}

// removeFormer removes what an older podctl has set aside of the claim.
func (r *claimRemoval) removeFormer() error {
	err := r.dir.RemoveAll("." + r.name + ".removed")
	if errors.Is(err, unix.ENAMETOOLONG) {
		return nil
	}
	return err
}

// putBack gives the claim its place again. One that has come into it meanwhile stays.
func (r *claimRemoval) putBack() error {
	err := r.aside.Rename(r.name, r.dir, r.name)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("what was in %s is in %s now: %w", r.dir.Join(r.name), r.aside.Join(r.name), err)
	}
	return safefs.IgnoreMissing(err)
}

// condemn removes the claim that was set aside. Nobody takes it back from where it goes
// first.
func (r *claimRemoval) condemn() error {
	if err := r.removed.RemoveAll(r.name); err != nil {
		return err
	}
	if err := r.aside.Rename(r.name, r.removed, r.name); err != nil {
		return safefs.IgnoreMissing(err)
	}
	return r.removed.RemoveAll(r.name)
}

// Size is how much a claim takes on disk, with what removals have left that were cut
// off.
func (s Claims) Size(c Claim) int64 {
	if c.check() != nil {
		return 0
	}
	var sum int64
	for _, name := range []string{c.Name, filepath.Join(claimsAside, c.Name), filepath.Join(claimsRemoved, c.Name), "." + c.Name + ".removed"} {
		sum += statedir.Size(s.dir(c.Namespace, name))
	}
	return sum
}
