package expand

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/fieldpath"
	"github.com/podctl/podctl/podspec/quote"
)

const (
	// maxArgument limits the bytes of one argument or variable, including the "NAME=" of a variable and the final NUL.
	// It is MAX_ARG_STRLEN of Linux: 32 pages of 4 KiB.
	maxArgument = 128 << 10
	// maxArguments limits the total bytes of arguments and variables, with a NUL and a pointer for each. Linux allows a
	// quarter of the stack limit (RLIMIT_STACK), but at most three quarters of 8 MiB (fs/exec.c: bprm_stack_limits).
	// The runtime sets the limit of a container, so only sizes that no container can use are refused.
	maxArguments = 6 << 20
	// perArgument is the final NUL of an argument and the pointer to it.
	perArgument = 1 + 8
	// maxPath limits the bytes of a path without its NUL (PATH_MAX).
	maxPath = 4095
)

// Environment is the environment of a process while it is built: values by name, and names in the order of their first
// mention. It never exceeds the limits of Linux.
type Environment struct {
	values map[string]string
	order  []string
	size   int
	// beside holds variables that apply unless the manifest sets them.
	beside map[string]string
}

// newEnvironment returns an environment without variables.
func newEnvironment() *Environment { return &Environment{values: map[string]string{}} }

// staticEnvironment has the values that the manifest contains, not expanded. Variables from other sources are empty
// (kubelet: ExpandContainerCommandOnlyStatic).
func staticEnvironment(c *v1.Container) *Environment {
	values := make(map[string]string, len(c.Env))
	for i := range c.Env {
		values[c.Env[i].Name] = c.Env[i].Value
	}
	return &Environment{values: values}
}

// All returns the variables in the order of their first mention.
func (e *Environment) All() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, name := range e.order {
			if !yield(name, e.values[name]) {
				return
			}
		}
	}
}

// Set sets a variable. It returns an error, without the value, if the variable exceeds the limits of Linux.
func (e *Environment) Set(name, value string) error {
	if len(name)+len("=")+len(value)+1 > maxArgument {
		return fmt.Errorf(
			"the variable %s is too long: with its name and a NUL it may have %d bytes (MAX_ARG_STRLEN of Linux)",
			quote.Value(name), maxArgument)
	}
	old, has := e.values[name]
	size := e.size + len(value) - len(old)
	if !has {
		size += len(name) + len("=") + perArgument
	}
	if size > maxArguments {
		return errTooManyVariables
	}
	if e.size = size; !has {
		e.order = append(e.order, name)
	}
	e.values[name] = value
	return nil
}

var errTooManyVariables = fmt.Errorf(
	"the variables together have more than the %d bytes that Linux can pass to a process", maxArguments)

// SetExpanded sets a variable to a text with each $(NAME) replaced by the variables set so far.
func (e *Environment) SetExpanded(name, text string) error {
	if !strings.Contains(text, "$") {
		return e.Set(name, text)
	}
	value, err := expand(text, e.reference, maxArgument-len(name)-len("=")-1)
	if err != nil {
		return fmt.Errorf("the variable %s is too long once $(NAME) is expanded in it: "+
			"with its name and a NUL it may have %d bytes (MAX_ARG_STRLEN of Linux)", quote.Value(name), maxArgument)
	}
	return e.Set(name, value)
}

// reference returns the replacement of $(NAME), which is unchanged if there is no such variable.
func (e *Environment) reference(name string) string {
	if value, ok := e.values[name]; ok {
		return value
	}
	if value, ok := e.beside[name]; ok {
		return value
	}
	return "$(" + name + ")"
}

// Command replaces $(NAME) in a command and its arguments. The error names the word that exceeds the limits of Linux.
func (e *Environment) Command(command, args []string) (outCommand, outArgs []string, err error) {
	size := e.size
	for _, list := range []struct {
		field   string
		in, out *[]string
	}{{"command", &command, &outCommand}, {"args", &args, &outArgs}} {
		for i, word := range *list.in {
			text, err := expand(word, e.reference, maxArgument-1)
			if err != nil {
				tooLong := fmt.Errorf("is too long once $(NAME) is expanded in it: "+
					"with a NUL it may have %d bytes (MAX_ARG_STRLEN of Linux)", maxArgument)
				return nil, nil, &ArgumentError{fieldpath.Index(list.field, i), tooLong}
			}
			if size += len(text) + perArgument; size > maxArguments {
				tooMany := fmt.Errorf("has, together with the variables, "+
					"more than the %d bytes that Linux can pass to a process", maxArguments)
				return nil, nil, &ArgumentError{list.field, tooMany}
			}
			*list.out = append(*list.out, text)
		}
	}
	return outCommand, outArgs, nil
}

