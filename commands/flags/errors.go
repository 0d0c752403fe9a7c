package flags

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/podspec"
)

// Error returns the usage error for invalid flags. It is cobra's FlagErrorFunc.
func Error(cmd *cobra.Command, err error) error {
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		if want := expected(invalid.GetFlag()); want != "" {
			return exit.Usagef("--%s must be %s, not %q", invalid.GetFlag().Name, want, invalid.GetValue())
		}
	}
	if unknown := unknownCommand(cmd); unknown != "" {
		return Unknown(cmd, unknown)
	}
	if absent := (*pflag.NotExistError)(nil); errors.As(err, &absent) && isKustomize(cmd, absent) {
		return exit.Usagef("%s; podctl does not build kustomizations: write kustomize build DIR | %s -f -",
			err, cmd.CommandPath())
	}
	return exit.Usagef("%s", err.Error())
}

// isKustomize reports whether an unknown flag is kubectl's -k, on a command that reads manifests.
func isKustomize(cmd *cobra.Command, absent *pflag.NotExistError) bool {
	if cmd.Flags().Lookup("filename") == nil {
		return false
	}
	name := absent.GetSpecifiedName()
	return name == "kustomize" || name == "k" && absent.GetSpecifiedShortnames() != ""
}

// expected describes the values of a flag by its type; empty for types that describe their values themselves.
func expected(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int32", "int64":
		return "a whole number"
	case "uint", "uint16", "uint32", "uint64":
		return "a whole number of 0 or more"
	case "float32", "float64":
		return "a number"
	case "duration":
		return "a time with its unit, such as 30s, 5m or 1h30m"
	case "bool":
		return "true or false"
	}
	return ""
}

// unknownCommand returns the first argument of a command that only has subcommands. If it is set, the subcommand is
// unknown, which is why its flags are unknown too.
func unknownCommand(cmd *cobra.Command) string {
	if cmd.HasSubCommands() && len(cmd.Flags().Args()) > 0 {
		return cmd.Flags().Args()[0]
	}
	return ""
}

// Unknown returns the error for an unknown command, with the command to use instead.
func Unknown(cmd *cobra.Command, word string) error {
	text := fmt.Sprintf("unknown command %q", word)
	use := foreignWords()[word]
	if kind := podspec.KindOfWord(word); kind.Name != "" {
		use = "`podctl get " + kind.Words[0] + "`"
	}
	if use != "" && !cmd.HasParent() {
		return exit.Usagef("%s; use %s", text, use)
	}
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return exit.Usagef("%s", text)
}

// foreignWords maps words of kubectl, docker, podman, crictl, nerdctl and terraform to the corresponding podctl
// command.
func foreignWords() map[string]string {
	words := map[string]string{}
	for _, one := range [][2]string{
		{"create", "`podctl apply -f FILE`"},
		{"up", "`podctl apply --wait MANIFEST`, or `podctl node up` to start a container runtime"},
		{"down", "`podctl delete -f FILE`, or `podctl node down` to stop podctl's own runtime"},
		{"start", "`podctl apply MANIFEST`, or `podctl apply --all` to apply the stored manifests again"},
		{"stop rmp stopp destroy pause", "`podctl delete POD`, which stops and removes a pod"},
		{"kill", "`podctl delete --force POD`"},
		{"runp replace play kube compose", "`podctl apply MANIFEST`"},
		{
			"edit patch set label annotate",
			"an editor for the manifest, then `podctl plan MANIFEST` and `podctl apply MANIFEST`",
		},
		{"dry-run", "`podctl plan MANIFEST`"},
		{"state", "`podctl get`"},
		{"inspect", "`podctl describe POD`, or `podctl get POD -o yaml`"},
		{"inspectp show", "`podctl describe POD`"},
		{"stats statsp", "`podctl top`"},
		{"log", "`podctl logs POD`"},
		{"rmi", "`podctl image rm IMAGE`"},
		{"pull", "`podctl image pull IMAGE`"},
		{"load", "`podctl image load ARCHIVE`"},
		{"save", "`podctl image save IMAGE`"},
		{"build commit", "a builder such as buildah, then `podctl image load ARCHIVE`"},
		{"push", "a tool such as skopeo; podctl only pulls"},
		{"expose", "a Service of type NodePort in a manifest, or `podctl port-forward POD PORT`"},
		{"info cluster-info", "`podctl doctor`"},
		{"system", "`podctl prune` and `podctl doctor`"},
		{"config", "--config, or /etc/podctl/config.yaml (docs/configuration.md)"},
		{"status", "`podctl get POD`"},
		{"check", "`podctl probe POD`, or `podctl validate MANIFEST`"},
		{"health", "`podctl probe POD`"},
		{"generate", "`podctl export POD`"},
		{"init", "`podctl doctor`; podctl needs no setup except a container runtime"},
		{"refresh", "`podctl plan --all`"},
		{"import", "`podctl apply MANIFEST`, which adopts a pod of that name"},
		{"tag", "`podctl image tag SOURCE TARGET`"},
		{"history", "`podctl image inspect IMAGE`"},
		{"login logout", "imagePullSecrets, or a docker config.json (docs/configuration.md)"},
		{"volume", "`podctl get pvc`"},
		{"drain", "`podctl delete all --all -A`"},
		{"uninstall purge", "`podctl node down --purge`"},
		{"api-resources", "docs/workloads.md, which lists the kinds that podctl runs"},
	} {
		for word := range strings.FieldsSeq(one[0]) {
			words[word] = one[1]
		}
	}
	return words
}
