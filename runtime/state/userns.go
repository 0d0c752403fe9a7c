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

	"github.com/google/renameio/v2"
)

// IDRange is a range of user and group ids of the node that belong to one pod.
type IDRange struct{ First, Length uint32 }

// The ranges that are handed out (kubelet: userns manager): as many ids as a
// container can name, from the first that no system account has.
const (
	idRangeLength = 65536
	idRangeFirst  = 65536
	idRangeLast   = 1<<32 - idRangeLength
)

// usernsFile is the file in which a kubelet keeps a pod's range.
type usernsFile struct {
	UIDMappings []idMapping `json:"uidMappings"`
	GIDMappings []idMapping `json:"gidMappings"`
}

type idMapping struct {
	HostID      uint32 `json:"hostId"`
	ContainerID uint32 `json:"containerId"`
	Length      uint32 `json:"length"`
}

// IDs returns the range that the pod has been given; false when it has none.
func (p Pod) IDs() (IDRange, bool, error) {
	text, err := os.ReadFile(p.UserNamespaceFile())
	if errors.Is(err, fs.ErrNotExist) {
		return IDRange{}, false, nil
	}
	if err != nil {
		return IDRange{}, false, fmt.Errorf("reading the pod's id range: %w", err)
	}
	var f usernsFile
	if err := json.Unmarshal(text, &f); err != nil || len(f.UIDMappings) != 1 {
		return IDRange{}, false, fmt.Errorf("reading the pod's id range in %s: it is damaged: %w", p.UserNamespaceFile(), err)
	}
	return IDRange{First: f.UIDMappings[0].HostID, Length: f.UIDMappings[0].Length}, true, nil
}

// GiveIDs gives the pod a range of ids that no other pod has, once. The ids come
// from those that /etc/subuid sets aside for the user kubelet, if it does (kubelet:
// getsubids), else from all above the first block.
func (p Pod) GiveIDs(ctx context.Context) (r IDRange, err error) {
	given, ok, err := p.IDs()
	if ok || err != nil {
		return given, err
	}
	// No pod has this uid: an underscore in it is refused.
	lock, err := p.layout.Pod("_ids").Lock(ctx)
	if err != nil {
		return IDRange{}, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	r, err = freeRange(p.layout.takenIDs(), subordinateIDs("/etc/subuid"))
	if err != nil {
		return r, err
	}
	mapping := []idMapping{{HostID: r.First, Length: r.Length}}
	text, err := json.Marshal(usernsFile{UIDMappings: mapping, GIDMappings: mapping})
	if err != nil {
		return r, err
	}
	if err := p.MakeDir(p.Dir(), podDirMode); err != nil {
		return r, err
	}
	if err := renameio.WriteFile(p.UserNamespaceFile(), text, 0o644); err != nil {
		return r, fmt.Errorf("writing the pod's id range: %w", err)
	}
	return r, nil
}

// takenIDs are the first ids of the ranges that pods have.
func (l Layout) takenIDs() []uint32 {
	files, err := filepath.Glob(filepath.Join(l.pods(), "*", "userns"))
	if err != nil {
		return nil
	}
	var taken []uint32
	for _, file := range files {
		text, err := os.ReadFile(file)
		var f usernsFile
		if err == nil && json.Unmarshal(text, &f) == nil && len(f.UIDMappings) > 0 {
			taken = append(taken, f.UIDMappings[0].HostID)
		}
	}
	return taken
}

// freeRange is the first range within bounds that is not taken.
func freeRange(taken []uint32, bounds IDRange) (IDRange, error) {
	end := uint64(bounds.First) + uint64(bounds.Length)
	for first := uint64(bounds.First); first+idRangeLength <= end; first += idRangeLength {
		if !slices.Contains(taken, uint32(first)) {
			return IDRange{First: uint32(first), Length: idRangeLength}, nil
		}
	}
	return IDRange{}, fmt.Errorf("no range of %d ids is free from %d to %d: delete a pod that has hostUsers: false, or set more aside for the user kubelet in /etc/subuid and /etc/subgid",
		idRangeLength, bounds.First, end)
}

// subordinateIDs are the ids set aside for the user kubelet, or all above the
// first block.
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