// ArgumentError is an error about a field of a container.
type ArgumentError struct {
	Field string
	Err   error
}

// Error names the field.
func (e *ArgumentError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the error without the field.
func (e *ArgumentError) Unwrap() error { return e.Err }

// StaticCommand replaces $(NAME) in the command of a probe or hook with the values in the manifest. Variables from
// other sources are empty (kubelet: ExpandContainerCommandOnlyStatic).
func StaticCommand(c *v1.Container, command []string) ([]string, error) {
	out, _, err := staticEnvironment(c).Command(command, nil)
	return out, err
}

// SubPath replaces $(NAME) in a subPathExpr. It returns missing or empty variables, because without them the path would
// be a different one.
func (e *Environment) SubPath(text string) (path string, missing []string, err error) {
	path, err = expand(text, func(name string) string {
		if e.values[name] == "" {
			missing = append(missing, name)
		}
		return e.values[name]
	}, maxPath)
	if err != nil {
		return "", nil, fmt.Errorf("is longer than %d bytes once $(NAME) is expanded in it", maxPath)
	}
	return path, missing, nil
}

// EnvironmentOf returns a container's environment. The function from returns values that only the node or the runtime
// knows, and false if one is optional and absent. The map beside holds the variables of Services, which apply unless
// the manifest sets them. The error names the variable or missing reference. EnvironmentOf never builds more than Linux
// can pass to a process.
func EnvironmentOf(
	d *podspec.Desired, c podspec.ContainerRef, beside map[string]string,
	from func(*v1.EnvVarSource) (string, bool, error),
) (*Environment, error) {
	if EnvironmentSize(d, c.Container) > maxArguments {
		return nil, &ArgumentError{c.Path + ".envFrom", errTooManyVariables}
	}
	resolved, missing := Resolve(d, c)
	if len(missing) > 0 && from != nil {
		return nil, fmt.Errorf("%s: %s", missing[0].Path, missing[0].Detail)
	}
	env := newEnvironment()
	env.beside = beside
	for i := range resolved {
		if err := env.add(&resolved[i], from); err != nil {
			return nil, &ArgumentError{c.Path + "." + envField(c.Container, resolved[i].Name), err}
		}
	}
	return env, env.addBeside()
}

// addBeside sets the variables that the manifest does not set, in the order of their names.
func (e *Environment) addBeside() error {
	for _, name := range slices.Sorted(maps.Keys(e.beside)) {
		if _, has := e.values[name]; has {
			continue
		}
		if err := e.Set(name, e.beside[name]); err != nil {
			return fmt.Errorf("the variables of Services (spec.enableServiceLinks): %w", err)
		}
	}
	return nil
}

// add sets one variable. If from is nil, a value that is only known later is empty.
func (e *Environment) add(v *Variable, from func(*v1.EnvVarSource) (string, bool, error)) error {
	switch {
	case v.From != nil && from == nil:
		return e.Set(v.Name, "")
	case v.From != nil:
		value, set, err := from(v.From)
		if err != nil || !set {
			return err
		}
		return e.Set(v.Name, value)
	case v.Expand:
		return e.SetExpanded(v.Name, v.Value)
	}
	return e.Set(v.Name, v.Value)
}

// envField returns the last field that sets a variable.
func envField(c *v1.Container, name string) string {
	for i, v := range slices.Backward(c.Env) {
		if v.Name == name {
			return fieldpath.Index("env", i)
		}
	}
	return "envFrom"
}

// EnvironmentSize returns the bytes of a container's variables before expansion and before later variables replace
// earlier ones. It stops counting above the limit, because a few references to one ConfigMap can expand to gigabytes.
func EnvironmentSize(d *podspec.Desired, c *v1.Container) int {
	size := 0
	for i := range c.EnvFrom {
		if from := c.EnvFrom[i]; from.ConfigMapRef != nil && d.Objects.ConfigMaps[from.ConfigMapRef.Name] != nil {
			size = addSizes(size, len(from.Prefix), d.Objects.ConfigMaps[from.ConfigMapRef.Name].Data)
		} else if from.SecretRef != nil && d.Objects.Secrets[from.SecretRef.Name] != nil {
			size = addSizes(size, len(from.Prefix), d.Objects.Secrets[from.SecretRef.Name].Data)
		}
	}
	for i := range c.Env {
		v, _ := envVar(d.Objects, &c.Env[i])
		size = min(size+len(v.Name)+len("=")+len(v.Value)+perArgument, maxArguments+1)
	}
	return size
}

func addSizes[V string | []byte](size, prefix int, values map[string]V) int {
	for key, value := range values {
		if size += prefix + len(key) + len("=") + len(value) + perArgument; size > maxArguments {
			return maxArguments + 1
		}
	}
	return size
}
