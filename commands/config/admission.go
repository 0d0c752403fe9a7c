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
	set.BoolVar(&a.enforce, "enforce-allocatable", enforce, "Reject pods that a kubelet would reject, such as those that request more than is left")
	set.IntVar(&a.MaxPods, "max-pods", 110, "Number of pods that can run")
	set.Var(&reserved{&a.Reserved}, "system-reserved", "Resources that pods cannot have, such as cpu=500m,memory=1Gi")
	set.Var(&sysctls{&a.Settings}, "allowed-unsafe-sysctls", "Unsafe sysctls that pods may set, such as kernel.msg*,net.core.somaxconn")
	set.Var(&labels{&a.Labels}, "node-labels", "Labels of the node for nodeSelector and nodeAffinity, such as disk=ssd")
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

// reserved is a list of resources.
type reserved struct{ list *v1.ResourceList }

func (*reserved) Type() string { return "resources" }

func (r *reserved) String() string {
	if r.list == nil {
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(*r.list)) {
		quantity := (*r.list)[name]
		parts = append(parts, string(name)+"="+quantity.String())
	}
	return strings.Join(parts, ",")
}

func (r *reserved) Set(text string) error {
	list := v1.ResourceList{}
	err := eachPair(text, func(name, value string) error {
		quantity, err := resource.ParseQuantity(value)
		if err == nil && quantity.Sign() < 0 {
			err = errors.New("it must not be negative")
		}
		if err != nil {
			return fmt.Errorf("%s=%s: %w", name, value, err)
		}
		list[v1.ResourceName(name)] = quantity
		return nil
	})
	*r.list = list
	return errors.Join(err, (&admission.Settings{Reserved: list}).Check())
}

// sysctls is a list of names and beginnings of names.
type sysctls struct{ settings *admission.Settings }

func (*sysctls) Type() string { return "names" }

func (s *sysctls) String() string {
	if s.settings == nil {
		return ""
	}
	return strings.Join(s.settings.UnsafeSysctls, ",")
}

func (s *sysctls) Set(text string) error {
	names := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	s.settings.UnsafeSysctls = names
	return (&admission.Settings{UnsafeSysctls: names}).Check()
}

// NodeLabels are the labels that the command line gives the node. Without any they are those of the configuration: some commands have
// no flag for them.
func (f *Flags) NodeLabels(given map[string]string) map[string]string {
	if given != nil {
		return given
	}
	var all map[string]string
	// What is wrong with them has ended the command.
	_ = (&labels{&all}).Set(f.Settings["node-labels"].Value)
	return all
}

// labels are labels of a node.
type labels struct{ all *map[string]string }

func (*labels) Type() string { return "labels" }

func (l *labels) String() string {
	if l.all == nil {
		return ""
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(*l.all)) {
		parts = append(parts, key+"="+(*l.all)[key])
	}
	return strings.Join(parts, ",")
}

func (l *labels) Set(text string) error {
	all := map[string]string{}
	err := eachPair(text, func(key, value string) error {
		all[key] = value
		return nil
	})
	*l.all = all
	return err
}
