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
	// Origin names the source in errors: an environment variable, or a configuration file and the line.
	Origin   string
	FromFile bool
	// list has the values if the file has a list.
	list []string
}

// Sections are the flags of commands that have their own section in configuration files, by the name of the command.
type Sections map[string]*pflag.FlagSet

// FileOnly marks a flag that only a configuration file can set. It is hidden from the help.
func FileOnly(set *pflag.FlagSet, name string) error {
	if err := set.SetAnnotation(name, fileOnly, nil); err != nil {
		return err
	}
	return set.MarkHidden(name)
}

const fileOnly = "podctl_file_only"

// Load sets every flag that the command line did not set, from the environment or else from a configuration file. Such
// a value does not mark the flag as changed. The flags of sections have no environment variables.
func (f *Flags) Load(set *pflag.FlagSet, sections Sections, env *terminal.Env) error {
	found, err := f.readFiles(set, sections, env)
	if err != nil {
		return err
	}
	f.Settings = map[string]Setting{}
	var errs []error
	visit := func(prefix string, flag *pflag.Flag) {
		own := keyOf(flag)
		key := prefix + own
		setting, ok := found[key]
		if value := env.Getenv(variable(own)); value != "" && prefix == "" {
			setting, ok = Setting{Value: value, Origin: variable(own)}, true
		}
		if !ok || flag.Changed || !isSetting(flag) {
			return
		}
		errs = append(errs, setting.give(key, flag))
		f.Settings[key] = setting
	}
	set.VisitAll(func(flag *pflag.Flag) { visit("", flag) })
	for name, section := range sections {
		section.VisitAll(func(flag *pflag.Flag) { visit(name+".", flag) })
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return f.absolute()
}

// SettingsOf returns the flags that have settings: the global ones, and those shared by some commands. If the command
// lacks a shared flag, a placeholder takes its place.
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

// keyOf returns the key of a flag in configuration files, by default its name.
func keyOf(flag *pflag.Flag) string {
	if key := flag.Annotations[keyAnnotation]; len(key) > 0 {
		return key[0]
	}
	return flag.Name
}

// give sets the value of a flag.
func (s *Setting) give(key string, flag *pflag.Flag) error {
	slice, takesList := flag.Value.(pflag.SliceValue)
	switch {
	case s.list != nil && takesList:
		return slice.Replace(s.list)
	case s.list != nil:
		return fmt.Errorf("%s: %s takes one value: a string, a number, true or false", s.Origin, key)
	}
	return safefs.Wrapf(flag.Value.Set(s.Value), "%s: %s", s.Origin, key)
}

// variable returns the environment variable for a key.
func variable(key string) string {
	return "PODCTL_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// readFiles reads the configuration files. A later file takes precedence.
func (f *Flags) readFiles(set *pflag.FlagSet, sections Sections, env *terminal.Env) (map[string]Setting, error) {
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
			return nil, fmt.Errorf("reading the configuration: %w; use --config to name another file", err)
		}
		settings, err := parse(file, text, sections)
		if err == nil {
			err = checkKeys(settings, set, sections)
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(all, settings)
	}
	return all, nil
}

// files lists the configuration files, and reports whether the user named one. A named file must exist.
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

// isSetting reports whether a flag can be set outside the command line. The flag for the configuration file itself and
// hidden flags cannot.
func isSetting(flag *pflag.Flag) bool {
	_, inFiles := flag.Annotations[fileOnly]
	return flag.Name != fileFlag && flag.Name != "help" && (!flag.Hidden || inFiles)
}

// checkKeys refuses unknown keys, in sorted order.
func checkKeys(settings map[string]Setting, set *pflag.FlagSet, sections Sections) error {
	known := keysOf(set, "")
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		known = append(known, keysOf(sections[name], name+".")...)
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(known, key) {
			errs = append(errs, fmt.Errorf("%s: unknown key %q; known keys: %s",
				settings[key].Origin, key, strings.Join(known, ", ")))
		}
	}
	return errors.Join(errs...)
}

func keysOf(set *pflag.FlagSet, prefix string) (keys []string) {
	set.VisitAll(func(flag *pflag.Flag) {
		if isSetting(flag) {
			keys = append(keys, prefix+keyOf(flag))
		}
	})
	return keys
}
