package mounts

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Hidden is a mount that no path leads to.
type Hidden struct {
	// Path is its mount point. Cover is the later mount over a parent directory.
	Path  string `json:"path"`
	Cover string `json:"cover"`
}

// HiddenBelow returns the hidden mounts at and below a directory. A kubelet causes them. It binds its root directory on
// itself if that is in a private mount, and the bind does not include the mounts below (kubelet: Mounter.MakeRShared).
func HiddenBelow(dir string) ([]Hidden, error) {
	dir, all, err := read(dir)
	if err != nil || all == nil {
		return nil, err
	}
	return hiddenBelow(dir, all), nil
}

// Private returns the mount that contains a directory, and reports whether mounts in the directory stay in their
// namespace.
func Private(dir string) (mountpoint string, private bool, err error) {
	dir, all, err := read(dir)
	if err != nil {
		return "", false, err
	}
	in := mountOf(dir, all)
	if in == nil {
		return "", false, fmt.Errorf("%s is not in a mount", dir)
	}
	return in.Mountpoint, !strings.Contains(in.Optional, "shared:"), nil
}

// mountOf returns the mount that contains a directory. If several are mounted on one directory, the last one counts.
func mountOf(dir string, all []*mountinfo.Info) *mountinfo.Info {
	var in *mountinfo.Info
	for _, m := range all {
		if within(dir, m.Mountpoint) && (in == nil || len(m.Mountpoint) >= len(in.Mountpoint)) {
			in = m
		}
	}
	return in
}

// read returns the mount table, and the directory without links in its path. If the directory does not exist, it uses
// its nearest existing parent.
func read(dir string) (string, []*mountinfo.Info, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, err
	}
	for above := dir; ; above = filepath.Dir(above) {
		if linked, linkErr := filepath.EvalSymlinks(above); linkErr == nil {
			dir = filepath.Join(linked, strings.TrimPrefix(dir, above))
			break
		}
		if above == "/" {
			break
		}
	}
	all, err := mountinfo.GetMounts(nil)
	if err != nil {
		return "", nil, fmt.Errorf("looking at the mounts: %w", err)
	}
	return dir, all, nil
}

func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

func hiddenBelow(dir string, all []*mountinfo.Info) []Hidden {
	byID := map[int]*mountinfo.Info{}
	for _, m := range all {
		byID[m.ID] = m
	}
	var hidden []Hidden
	for _, m := range all {
		if !within(m.Mountpoint, dir) {
			continue
		}
		if cover := coverOf(m, all, byID); cover != nil {
			hidden = append(hidden, Hidden{Path: m.Mountpoint, Cover: cover.Mountpoint})
		}
	}
	return hidden
}

// coverOf returns the mount that covers the path to another mount, or nil.
func coverOf(m *mountinfo.Info, all []*mountinfo.Info, byID map[int]*mountinfo.Info) *mountinfo.Info {
	for range all {
		for _, c := range all {
			if c != m && c.Parent == m.Parent && within(m.Mountpoint, c.Mountpoint) {
				return c
			}
		}
		parent := byID[m.Parent]
		if parent == nil || parent == m {
			return nil
		}
		m = parent
	}
	return nil
}
