package commands

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	yamlv3 "go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/ownfile"
)

// setting is the value of a flag that the command line did not set.
type setting struct {
	value string
	// origin is what set it, as errors name it: an environment variable, or a
	// configuration file and the line.
	origin   string
	fromFile bool
}

// configure gives every global flag that the command line did not set the value
// that the environment has for it, or else a configuration file. A value from
// there does not count as given on the command line.
func (g *globals) configure(flags *pflag.FlagSet) error {
	settings, err := g.readConfig(flags)
	if err != nil {
		return err
	}
	g.settings = map[string]setting{}
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		set, ok := settings[f.Name]
		if value := g.env.Getenv(variable(f.Name)); value != "" {
			set, ok = setting{value: value, origin: variable(f.Name)}, true
		}
		if !ok || f.Changed || !isSetting(f) {
			return
		}
		if err := f.Value.Set(set.value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", set.origin, f.Name, err))
		}
		g.settings[f.Name] = set
	})
	return errors.Join(errs...)
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "PODCTL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// readConfig reads the configuration files; a later one wins.
func (g *globals) readConfig(flags *pflag.FlagSet) (map[string]setting, error) {
	all := map[string]setting{}
	files, named := g.configFiles()
	open := ownfile.Open
	if named {
		open = openNamed
	}
	for _, file := range files {
		text, err := readConfigFile(file, open)
		if !named && ownfile.IsMissing(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the configuration: %w; --config names another", err)
		}
		settings, err := parseConfig(file, text)
		if err == nil {
			err = checkKeys(settings, flags)
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(all, settings)
	}
	return all, nil
}

// openNamed opens a file that the user named, whoever's it is. A pipe that nobody writes to
// does not keep the caller waiting.
func openNamed(file string) (*os.File, error) {
	return os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// readConfigFile reads one file. One that podctl finds by itself is only believed when
// it, and each link on the way to it, is root's or the user's own, and nobody else can write
// to it: with sudo the home directory may be another user's, and the file says which runtime
// root talks to.
func readConfigFile(file string, open func(string) (*os.File, error)) ([]byte, error) {
	f, err := open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // a file that was only read
	text, err := input.ReadAtMost(f, configMax)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return text, nil
}

// configFiles lists the configuration files, and tells whether the user named
// one, which then has to be there.
func (g *globals) configFiles() (files []string, named bool) {
	if g.config == "" {
		g.config = g.env.Getenv(variable(configFlag))
	}
	if g.config != "" {
		return []string{g.config}, true
	}
	if g.env.SystemConfig != "" {
		files = append(files, g.env.SystemConfig)
	}
	dir := g.env.Getenv("XDG_CONFIG_HOME")
	if home := g.env.Getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir != "" {
		files = append(files, filepath.Join(dir, "podctl", "config.yaml"))
	}
	return files, false
}

// parseConfig reads a configuration file: a map of flag names and their values.
func parseConfig(file string, text []byte) (map[string]setting, error) {
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal(text, &doc); err != nil {
		return nil, yamlError(file, err)
	}
	settings := map[string]setting{}
	if len(doc.Content) == 0 {
		return settings, nil
	}
	root := doc.Content[0]
	if root.Kind != yamlv3.MappingNode {
		return nil, fmt.Errorf("%s:%d: a configuration is a map of flags and their values, for example `namespace: web`", file, root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		origin := fmt.Sprintf("%s:%d", file, key.Line)
		if before, twice := settings[key.Value]; twice {
			return nil, fmt.Errorf("%s: %s is set already at %s", origin, key.Value, before.origin)
		}
		if value.Kind != yamlv3.ScalarNode || value.Tag == "!!null" {
			return nil, fmt.Errorf("%s: %s takes one value: a text, a number, true or false", origin, key.Value)
		}
		settings[key.Value] = setting{value: value.Value, origin: origin, fromFile: true}
	}
	return settings, nil
}

// yamlError puts the place into the form that all errors have. The library's own
// words quote the file, so only the first line of them is taken.
func yamlError(file string, err error) error {
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "\n")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		return fmt.Errorf("%s:%s", file, rest)
	}
	return fmt.Errorf("%s: %s", file, text)
}

// isSetting tells that a flag can be set elsewhere than on the command line: not the
// place of the settings itself, and nothing that is hidden.
func isSetting(f *pflag.Flag) bool { return f.Name != configFlag && !f.Hidden }

// checkKeys refuses what is no setting, in the order of the file's lines.
func checkKeys(settings map[string]setting, flags *pflag.FlagSet) error {
	var known []string
	flags.VisitAll(func(f *pflag.Flag) {
		if isSetting(f) {
			known = append(known, f.Name)
		}
	})
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(known, key) {
			errs = append(errs, fmt.Errorf("%s: unknown key %q; there are %s", settings[key].origin, key, strings.Join(known, ", ")))
		}
	}
	return errors.Join(errs...)
}
