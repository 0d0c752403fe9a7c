package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// binary is the described program.
type binary struct {
	name, version string
	sum           [sha256.Size]byte
}

// document is an SPDX 2.3 document, limited to the used fields.
type document struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []component    `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

// component is a package in SPDX terms.
type component struct {
	ID            string      `json:"SPDXID"`
	Name          string      `json:"name"`
	Version       string      `json:"versionInfo"`
	File          string      `json:"packageFileName,omitempty"`
	Purpose       string      `json:"primaryPackagePurpose"`
	Location      string      `json:"downloadLocation"`
	FilesAnalyzed bool        `json:"filesAnalyzed"`
	Concluded     string      `json:"licenseConcluded"`
	Declared      string      `json:"licenseDeclared"`
	Copyright     string      `json:"copyrightText"`
	Checksums     []checksum  `json:"checksums,omitempty"`
	Refs          []reference `json:"externalRefs"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const (
	documentID = "SPDXRef-DOCUMENT"
	programID  = "SPDXRef-Program"
	// unknown is SPDX's value for data that was not determined: the licences of the modules are in their sources.
	unknown = "NOASSERTION"
)

// describe returns the document: the program, Go's standard library, and the modules.
func describe(info *debug.BuildInfo, file binary, created time.Time) *document {
	sum := hex.EncodeToString(file.sum[:])
	d := &document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: documentID, Name: file.name + " " + file.version,
		// The namespace includes the sum of the program, so no two documents share a name.
		Namespace: "https://" + info.Main.Path + "/sbom/" + sum,
		Creation: creation{
			Created:  created.Format(time.RFC3339),
			Creators: []string{"Tool: " + info.Main.Path + "/cmd/sbom"},
		},
	}
	program := module(programID, info.Main.Path, file.version)
	program.File, program.Purpose, program.Declared = file.name, "APPLICATION", "Apache-2.0"
	program.Checksums = []checksum{{"SHA256", sum}}
	d.add(program, documentID, "DESCRIBES")
	library := module("SPDXRef-Go", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	library.Location, library.Declared = "https://go.dev/dl/", "BSD-3-Clause"
	d.add(library, programID, "DEPENDS_ON")
	for _, m := range info.Deps {
		d.add(dependency(m), programID, "DEPENDS_ON")
	}
	return d
}

// add appends a component and its relation to another element.
func (d *document) add(c component, from, relation string) {
	d.Packages = append(d.Packages, c)
	d.Relationships = append(d.Relationships, relationship{From: from, Type: relation, To: c.ID})
}

// dependency returns a module with its sum from go.sum. That sum is not the SHA-256 of a file, so it is a reference,
// not a checksum.
func dependency(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	c := module(elementID(m.Path, m.Version), m.Path, m.Version)
	c.Location = fmt.Sprintf("https://proxy.golang.org/%s/@v/%s.zip", escaped(m.Path), escaped(m.Version))
	if m.Sum != "" {
		c.Refs = append(c.Refs, reference{"OTHER", "go-sum", m.Sum})
	}
	return c
}

func module(id, path, version string) component {
	url := "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{
		ID:        id,
		Name:      path,
		Version:   version,
		Purpose:   "LIBRARY",
		Location:  unknown,
		Concluded: unknown,
		Declared:  unknown,
		Copyright: unknown,
		Refs:      []reference{{"PACKAGE-MANAGER", "purl", url}},
	}
}

// elementID returns the id of an element. SPDX allows letters, digits, dots and dashes.
func elementID(path, version string) string {
	return "SPDXRef-Module-" + regexp.MustCompile(`[^A-Za-z0-9.-]`).ReplaceAllString(path+"-"+version, "-")
}

// escaped returns a path in the form of module proxies, with an exclamation mark and a small letter for each capital
// letter.
func escaped(path string) string {
	return regexp.MustCompile(`[A-Z]`).ReplaceAllStringFunc(path, func(letter string) string {
		return "!" + strings.ToLower(letter)
	})
}
