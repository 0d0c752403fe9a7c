package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/safefs"
)

// savePlans writes plans for `apply --plan`. Only the owner can read the file, because it describes the processes on
// the machine.
func savePlans(path string, plans []*plan.Plan) error {
	var text bytes.Buffer
	if err := terminal.WriteDocument(&text, "json", PlanDocument(plans)); err != nil {
		return err
	}
	return safefs.Wrapf(safefs.WriteFile(path, text.Bytes()), "saving the plan")
}

// savedPlans are plans read from a file, to be executed.
type savedPlans []*plan.Plan

// readSaved reads a file from savePlans.
func readSaved(ctx context.Context, sess *session.Session, path string) (savedPlans, error) {
	text, err := sess.IO.ReadFile(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reading the saved plan: %w", err)
	}
	saved, err := parseSaved(text)
	if err != nil {
		return nil, fmt.Errorf("reading the saved plan %s: %w", path, err)
	}
	return saved, nil
}

func parseSaved(text []byte) (savedPlans, error) {
	var doc struct {
		plan.Plan
		Items []*plan.Plan `json:"items"`
	}
	if err := model.DecodeDocument(text, &doc); err != nil {
		return nil, err
	}
	switch {
	case doc.APIVersion != model.APIVersion:
		return nil, fmt.Errorf("apiVersion is %q, not %s", doc.APIVersion, model.APIVersion)
	case doc.Kind == "Plan":
		return savedPlans{&doc.Plan}, nil
	case doc.Kind != "PlanList":
		return nil, fmt.Errorf("kind is %q, not Plan", doc.Kind)
	}
	if i := slices.Index(doc.Items, nil); i >= 0 {
		return nil, fmt.Errorf("items[%d] is not a plan", i)
	}
	return doc.Items, nil
}

// of returns the plan of a pod.
func (s savedPlans) of(d *podspec.Desired) (*plan.Plan, error) {
	ref := model.RefOf(d.Pod)
	for _, p := range s {
		if p.Pod == ref {
			return p, nil
		}
	}
	return nil, fmt.Errorf("pod %s (uid %s) is not in the saved plan", ref, ref.UID)
}

// pin prints manifests as they were written, with the digests of the runtime's images instead of tags.
func pin(ctx context.Context, sess *session.Session, manifests []string, recursive bool) error {
	for _, one := range manifests {
		if !input.IsManifest(one) {
			return exit.Usagef("--pin takes manifests, and %s is a pod: `podctl export %s` prints its manifest",
				one, one)
		}
	}
	if len(manifests) == 0 {
		return exit.Usagef("--pin needs a manifest")
	}
	m, err := load.Load(ctx, sess.Manifests(recursive), manifests...)
	if err != nil {
		return err
	}
	if err = errors.Join(m.Err(), selection.CheckNamespace(sess, m)); err != nil {
		return err
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	pins, err := engine.Images.Pin(ctx, m.Pods)
	if err != nil {
		return err
	}
	text, left, err := m.Pin(pins)
	if err != nil {
		return err
	}
	for _, name := range left {
		sess.IO.Note("note: %s is not printed, to protect its values; keep its manifest", name)
	}
	_, err = sess.IO.Out.Write(text)
	return err
}
