package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podctl/podctl/runtime/safefs"
)

// cniCache is where containerd's CNI library caches the results of plugins for all networks.
const cniCache = "/var/lib/cni/results"

// portmapChains returns the chains of the CNI plugin portmap that all networks share. The plugin recreates them when
// necessary.
func portmapChains() []string {
	return []string{"CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-MASQ", "CNI-HOSTPORT-SETMARK"}
}

// removeCNI removes leftovers of CNI plugins for a network: rules and chains of iptables, and cached results.
func removeCNI(ctx context.Context, network string) error {
	return errors.Join(removeChains(ctx, network), removeCached(network))
}

// removeCached removes the cached results of a network, and empty directories of the cache.
func removeCached(network string) error {
	entries, err := os.ReadDir(cniCache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), network+"-") {
			errs = append(errs, os.Remove(filepath.Join(cniCache, e.Name())))
		}
	}
	for _, dir := range []string{cniCache, filepath.Dir(cniCache)} {
		_ = os.Remove(dir) // This fails if the directory is not empty, as intended.
	}
	return errors.Join(errs...)
}

// removeChains removes the iptables rules and chains of a network. It removes the shared chains if no other network
// uses them.
func removeChains(ctx context.Context, network string) error {
	rules, err := iptables(ctx, nil, "iptables-save", "-t", "nat")
	if missing := (*MissingError)(nil); errors.As(err, &missing) {
		return nil // Without iptables, no plugin can have created chains.
	}
	if err != nil {
		return err
	}
	if script := cniCleanUp(string(rules), network); script != "" {
		_, err = iptables(ctx, []byte(script), "iptables-restore", "-w", "--noflush")
	}
	return err
}

// iptables runs one of its programs.
func iptables(ctx context.Context, in []byte, program string, args ...string) ([]byte, error) {
	path, err := lookPath(program, "iptables")
	if err != nil {
		return nil, err
	}
	checked, err := safefs.OpenProgram(path)
	if err != nil {
		return nil, err
	}
	defer checked.Close() //nolint:errcheck // A handle on a program.
	cmd := checked.Command(ctx, args...)
	// A single program implements all of them and selects by its name.
	cmd.Args[0] = program
	cmd.Dir, cmd.Env, cmd.Stdin = "/", environ(path), bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// cniCleanUp returns the input for iptables-restore that removes the rules and chains of a network. The plugins bridge
// and portmap created them. It is empty if there are none. text is the output of iptables-save for the table nat.
func cniCleanUp(text, network string) string {
	var own, others, targets, known []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, ":CNI-"):
			known = append(known, strings.Fields(line[1:])[0])
		case !strings.HasPrefix(line, "-A "):
		case strings.Contains(line, `name: \"`+network+`\" id: `):
			own = append(own, line)
			if to := jumpOf(line); strings.HasPrefix(to, "CNI-") {
				targets = append(targets, to)
			}
		default:
			others = append(others, line)
		}
	}
	uses := func(chain string) bool {
		return slices.ContainsFunc(others, func(line string) bool { return strings.HasPrefix(line, "-A "+chain+" ") })
	}
	shared := portmapChains()
	if len(known) > 0 && !uses(shared[0]) {
		targets = append(targets, shared...)
		for _, line := range others {
			if slices.Contains(shared, jumpOf(line)) {
				own = append(own, line)
			}
		}
	}
	targets = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(targets))), func(chain string) bool {
		return !slices.Contains(known, chain)
	})
	return cleanUpScript(own, targets)
}

// cleanUpScript removes rules, and chains with their rules.
func cleanUpScript(rules, chains []string) string {
	if len(rules)+len(chains) == 0 {
		return ""
	}
	lines := []string{"*nat"}
	for _, rule := range rules {
		// Rules in removed chains are removed with them.
		if chain := strings.Fields(rule)[1]; !slices.Contains(chains, chain) {
			lines = append(lines, "-D"+strings.TrimPrefix(rule, "-A"))
		}
	}
	for _, verb := range []string{"-F ", "-X "} {
		for _, chain := range chains {
			lines = append(lines, verb+chain)
		}
	}
	return strings.Join(append(lines, "COMMIT"), "\n") + "\n"
}

// jumpOf returns the target chain of a rule, or an empty string.
func jumpOf(rule string) string {
	fields := strings.Fields(rule)
	if i := slices.Index(fields, "-j"); i >= 0 && i+1 < len(fields) {
		return fields[i+1]
	}
	return ""
}
