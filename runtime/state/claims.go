package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Claim names a persistent volume claim whose data lies here.
type Claim struct{ Namespace, Name string }

// Claims lists the claims that have data, by namespace and name.
func (l Layout) Claims() ([]Claim, error) {
	namespaces, err := subdirs(l.claims())
	if err != nil {
		return nil, err
	}
	var found []Claim
	for _, namespace := range namespaces {
		names, err := subdirs(filepath.Join(l.claims(), namespace))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found = append(found, Claim{namespace, name})
		}
	}
	return found, nil
}

// ClaimDir is the directory in which the data of a claim lies.
func (l Layout) ClaimDir(c Claim) string { return filepath.Join(l.claims(), c.Namespace, c.Name) }

// ClaimDir is the directory behind a claim.
func (p Pod) ClaimDir(namespace, name string) string {
	return p.layout.ClaimDir(Claim{Namespace: namespace, Name: name})
}

// claims holds the directories behind persistent volume claims. They belong to no
// pod.
func (l Layout) claims() string { return filepath.Join(l.Root, "claims") }

// subdirs are the names of the directories in one that may be missing.
func subdirs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing claims: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}
