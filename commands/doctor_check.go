package commands

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/agent"
	"github.com/podctl/podctl/runtime/agent/eviction"
	"github.com/podctl/podctl/runtime/kubeletconf"
)

// accept checks a value with the flag of podctl.
func accept(flag *pflag.Flag, s kubeletconf.Setting) error {
	if flag == nil {
		return errors.New("there is no --" + s.Name)
	}
	return flag.Value.Set(s.Value)
}

// dropUnused removes values for eviction signals without a threshold. A kubelet ignores them (ParseThresholdConfig).
// An agent does not start with them.
func dropUnused(report *kubeletconf.Report) {
	values := map[string]string{"eviction-hard": eviction.Default}
	for _, s := range report.Settings {
		values[s.Name] = s.Value
	}
	for i := range report.Settings {
		s := &report.Settings[i]
		switch s.Name {
		case "eviction-minimum-reclaim":
			s.Value = keepSignals(report, s, "eviction-hard", values["eviction-hard"]+","+values["eviction-soft"])
		case "eviction-soft-grace-period":
			s.Value = keepSignals(report, s, "eviction-soft", values["eviction-soft"])
		default:
			continue
		}
		if s.Value == "" {
			report.Change(s.Name, kubeletconf.NoEffect, "None of its signals has a threshold.")
		}
	}
}

// keepSignals returns the pairs of a setting whose signal has one of the thresholds, and invalid pairs. kind is a flag
// with such thresholds.
func keepSignals(report *kubeletconf.Report, s *kubeletconf.Setting, kind, thresholds string) string {
	has := map[string]bool{}
	for one := range strings.SplitSeq(thresholds, ",") {
		signal, _, _ := strings.Cut(one, "<")
		has[strings.TrimSpace(signal)] = true
	}
	return strings.Join(slices.DeleteFunc(strings.Split(s.Value, ","), func(pair string) bool {
		signal, _, _ := strings.Cut(pair, "=")
		unused := !has[strings.TrimSpace(signal)] &&
			agent.Check(map[string]string{kind: signal + "<1Mi", s.Name: pair}) == nil
		if unused {
			report.Notes = append(report.Notes, fmt.Sprintf("%s: %s has no effect, because %s has no threshold",
				s.Name, pair, signal))
		}
		return unused
	}), ",")
}

// checkTogether refuses the settings with which the agent does not start. Settings whose names begin
// with the same word are checked together. If the agent starts without one of them, only that one is refused.
func checkTogether(report *kubeletconf.Report, values map[string]string) {
	groups := map[string]map[string]string{}
	for name, value := range values {
		word, _, _ := strings.Cut(name, "-")
		groups[word] = joined(groups[word], map[string]string{name: value})
	}
	accepted := map[string]string{}
	for _, word := range slices.Sorted(maps.Keys(groups)) {
		group := groups[word]
		err := agent.Check(joined(accepted, group))
		if err == nil {
			accepted = joined(accepted, group)
			continue
		}
		names := slices.Collect(maps.Keys(group))
		refused := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			rest := joined(accepted, group)
			delete(rest, name)
			return agent.Check(rest) != nil
		})
		if len(refused) == 0 {
			refused = names
		}
		for _, name := range refused {
			report.Change(name, kubeletconf.Refused, err.Error()+".")
		}
	}
}

func joined(a, b map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}
