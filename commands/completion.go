package commands

import (
	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
)

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a shell completion script",
		Long: "Print a script that completes commands, flags and their values, pods, " +
			"containers and manifests in a shell. " +
			"Packages\ninstall it; bash needs bash-completion. " +
			"Pod names come from podctl's own state, without a call to the runtime." +
			flags.ExitCodes("0 success", "1 error"),
		Example: "  . <(podctl completion bash)\n" +
			"  podctl completion zsh > \"${fpath[1]}/_podctl\"\n" +
			"  podctl completion fish > ~/.config/fish/completions/podctl.fish",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("completion needs one shell: bash, zsh, fish or powershell")
			}
			return writeCompletion(cmd.Root(), args[0])
		},
	}
}

func writeCompletion(root *cobra.Command, shell string) error {
	switch w := root.OutOrStdout(); shell {
	case "bash":
		return root.GenBashCompletionV2(w, true)
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(w)
	}
	return exit.Usagef("unknown shell %q: use bash, zsh, fish or powershell", shell)
}
