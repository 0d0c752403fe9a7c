package flags

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestErrors checks that the error for a wrong value describes the allowed values. The error for an unknown command
// suggests another one, with or without flags after it.
func TestErrors(t *testing.T) {
	for line, want := range map[string]string{
		"apply --count x":   `--count must be a whole number, not "x"`,
		"apply --size -1":   `--size must be a whole number of 0 or more, not "-1"`,
		"apply --timeout 5": `--timeout must be a time with its unit, such as 30s, 5m or 1h30m, not "5"`,
		"apply --force=2":   `--force must be true or false, not "2"`,
		"apply --nothing":   "unknown flag: --nothing",
		"apply -k dir": "unknown shorthand flag: 'k' in -k; " +
			"podctl does not build kustomizations: write kustomize build DIR | podctl apply -f -",
		"apply -kdir": "unknown shorthand flag: 'k' in -kdir; " +
			"podctl does not build kustomizations: write kustomize build DIR | podctl apply -f -",
		"apply --kustomize=d": "unknown flag: --kustomize; " +
			"podctl does not build kustomizations: write kustomize build DIR | podctl apply -f -",
		"logs -k dir":        "unknown shorthand flag: 'k' in -k",
		"create -f pod.yaml": "unknown command \"create\"; use `podctl apply -f FILE`",
		"create":             "unknown command \"create\"; use `podctl apply -f FILE`",
		"destroy":            "unknown command \"destroy\"; use `podctl delete POD`, which stops and removes a pod",
		"tag a b":            "unknown command \"tag\"; use `podctl image tag SOURCE TARGET`",
		"aply -f x":          `unknown command "aply"; did you mean apply?`,
	} {
		root := &cobra.Command{
			Use: "podctl", Args: Subcommand, RunE: func(*cobra.Command, []string) error { return nil },
			SilenceErrors: true, SilenceUsage: true,
		}
		root.SuggestionsMinimumDistance = 2
		root.SetFlagErrorFunc(Error)
		apply := &cobra.Command{Use: "apply", RunE: func(*cobra.Command, []string) error { return nil }}
		apply.Flags().Int("count", 0, "")
		apply.Flags().Uint("size", 0, "")
		apply.Flags().Duration("timeout", time.Second, "")
		apply.Flags().Bool("force", false, "")
		apply.Flags().StringSliceP("filename", "f", nil, "")
		root.AddCommand(apply, &cobra.Command{Use: "logs", RunE: func(*cobra.Command, []string) error { return nil }})
		root.SetOut(io.Discard)
		root.SetArgs(strings.Fields(line))
		if err := root.Execute(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
