package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/safefs"
)

// Setting is the value of a flag that the command line did not set.
type Setting struct {
	Value string
	// Origin is what set it, as errors name it: an environment variable, or a
	// configuration file and the line.
	Origin   string
	FromFile bool
}

// Load gives every flag that the command line did not set the value that the environment has
// for it, or else a configuration file. A value from there does not count as given on the
// command line.
func (f *Flags) Load(set *pflag.FlagSet, env *terminal.Env) error {
	files, err := f.readFiles(set, env)
	if err != nil {
		return err
	}
	f.Settings = map[string]Setting{}
	var errs []error
	set.VisitAll(func(flag *pflag.Flag) {
		key := keyOf(flag)
		found, ok := files[key]
		if value := env.Getenv(variable(key)); value != "" {
			found, ok = Setting{Value: value, Origin: variable(key)}, true
		}
		if !ok || flag.Changed || !isSetting(flag) {
			return
		}
		if err := flag.Value.Set(found.Value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", found.Origin, key, err))
		}
		f.Settings[flag.Name] = found
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return f.absolute()
}

// SettingsOf are the flags of a command that can be set elsewhere: the global ones, and those that
// some commands have. Where a command has none of the latter, others take their place.
func SettingsOf(global, own *pflag.FlagSet) *pflag.FlagSet {
	all, shared := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	(&Admission{}).Register(shared, false)
	shared.VisitAll(func(flag *pflag.Flag) {
		if mine := own.Lookup(flag.Name); mine != nil {
			flag = mine
		}
		all.AddFlag(flag)
	})
	all.AddFlagSet(global)
	return all
}

// keyOf is the key of a flag in configuration files: its name, if it has no other.
func keyOf(flag *pflag.Flag) string {
	if key := flag.Annotations[keyAnnotation]; len(key) > 0 {
		return key[0]
	}
	return flag.Name
}

// variable is the environment variable of a key.
func variable(key string) string {
	return "PODCTL_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// readFiles reads the configuration files; a later one wins.
func (f *Flags) readFiles(set *pflag.FlagSet, env *terminal.Env) (map[string]Setting, error) {
	all := map[string]Setting{}
	files, named := f.files(env)
	open := safefs.OpenTrusted
	if named {
		open = openNamed
	}
	for _, file := range files {
		text, err := readFile(file, open)
		if !named && safefs.NotExist(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the configuration: %w; --config names another", err)
		}
		settings, err := parse(file, text)
		if err == nil {
			err = checkKeys(settings, set)
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(all, settings)
	}
	return all, nil
}

// files lists the configuration files, and reports whether the user named one, which then has
// to be there.
func (f *Flags) files(env *terminal.Env) (files []string, named bool) {
	if f.File == "" {
		f.File = env.Getenv(variable(fileFlag))
	}
	if f.File != "" {
		return []string{f.File}, true
	}
	if env.SystemConfig != "" {
		files = append(files, env.SystemConfig)
	}
	dir := env.Getenv("XDG_CONFIG_HOME")
	if home := env.Getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir != "" {
		files = append(files, filepath.Join(dir, "podctl", "config.yaml"))
	}
	return files, false
}

// isSetting reports whether a flag can be set elsewhere than on the command line: not the
// place of the settings itself, and nothing that is hidden.
func isSetting(flag *pflag.Flag) bool { return flag.Name != fileFlag && !flag.Hidden }

// checkKeys refuses what is no setting, in the order of the file's lines.
func checkKeys(settings map[string]Setting, set *pflag.FlagSet) error {
	var known []string
	set.VisitAll(func(flag *pflag.Flag) {
		if isSetting(flag) {
			known = append(known, keyOf(flag))
		}
	})
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(known, key) {
			errs = append(errs, fmt.Errorf("%s: unknown key %q; there are %s", settings[key].Origin, key, strings.Join(known, ", ")))
		}
	}
	return errors.Join(errs...)
}
