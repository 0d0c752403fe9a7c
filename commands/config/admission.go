package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/imageaccess"
)

// Admission has the flags of the commands that admit pods.
type Admission struct {
	// Admit rejects pods that a kubelet with these settings rejects. Otherwise, all pods are admitted.
	Admit bool
	admission.Settings
}

// keyAnnotation sets a different key for a flag in configuration files.
const keyAnnotation = "podctl/key"

// Register defines the flags.
func (a *Admission) Register(set *pflag.FlagSet, admit bool) {
	set.BoolVar(&a.Admit, "enforce-allocatable", admit,
		"Reject pods that a kubelet would reject, for example for lack of memory")
	set.IntVar(&a.MaxPods, "max-pods", 110, "Maximum number of pods")
	set.Var(&list{"resources", a.reservedText, a.setReserved}, "system-reserved",
		"Resources reserved for the system, such as cpu=500m,memory=1Gi")
	sysctlsText := func() string { return strings.Join(a.UnsafeSysctls, ",") }
	set.Var(&list{"names", sysctlsText, a.setSysctls}, "allowed-unsafe-sysctls",
		"Unsafe sysctls that pods may set, such as kernel.msg*,net.core.somaxconn")
	set.Var(labelsInto(&a.Labels), "node-labels",
		"Labels of the node for nodeSelector and nodeAffinity, such as disk=ssd")
	set.Lookup("enforce-allocatable").Annotations = map[string][]string{keyAnnotation: {"admission"}}
}

// eachPair parses a list such as a=1,b=2.
func eachPair(text string, take func(key, value string) error) error {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		key, value, found := strings.Cut(one, "=")
		if !found || key == "" {
			return fmt.Errorf("%q is not of the form NAME=VALUE", one)
		}
		if err := take(key, value); err != nil {
			return err
		}
	}
	return nil
}

// list is a flag that takes a list. A new value replaces the old one.
type list struct {
	kind string
	text func() string
	set  func(string) error
}

// Type returns the name of the value in the help.
func (l *list) Type() string { return l.kind }

// String returns the list as text.
func (l *list) String() string { return l.text() }

// Set replaces the list.
func (l *list) Set(text string) error { return l.set(text) }

func (a *Admission) reservedText() string {
	texts := map[string]string{}
	for name, quantity := range a.Reserved {
		texts[string(name)] = quantity.String()
	}
	return pairsText(texts)
}

func (a *Admission) setReserved(text string) error {
	a.Reserved = v1.ResourceList{}
	err := eachPair(text, func(name, value string) error {
		quantity, err := resource.ParseQuantity(value)
		if err == nil && quantity.Sign() < 0 {
			err = errors.New("it must not be negative")
		}
		if err != nil {
			return fmt.Errorf("%s=%s: %w", name, value, err)
		}
		a.Reserved[v1.ResourceName(name)] = quantity
		return nil
	})
	return errors.Join(err, (&admission.Settings{Reserved: a.Reserved}).Check())
}

// setSysctls accepts names and prefixes of names.
func (a *Admission) setSysctls(text string) error {
	a.UnsafeSysctls = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	return (&admission.Settings{UnsafeSysctls: a.UnsafeSysctls}).Check()
}

// NodeLabels returns the node labels of the command line. Without any it returns those of the configuration, because
// some commands have no flag for them.
func (f *Flags) NodeLabels(given map[string]string) map[string]string {
	if given != nil {
		return given
	}
	var all map[string]string
	// Invalid labels have already ended the command in Load.
	_ = labelsInto(&all).Set(f.Settings["node-labels"].Value)
	return all
}

// Flags of the agent for new pods. In the configuration, they apply to all commands.
const (
	PodPIDsFlag        = "pod-max-pids"
	SeccompDefaultFlag = "seccomp-default"
	ImagePolicyFlag    = "image-pull-credentials-verification-policy"
	ImageAllowlistFlag = "preloaded-images-verification-allowlist"
)

// PodDefaults are what a machine gives to new pods.
type PodDefaults struct {
	// PIDs is the maximum number of tasks of a pod. Zero and less mean no limit.
	PIDs int64
	// Seccomp is set if containers that set no seccomp profile have the default one of the runtime.
	Seccomp bool
	// Images defines which present images a pod of the API server must be able to pull.
	Images imageaccess.Policy
}

// PodDefaults returns the values in the configuration of the agent.
func (f *Flags) PodDefaults() (d PodDefaults) {
	// Invalid values have already ended the command in Load.
	d.PIDs, _ = strconv.ParseInt(f.Settings["agent."+PodPIDsFlag].Value, 0, 64)
	d.Seccomp, _ = strconv.ParseBool(f.Settings["agent."+SeccompDefaultFlag].Value)
	d.Images.Name = f.Settings["agent."+ImagePolicyFlag].Value
	d.Images.Allowlist = f.Settings["agent."+ImageAllowlistFlag].Value
	return d
}

// labelsInto returns a flag for node labels.
func labelsInto(all *map[string]string) *list {
	return &list{"labels", func() string { return pairsText(*all) }, func(text string) error {
		*all = map[string]string{}
		return eachPair(text, func(key, value string) error {
			(*all)[key] = value
			return nil
		})
	}}
}

// pairsText formats a list as eachPair reads it.
func pairsText(pairs map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		parts = append(parts, key+"="+pairs[key])
	}
	return strings.Join(parts, ",")
}
