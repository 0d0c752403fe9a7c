package commands

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/plan"
)

// savePlans writes plans for `apply --plan`. The file is for its owner alone, as
// it tells what runs here and how.
func savePlans(path string, plans []*plan.Plan) error {
	var text bytes.Buffer
	if err := writeDocument(&text, "json", planDocument(plans)); err != nil {
		return err
	}
	if err := writePrivate(path, text.Bytes()); err != nil {
		return fmt.Errorf("saving the plan: %w", err)
	}
	return nil
}

// savedPlans are the plans of a file, to be executed.
type savedPlans []*plan.Plan

// readSaved reads what savePlans wrote.
func (g *globals) readSaved(path string) (savedPlans, error) {
	text, err := g.env.readFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the saved plan: %w", err)
	}
	var doc struct {
		plan.Plan
		Items []*plan.Plan `json:"items"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("reading the saved plan %s: %w", path, err)
	}
	switch {
	case doc.APIVersion != plan.APIVersion:
		return nil, fmt.Errorf("reading the saved plan %s: apiVersion is %q, not %s", path, doc.APIVersion, plan.APIVersion)
	case doc.Kind == "Plan":
		return savedPlans{&doc.Plan}, nil
	case doc.Kind == "PlanList":
		return doc.Items, nil
	}
	return nil, fmt.Errorf("reading the saved plan %s: kind is %q, not Plan", path, doc.Kind)
}

// of finds the plan of a pod.
func (s savedPlans) of(d *podspec.Desired) (*plan.Plan, error) {
	ref := plan.RefOf(d.Pod)
	for _, p := range s {
		if p.Pod == ref {
			return p, nil
		}
	}
	return nil, fmt.Errorf("pod %s (uid %s) is not in the saved plan", ref, ref.UID)
}
