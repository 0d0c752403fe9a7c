package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/model"
)

type pruneOptions struct {
	dryRun  bool
	volumes bool
	output  string
}

func newPrune(sess *session.Session) *cobra.Command {
	o := &pruneOptions{}
	cmd := &cobra.Command{
		Use:   "prune [flags]",
		Short: "Remove leftovers: files and records that no pod uses",
		Long: "Remove leftovers that podctl created and no pod uses:\n" +
			"\n" +
			"  records of exited containers, except the newest of each\n" +
			"  replaced sandboxes, and sandboxes without a checkpoint that run nothing\n" +
			"  files in the state directory, logs and events of deleted pods\n" +
			"  with --volumes: persistent volume claims that no pod uses\n" +
			"\n" +
			"Running containers and objects of other tools are never touched. " +
			"Logs of applied pods that reach 10 MiB are rotated,\nas in apply; podctl keeps five files of each. " +
			"`podctl image prune` removes images." +
			flags.ExitCodes("0 success", "1 error, or something could not be removed", "130 interrupted"),
		Example: "  podctl prune --dry-run\n" +
			"  podctl prune\n" +
			"  podctl prune --dry-run -o json | jq '[.items[].size] | add'",
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return prune(cmd.Context(), sess, o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "Only show what would be removed and rotated")
	f.BoolVar(&o.volumes, "volumes", false, "Also delete persistent volume claims that no pod uses, with their data")
	f.VarP(flags.Output(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func prune(ctx context.Context, sess *session.Session, o *pruneOptions) error {
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	garbage, err := engine.Garbage.List(ctx)
	if err != nil {
		return err
	}
	garbage, failed := o.collect(ctx, engine, garbage)
	// Claims come last, because a pod without a checkpoint may use claims until it is removed.
	var claims []gc.Garbage
	if o.volumes {
		claims, err = engine.Garbage.UnusedClaims(ctx)
	}
	claims, kept := o.collect(ctx, engine, claims)
	return errors.Join(failed, err, kept, showGarbage(sess, o, append(garbage, claims...)))
}

// collect removes garbage and returns the removed items. With --dry-run it removes nothing and returns all of them.
func (o *pruneOptions) collect(
	ctx context.Context, engine *runtime.Engine, garbage []gc.Garbage,
) ([]gc.Garbage, error) {
	if o.dryRun {
		return garbage, nil
	}
	var errs []error
	removed := slices.DeleteFunc(garbage, func(one gc.Garbage) bool {
		err := removeGarbage(ctx, engine, one)
		if !errors.Is(err, gc.ErrNeeded) {
			errs = append(errs, err)
		}
		return err != nil
	})
	return removed, errors.Join(errs...)
}

func removeGarbage(ctx context.Context, engine *runtime.Engine, one gc.Garbage) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	err := engine.Garbage.Remove(ctx, one)
	if err != nil && !errors.Is(err, gc.ErrNeeded) {
		verb := "removing"
		if one.Kind == gc.GarbageFullLog {
			verb = "rotating"
		}
		return fmt.Errorf("%s %s%s: %w", verb, one.Describe(), ofPod(&one), err)
	}
	return err
}

// summary returns the last sentence of the output.
func (o *pruneOptions) summary(garbage []gc.Garbage, size int64) string {
	remove, rotate, full := "Removed", "rotated", 0
	if o.dryRun {
		remove, rotate = "Would remove", "would rotate"
	}
	for i := range garbage {
		if garbage[i].Kind == gc.GarbageFullLog {
			full++
		}
	}
	text := fmt.Sprintf("%s %s, %s", remove, view.Count(len(garbage)-full, "thing"), view.Size(size))
	if full > 0 {
		text += fmt.Sprintf("; %s %s", rotate, view.Count(full, "log"))
	}
	return text + "."
}

// showGarbage prints the garbage that was removed, or would be.
func showGarbage(sess *session.Session, o *pruneOptions, garbage []gc.Garbage) error {
	if terminal.IsDocument(o.output) {
		return terminal.WriteDocument(sess.IO.Out, o.output, o.document(garbage))
	}
	if len(garbage) == 0 {
		sess.IO.Note("Nothing to remove.")
		return nil
	}
	rows, sum := make([][]string, 0, len(garbage)), int64(0)
	for i := range garbage {
		one := &garbage[i]
		sum += one.Size
		size := "-"
		if one.Size > 0 {
			size = view.Size(one.Size)
		}
		rows = append(rows, []string{cmp.Or(one.PodText(), "-"), one.Describe(), size, one.Reason})
	}
	if err := table.Write(sess.IO.Out, []string{"POD", "WHAT", "SIZE", "WHY"}, rows); err != nil {
		return err
	}
	sess.IO.Print("\n%s", o.summary(garbage, sum))
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

// ofPod returns the pod of the garbage as a suffix for errors. A claim names its pod itself.
func ofPod(one *gc.Garbage) string {
	if one.Kind == gc.GarbageClaim {
		return ""
	}
	return " of pod " + one.PodText()
}
