package gotemplate

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
)

type function = func(args []any) (any, error)

// functions are those of text/template that make sense for JSON, and those that kubectl adds
// (kubectl: NewGoTemplatePrinter).
func functions() map[string]function {
	return map[string]function{
		"not":          one(func(value any) (any, error) { return !isTrue(value), nil }),
		"len":          one(length),
		"base64decode": one(base64decode),
		"index":        index,
		"exists":       exists,
		"slice":        slice,
		"print":        func(args []any) (any, error) { return fmt.Sprint(args...), nil },
		"println":      func(args []any) (any, error) { return fmt.Sprintln(args...), nil },
		"printf":       printf,
		"eq":           equal,
		"ne":           comparison(func(order int) bool { return order != 0 }),
		"lt":           comparison(func(order int) bool { return order < 0 }),
		"le":           comparison(func(order int) bool { return order <= 0 }),
		"gt":           comparison(func(order int) bool { return order > 0 }),
		"ge":           comparison(func(order int) bool { return order >= 0 }),
	}
}

func one(of func(any) (any, error)) function {
	return func(args []any) (any, error) {
		if len(args) != 1 {
			return nil, fmt.Errorf("it takes one argument, not %d", len(args))
		}
		return of(args[0])
	}
}

func length(value any) (any, error) {
	switch value := value.(type) {
	case string:
		return int64(len(value)), nil
	case []any:
		return int64(len(value)), nil
	case map[string]any:
		return int64(len(value)), nil
	}
	return nil, fmt.Errorf("%s has no length", text(value))
}

func base64decode(value any) (any, error) {
	encoded, ok := value.(string)
	if !ok {
		return nil, fmt.Errorf("%s is no text", text(value))
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	return string(decoded), err
}

// at is what a map or a list has under a key; false if nothing.
func at(value, key any) (any, bool, error) {
	switch value := value.(type) {
	case map[string]any:
		if name, ok := key.(string); ok {
			found, there := value[name]
			return found, there, nil
		}
	case []any:
		if i, ok := key.(int64); ok {
			if i < 0 || i >= int64(len(value)) {
				return nil, false, nil
			}
			return value[i], true, nil
		}
	}
	return nil, false, fmt.Errorf("%s cannot be looked up in %s", text(key), text(value))
}

// index goes down by keys and indices.
func index(args []any) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("it needs a map or a list")
	}
	value := args[0]
	for _, key := range args[1:] {
		found, there, err := at(value, key)
		if _, isList := value.([]any); err == nil && !there && isList {
			err = fmt.Errorf("the list has no element %v", key)
		}
		if err != nil {
			return nil, err
		}
		value = found
	}
	return value, nil
}

// exists reports whether there is something where keys and indices lead to.
func exists(args []any) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("it needs a map or a list")
	}
	value := args[0]
	for _, key := range args[1:] {
		found, there, err := at(value, key)
		if err != nil || !there {
			return false, nil //nolint:nilerr // what cannot be looked up does not exist
		}
		value = found
	}
	return true, nil
}

// slice is a part of a text or a list.
func slice(args []any) (any, error) {
	if len(args) == 0 || len(args) > 3 {
		return nil, errors.New("it takes a text or a list, and at most two indices")
	}
	size, err := length(args[0])
	if err != nil {
		return nil, err
	}
	bounds := []int64{0, size.(int64)} //nolint:forcetypeassert // lengths are
	for i, arg := range args[1:] {
		n, ok := arg.(int64)
		if !ok || n < 0 || n > bounds[1] {
			return nil, fmt.Errorf("%s is no index of it", text(arg))
		}
		bounds[i] = n
	}
	if bounds[0] > bounds[1] {
		return nil, fmt.Errorf("%d comes after %d", bounds[0], bounds[1])
	}
	switch value := args[0].(type) {
	case string:
		return value[bounds[0]:bounds[1]], nil
	case []any:
		return value[bounds[0]:bounds[1]], nil
	}
	return nil, errors.New("a map has no order")
}

func printf(args []any) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("it needs a format")
	}
	format, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("%s is no format", text(args[0]))
	}
	return fmt.Sprintf(format, args[1:]...), nil
}

// equal reports whether the first argument is equal to any of the others.
func equal(args []any) (any, error) {
	if len(args) < 2 {
		return nil, errors.New("it needs two arguments")
	}
	found := slices.ContainsFunc(args[1:], func(other any) bool {
		order, err := compare(args[0], other)
		return err == nil && order == 0
	})
	return found, nil
}

func comparison(holds func(order int) bool) function {
	return func(args []any) (any, error) {
		if len(args) != 2 {
			return nil, fmt.Errorf("it takes two arguments, not %d", len(args))
		}
		order, err := compare(args[0], args[1])
		return holds(order), err
	}
}

// compare orders texts, numbers, and bools. Missing values are only equal.
func compare(a, b any) (int, error) {
	if a == nil || b == nil {
		return map[bool]int{true: 0, false: 1}[a == nil && b == nil], nil
	}
	x, isNumber := number(a)
	if y, both := number(b); isNumber && both {
		return cmp.Compare(x, y), nil
	}
	if x, isText := a.(string); isText {
		if y, both := b.(string); both {
			return cmp.Compare(x, y), nil
		}
	}
	if x, isBool := a.(bool); isBool {
		if y, both := b.(bool); both && x == y {
			return 0, nil
		} else if both {
			return 1, nil
		}
	}
	return 0, fmt.Errorf("%s and %s cannot be compared", text(a), text(b))
}

func number(value any) (float64, bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case float64:
		return value, true
	}
	return 0, false
}
