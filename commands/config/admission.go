package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/runtime/admission"
)

// Admission are the flags of the commands that admit pods.
type Admission struct {
	enforce bool
	admission.Settings
}

// keyAnnotation gives a flag another key in configuration files.
const keyAnnotation = "podctl/key"

// Register defines the flags.
func (a *Admission) Register(set *pflag.FlagSet, enforce bool) {
	set.BoolVar(&a.enforce, "enforce-allocatable", enforce, "Reject pods that a kubelet would reject, for example for lack of memory")
	set.IntVar(&a.MaxPods, "max-pods", 110, "Maximum number of pods")
	set.Var(&list{"resources", a.reservedText, a.setReserved}, "system-reserved", "Resources reserved for the system, such as cpu=500m,memory=1Gi")
	set.Var(&list{"names", func() string { return strings.Join(a.UnsafeSysctls, ",") }, a.setSysctls}, "allowed-unsafe-sysctls", "Unsafe sysctls that pods may set, such as kernel.msg*,net.core.somaxconn")
	set.Var(labelsInto(&a.Labels), "node-labels", "Labels of the node for nodeSelector and nodeAffinity, such as disk=ssd")
	set.Lookup("enforce-allocatable").Annotations = map[string][]string{keyAnnotation: {"admission"}}
}

// Enforced are the settings by which pods are admitted; nil where all are.
func (a *Admission) Enforced() *admission.Settings {
	if !a.enforce {
		return nil
	}
	return &a.Settings
}

// eachPair reads a list such as a=1,b=2.
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

// list is a flag that takes a list, in the place of the one before.
type list struct {
	kind string
	text func() string
	set  func(string) error
}

// Type names the flag's kind of value in the help.
func (l *list) Type() string { return l.kind }

// String is the list.
func (l *list) String() string { return l.text() }

// Set takes another list in the place of the one before.
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

// setSysctls takes names and beginnings of names.
func (a *Admission) setSysctls(text string) error {
	a.UnsafeSysctls = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	return (&admission.Settings{UnsafeSysctls: a.UnsafeSysctls}).Check()
}

// NodeLabels are the labels that the command line gives the node. Without any they are those of the configuration: some commands have
// no flag for them.
func (f *Flags) NodeLabels(given map[string]string) map[string]string {
	if given != nil {
		return given
	}
	var all map[string]string
	// What is wrong with them has ended the command.
	_ = labelsInto(&all).Set(f.Settings["node-labels"].Value)
	return all
}

// labelsInto is a flag with labels of a node.
func labelsInto(all *map[string]string) *list {
	return &list{"labels", func() string { return pairsText(*all) }, func(text string) error {
		*all = map[string]string{}
		return eachPair(text, func(key, value string) error {
			(*all)[key] = value
			return nil
		})
	}}
}

// pairsText is a list as eachPair reads it.
func pairsText(pairs map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		parts = append(parts, key+"="+pairs[key])
	}
	return strings.Join(parts, ",")
}
