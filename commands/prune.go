package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/model"
)

type pruneOptions struct {
	dryRun  bool
	volumes bool
	output  string
}

func newPrune(g *globals) *cobra.Command {
	o := &pruneOptions{}
	cmd := &cobra.Command{
		Use:   "prune [flags]",
		Short: "Remove what pods have left behind",
		Long: "Remove what podctl made and nobody needs any more: records of containers that ended, but for the newest of each;\n" +
			"sandboxes that a newer one has replaced, or of which podctl has no journal and in which nothing runs; files in the\n" +
			"state directory of pods that are gone; logs and events of deleted pods; with --volumes claims that no pod has. What\n" +
			"runs and what other tools made is never touched. Logs of 10 MiB of pods that podctl applied are rotated, as `apply`\n" +
			"does: five files are kept of each. Images are removed by `podctl image prune`." +
			exitCodes("0 done", "1 error, or something could not be removed", "130 interrupted"),
		Example: "  podctl prune --dry-run\n  podctl prune\n  podctl prune --dry-run -o json | jq '[.items[].size] | add'",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return g.prune(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "Only show what would be removed and rotated")
	f.BoolVar(&o.volumes, "volumes", false, "Also remove the persistent volume claims that no pod uses, with their data")
	f.VarP(outputFlag(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func (g *globals) prune(ctx context.Context, o *pruneOptions) error {
	engine, err := g.connect()
	if err != nil {
		return err
	}
	garbage, err := engine.Garbage.List(ctx)
	if err != nil {
		return err
	}
	garbage, failed := g.collect(ctx, engine, o, garbage)
	// Only now: a pod without a journal may have claims, until it is gone.
	claims, err := o.claims(ctx, engine)
	claims, kept := g.collect(ctx, engine, o, claims)
	return errors.Join(failed, err, kept, g.showGarbage(o, append(garbage, claims...)))
}

// collect removes garbage, unless it is only to be shown, and returns what was removed.
func (g *globals) collect(ctx context.Context, engine *runtime.Engine, o *pruneOptions, garbage []gc.Garbage) ([]gc.Garbage, error) {
	if o.dryRun {
		return garbage, nil
	}
	var errs []error
	removed := slices.DeleteFunc(garbage, func(one gc.Garbage) bool {
		err := g.removeGarbage(ctx, engine, one)
		if !errors.Is(err, gc.ErrNeeded) {
			errs = append(errs, err)
		}
		return err != nil
	})
	return removed, errors.Join(errs...)
}

// claims are those that shall go.
func (o *pruneOptions) claims(ctx context.Context, engine *runtime.Engine) ([]gc.Garbage, error) {
	if !o.volumes {
		return nil, nil
	}
	return engine.Garbage.UnusedClaims(ctx)
}

func (g *globals) removeGarbage(ctx context.Context, engine *runtime.Engine, one gc.Garbage) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	err := engine.Garbage.Remove(ctx, one)
	if err != nil && !errors.Is(err, gc.ErrNeeded) {
		doing := "removing"
		if one.Kind == gc.GarbageFullLog {
			doing = "rotating"
		}
		return fmt.Errorf("%s %s%s: %w", doing, garbageText(&one), ofPod(&one), err)
	}
	return err
}

// verb begins the sentence that sums up.
func (o *pruneOptions) verb() string {
	if o.dryRun {
		return "Would remove"
	}
	return "Removed"
}

// summary is the sentence that sums up.
func (o *pruneOptions) summary(garbage []gc.Garbage, size int64) string {
	rotate, full := "rotated", 0
	if o.dryRun {
		rotate = "would rotate"
	}
	for i := range garbage {
		if garbage[i].Kind == gc.GarbageFullLog {
			full++
		}
	}
	text := fmt.Sprintf("%s %s, %s", o.verb(), counted(len(garbage)-full, "thing"), humanSize(size))
	if full > 0 {
		text += fmt.Sprintf("; %s %s", rotate, counted(full, "log"))
	}
	return text + "."
}

// showGarbage prints what was removed, or would be.
func (g *globals) showGarbage(o *pruneOptions, garbage []gc.Garbage) error {
	if isDocument(o.output) {
		return writeDocument(g.env.Out, o.output, o.document(garbage))
	}
	if len(garbage) == 0 {
		g.note("Nothing to remove.")
		return nil
	}
	rows, sum := make([][]string, 0, len(garbage)), int64(0)
	for i := range garbage {
		one := &garbage[i]
		sum += one.Size
		rows = append(rows, []string{podText(one.Pod), garbageText(one), cmp.Or(sizeText(one.Size), "-"), one.Reason})
	}
	if err := table(g.env.Out, []string{"POD", "WHAT", "SIZE", "WHY"}, rows); err != nil {
		return err
	}
	g.print("\n%s", o.summary(garbage, sum))
	return nil
}

func (o *pruneOptions) document(garbage []gc.Garbage) any {
	if garbage == nil {
		garbage = []gc.Garbage{}
	}
	return struct {
		APIVersion string       `json:"apiVersion"`
		Kind       string       `json:"kind"`
		Removed    bool         `json:"removed"`
		Items      []gc.Garbage `json:"items"`
	}{model.APIVersion, "GarbageList", !o.dryRun, garbage}
}

// podText names a pod, by its uid when nobody knows its name any more. A claim has none.
func podText(ref model.PodRef) string {
	if ref.Name == "" {
		return cmp.Or(string(ref.UID), "-")
	}
	return ref.String()
}

// ofPod says whose garbage it is; a claim says so itself.
func ofPod(one *gc.Garbage) string {
	if one.Kind == gc.GarbageClaim {
		return ""
	}
	return " of pod " + podText(one.Pod)
}

// sizeText is a size, or nothing where it is not known.
func sizeText(size int64) string {
	if size == 0 {
		return ""
	}
	return humanSize(size)
}

func garbageText(one *gc.Garbage) string {
	switch one.Kind {
	case gc.GarbageContainer:
		return fmt.Sprintf("container %s, attempt %d", one.Name, one.Attempt)
	case gc.GarbageSandbox:
		return "sandbox " + model.ShortID(one.ID)
	case gc.GarbageFiles:
		return "volumes and files"
	case gc.GarbageLogs:
		return "logs"
	case gc.GarbageEvents:
		return "events"
	case gc.GarbageClaim:
		return fmt.Sprintf("claim %s/%s", one.Pod.Namespace, one.Claim)
	case gc.GarbageFullLog:
		return fmt.Sprintf("log of container %s, attempt %d", one.Name, one.Attempt)
	}
	return cmp.Or(one.Name, one.ID)
}
