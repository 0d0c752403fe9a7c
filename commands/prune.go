package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/plan"
)

type pruneOptions struct {
	dryRun bool
	output string
}

func newPrune(g *globals) *cobra.Command {
	o := &pruneOptions{}
	cmd := &cobra.Command{
		Use:   "prune [flags]",
		Short: "Remove what pods have left behind",
		Long: "Remove what podctl made and nobody needs any more: records of containers that ended, but for the newest of each;\n" +
			"sandboxes that a newer one has replaced, or of which podctl has no journal and in which nothing runs; files in the\n" +
			"state directory of pods that are gone; logs of deleted pods. What runs, what other tools made, and claims are never\n" +
			"touched. Logs of 10 MiB of pods that podctl applied are rotated, as `apply` does: five files are kept of each.\n" +
			"Images are removed by `podctl image prune`." +
			exitCodes("0 done", "1 error, or something could not be removed", "130 interrupted"),
		Example: "  podctl prune --dry-run\n  podctl prune\n  podctl prune --dry-run -o json | jq '[.items[].size] | add'",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return g.prune(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "Only show what would be removed and rotated")
	f.VarP(outputFlag(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func (g *globals) prune(ctx context.Context, o *pruneOptions) error {
	engine, err := g.connect()
	if err != nil {
		return err
	}
	garbage, err := engine.Garbage(ctx)
	if err != nil {
		return err
	}
	var errs []error
	if !o.dryRun {
		garbage = slices.DeleteFunc(garbage, func(one runtime.Garbage) bool {
			err := g.removeGarbage(ctx, engine, one)
			if !errors.Is(err, runtime.ErrNeeded) {
				errs = append(errs, err)
			}
			return err != nil
		})
	}
	return errors.Join(append(errs, g.showGarbage(o, garbage))...)
}

func (g *globals) removeGarbage(ctx context.Context, engine *runtime.Engine, one runtime.Garbage) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	err := engine.RemoveGarbage(ctx, one)
	if err != nil && !errors.Is(err, runtime.ErrNeeded) {
		doing := "removing"
		if one.Kind == runtime.GarbageFullLog {
			doing = "rotating"
		}
		return fmt.Errorf("%s %s of pod %s: %w", doing, garbageText(&one), podText(one.Pod), err)
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
func (o *pruneOptions) summary(garbage []runtime.Garbage, size int64) string {
	rotate, full := "rotated", 0
	if o.dryRun {
		rotate = "would rotate"
	}
	for i := range garbage {
		if garbage[i].Kind == runtime.GarbageFullLog {
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
func (g *globals) showGarbage(o *pruneOptions, garbage []runtime.Garbage) error {
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

func (o *pruneOptions) document(garbage []runtime.Garbage) any {
	if garbage == nil {
		garbage = []runtime.Garbage{}
	}
	return struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Removed    bool              `json:"removed"`
		Items      []runtime.Garbage `json:"items"`
	}{plan.APIVersion, "GarbageList", !o.dryRun, garbage}
}

// podText names a pod, by its uid when nobody knows its name any more.
func podText(ref plan.PodRef) string {
	if ref.Name == "" {
		return string(ref.UID)
	}
	return ref.String()
}

// sizeText is a size, or nothing where it is not known.
func sizeText(size int64) string {
	if size == 0 {
		return ""
	}
	return humanSize(size)
}

func garbageText(one *runtime.Garbage) string {
	switch one.Kind {
	case runtime.GarbageContainer:
		return fmt.Sprintf("container %s, attempt %d", one.Name, one.Attempt)
	case runtime.GarbageSandbox:
		return "sandbox " + shortID(one.ID)
	case runtime.GarbageFiles:
		return "volumes and files"
	case runtime.GarbageLogs:
		return "logs"
	case runtime.GarbageEvents:
		return "events"
	case runtime.GarbageFullLog:
		return fmt.Sprintf("log of container %s, attempt %d", one.Name, one.Attempt)
	}
	return cmp.Or(one.Name, one.ID)
}
