package commands

import (
	"github.com/spf13/cobra"
)

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that lets a shell complete podctl's words",
		Long: "Print a script that lets a shell complete commands, flags and their values, pods, containers and manifests.\n" +
			"Packages install it; bash needs bash-completion. Pods are known by what podctl remembers: no runtime is asked." +
			exitCodes("0 printed", "1 error"),
		Example: "  . <(podctl completion bash)\n" +
			"  podctl completion zsh > \"${fpath[1]}/_podctl\"\n" +
			"  podctl completion fish > ~/.config/fish/completions/podctl.fish",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("completion needs one shell: bash, zsh, fish or powershell")
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
	return usagef("completion knows bash, zsh, fish and powershell, not %q", shell)
}
