package flags

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/exit"
)

// Error says what is wrong with the flags of a command line. It is cobra's FlagErrorFunc.
func Error(cmd *cobra.Command, err error) error {
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		if want := expected(invalid.GetFlag()); want != "" {
			return exit.Usagef("--%s must be %s, not %q", invalid.GetFlag().Name, want, invalid.GetValue())
		}
	}
	if unknown := unknownCommand(cmd); unknown != "" {
		return Unknown(cmd, unknown)
	}
	return exit.Usagef("%s", err.Error())
}

// expected says what a flag of a kind without words of its own takes; empty for the others.
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

// unknownCommand is the first argument of a command that only has others below it: it is no
// command, so that its flags are unknown as well.
func unknownCommand(cmd *cobra.Command) string {
	if cmd.HasSubCommands() && len(cmd.Flags().Args()) > 0 {
		return cmd.Flags().Args()[0]
	}
	return ""
}

// Unknown says that a word is no command, and what to use instead.
func Unknown(cmd *cobra.Command, word string) error {
	text := fmt.Sprintf("unknown command %q", word)
	if use, known := elsewhere()[word]; known && !cmd.HasParent() {
		return exit.Usagef("%s; use %s", text, use)
	}
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return exit.Usagef("%s", text)
}

// elsewhere are the words that kubectl, docker, podman, crictl, nerdctl and terraform have for
// what podctl says otherwise.
func elsewhere() map[string]string {
	words := map[string]string{}
	for use, others := range map[string]string{
		"`podctl apply -f FILE`": "create",
		"`podctl apply --wait FILE`, or `podctl node up` to start a container runtime":       "up",
		"`podctl delete -f FILE`, or `podctl node down` to stop the runtime of podctl's own": "down",
		"`podctl apply POD`, which starts what should run":                                   "start",
		"`podctl delete POD`, which stops a pod and removes it":                              "stop rmp stopp destroy pause",
		"`podctl delete --force POD`":                                                        "kill",
		"`podctl apply FILE`":                                                                "runp replace play kube compose",
		"an editor for the manifest, then `podctl plan FILE` and `podctl apply FILE`":        "edit patch set label annotate",
		"`podctl plan FILE`": "diff dry-run",
		"`podctl get`":       "pods state",
		"`podctl describe POD`, or `podctl get POD -o yaml`":       "inspect",
		"`podctl describe POD`":                                    "inspectp show",
		"`podctl top`":                                             "stats statsp",
		"`podctl logs POD`":                                        "log",
		"`podctl image rm IMAGE`":                                  "rmi",
		"`podctl image pull IMAGE`":                                "pull",
		"`podctl image load FILE`":                                 "load",
		"`podctl image save IMAGE`":                                "save",
		"a builder such as buildah, then `podctl image load FILE`": "build commit",
		"a tool such as skopeo; podctl only pulls":                 "push",
		"`podctl restart POD`":                                     "rollout",
		"`podctl apply FILE`; podctl knows pods, and the ConfigMaps, Secrets and claims that they name": "scale",
		"hostPort in the manifest, or `podctl port-forward POD PORT`":                                   "expose",
		"`podctl validate FILE`; docs/fields.md has all fields":                                         "explain",
		"`podctl doctor`":                    "info cluster-info",
		"`podctl prune` and `podctl doctor`": "system",
		"--config, or /etc/podctl/config.yaml (docs/configuration.md)": "config",
		"`podctl get POD`": "status pod",
		"`podctl probe POD`, or `podctl validate FILE`":                     "check",
		"`podctl probe POD`":                                                "health",
		"`podctl export POD`":                                               "generate",
		"`podctl doctor`; nothing has to be set up but a container runtime": "init",
		"`podctl plan --all`":                                               "refresh",
		"`podctl apply FILE`, which adopts a pod of that name":              "import",
		"`podctl image tag IMAGE NAME`":                                     "tag",
		"`podctl image inspect IMAGE`":                                      "history",
		"imagePullSecrets, or a docker config.json (docs/configuration.md)": "login logout",
		"`podctl get pvc`":                                                  "volume",
		"`podctl get secrets`":                                              "secret",
		"`podctl get configmaps`":                                           "configmap",
		"`podctl delete --all -A`":                                          "drain",
		"`podctl get`; podctl knows pods, configmaps, secrets and pvc":      "api-resources",
	} {
		for word := range strings.FieldsSeq(others) {
			words[word] = use
		}
	}
	return words
}
