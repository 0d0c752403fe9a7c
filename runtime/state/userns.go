package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/podctl/podctl/runtime/safefs"
)

// IDRange is a range of user and group ids of the node that belong to one pod.
type IDRange struct{ First, Length uint32 }

// Bounds of the assigned ranges (kubelet: userns manager). A range has as many ids as a container can use, and begins
// above the ids of system accounts.
const (
	idRangeLength = 65536
	idRangeFirst  = 65536
	idRangeLast   = 1<<32 - idRangeLength
)

// AnyIDs returns a valid range that stands for the range of a pod without one.
func AnyIDs() IDRange { return IDRange{First: idRangeFirst, Length: idRangeLength} }

// usernsMode is the mode of the file, which has no secrets.
const usernsMode = 0o644

// usernsFile is the kubelet's file with a pod's range.
type usernsFile struct {
	UIDMappings []idMapping `json:"uidMappings"`
	GIDMappings []idMapping `json:"gidMappings"`
}

type idMapping struct {
	HostID      uint32 `json:"hostId"`
	ContainerID uint32 `json:"containerId"`
	Length      uint32 `json:"length"`
}

// usernsMax limits the bytes read from such a file.
const usernsMax = 64 << 10

// IDStore stores the range of a pod in the kubelet's format for id mappings of a pod with a user namespace.
type IDStore struct{ pod Pod }

// idsName is the name of the file (kubelet: mappingsFile).
const idsName = "userns"

// Path returns the file of the range.
func (s IDStore) Path() string { return filepath.Join(s.pod.Dir(), idsName) }

// Read returns the pod's range, or false if it has none.
func (s IDStore) Read() (IDRange, bool, error) {
	if err := s.pod.check(); err != nil {
		return IDRange{}, false, err
	}
	r, err := s.readFile()
	if errors.Is(err, fs.ErrNotExist) {
		return IDRange{}, false, nil
	}
	if errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w; delete the pod and apply it again, or `podctl prune` if it is gone", err)
	}
	if err != nil {
		return IDRange{}, false, fmt.Errorf("reading the pod's id range from %s: %w", s.Path(), safefs.Cause(err))
	}
	return r, true, nil
}

func (s IDStore) readFile() (IDRange, error) {
	text, err := s.pod.layout.dir().Read(s.Path(), usernsMax)
	if err != nil {
		return IDRange{}, err
	}
	var f usernsFile
	if err := json.Unmarshal(text, &f); err != nil {
		return IDRange{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(f.UIDMappings) != 1 {
		return IDRange{}, fmt.Errorf("%w: it has %d ranges, and one is expected", ErrDamaged, len(f.UIDMappings))
	}
	return IDRange{First: f.UIDMappings[0].HostID, Length: f.UIDMappings[0].Length}, nil
}

// Allocate assigns an unused range of ids to the pod, unless it has one. The ids come from those reserved in
// /etc/subuid for the user kubelet (kubelet: getsubids), or else from all ids above the first block.
func (s IDStore) Allocate(ctx context.Context) (r IDRange, err error) {
	given, ok, err := s.Read()
	if ok || err != nil {
		return given, err
	}
	lock, err := s.pod.layout.Locks().IDs(ctx)
	if err != nil {
		return IDRange{}, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	taken, err := s.taken()
	if err == nil {
		r, err = freeRange(taken, subordinateIDs("/etc/subuid"))
	}
	if err == nil {
		err = s.write(r)
	}
	return r, err
}

// taken returns the ranges of all pods. It fails if one cannot be read, because that pod may use any range.
func (s IDStore) taken() ([]IDRange, error) {
	pods, err := s.pod.layout.Pods().present(fs.DirEntry.IsDir)
	if err != nil {
		return nil, fmt.Errorf("looking for the id ranges of pods: %w", err)
	}
	var taken []IDRange
	for _, pod := range pods {
		r, given, err := pod.IDs().Read()
		if err != nil {
			return nil, fmt.Errorf("looking for ids that no other pod has: %w", err)
		}
		if given {
			taken = append(taken, r)
		}
	}
	return taken, nil
}

func (s IDStore) write(r IDRange) error {
	mapping := []idMapping{{HostID: r.First, Length: r.Length}}
	text, err := json.Marshal(usernsFile{UIDMappings: mapping, GIDMappings: mapping})
	if err == nil {
		err = s.pod.MakeDir(s.pod.Dir(), podDirMode)
	}
	if err == nil {
		err = replaceFile(s.pod, idsName, text, usernsMode)
	}
	return safefs.Wrapf(safefs.Cause(err), "writing the pod's id range %s", s.Path())
}

// end returns the first id after the range, which may exceed the maximum id.
func (r IDRange) end() uint64 { return uint64(r.First) + uint64(r.Length) }

func (r IDRange) overlaps(other IDRange) bool {
	return uint64(r.First) < other.end() && uint64(other.First) < r.end()
}

// freeRange returns the first free range within bounds. Existing ranges may have been assigned with other bounds and
// need not be aligned to these.
func freeRange(taken []IDRange, bounds IDRange) (IDRange, error) {
	end := bounds.end()
	for first := uint64(bounds.First); first+idRangeLength <= end; first += idRangeLength {
		r := IDRange{First: uint32(first), Length: idRangeLength}
		if !slices.ContainsFunc(taken, r.overlaps) {
			return r, nil
		}
	}
	return IDRange{}, fmt.Errorf("no range of %d ids is free from %d to %d: "+
		"delete a pod that has hostUsers: false, or reserve more for the user kubelet in /etc/subuid and /etc/subgid",
		idRangeLength, bounds.First, end)
}

// subordinateIDs returns the ids reserved for the user kubelet, or all ids above the first block.
func subordinateIDs(path string) IDRange {
	text, err := os.ReadFile(path)
	if err == nil {
		for line := range strings.Lines(string(text)) {
			fields := strings.Split(strings.TrimSpace(line), ":")
			if len(fields) != 3 || fields[0] != "kubelet" {
				continue
			}
			first, errFirst := strconv.ParseUint(fields[1], 10, 32)
			length, errLength := strconv.ParseUint(fields[2], 10, 32)
			if errFirst == nil && errLength == nil {
				return IDRange{First: uint32(first), Length: uint32(length)}
			}
		}
	}
	return IDRange{First: idRangeFirst, Length: idRangeLast - idRangeFirst}
}
