package view

import (
	"fmt"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// What becomes of something that is in the manifests of its set no more.
const (
	IsPruned      = "pruned"
	WouldBePruned = "would be pruned"
)

// Prune is what becomes of something that is in the manifests of its set no more, as a document.
type Prune struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Object     struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"object"`
	Outcome string `json:"outcome"`
}

// PruneOf is the document of one pod, workload or object.
func PruneOf(key state.ObjectKey, outcome string) Prune {
	doc := Prune{APIVersion: model.APIVersion, Kind: "Prune", Outcome: outcome}
	doc.Object.Kind, doc.Object.Namespace, doc.Object.Name = key.Kind, key.Namespace, key.Name
	return doc
}

// PruneLine says it in one line.
func PruneLine(p *Prune) string {
	return fmt.Sprintf("%s %s", state.ObjectKey{Namespace: p.Object.Namespace, Kind: p.Object.Kind, Name: p.Object.Name}, p.Outcome)
}

// PruneSummary counts what would be pruned.
func PruneSummary(docs []Prune) string {
	if len(docs) == 0 {
		return "Prune: nothing."
	}
	return fmt.Sprintf("Prune: %s that the manifests do not have.", document.Counted(len(docs), "object"))
}
