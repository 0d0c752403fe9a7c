package gotemplate

import (
	"errors"
	"fmt"
	"slices"
	"text/template/parse"
)

// pipe is the value of commands, each of which gets that of the one before as its last argument.
func (s *state) pipe(node *parse.PipeNode, dot any) (value any, err error) {
	for i, command := range node.Cmds {
		var piped []any
		if i > 0 {
			piped = []any{value}
		}
		if value, err = s.command(command, dot, piped); err != nil {
			return nil, err
		}
	}
	for _, name := range node.Decl {
		if len(node.Decl) == 1 {
			s.set(name.Ident[0], value, node.IsAssign)
		}
	}
	return value, nil
}

func (s *state) command(node *parse.CommandNode, dot any, piped []any) (any, error) {
	first, isFunction := node.Args[0].(*parse.IdentifierNode)
	if !isFunction {
		if len(node.Args) > 1 || len(piped) > 0 {
			return nil, s.failure(node, fmt.Errorf("%s is no function, and takes no arguments", node.Args[0]))
		}
		return s.value(node.Args[0], dot)
	}
	return s.function(first, node.Args[1:], dot, piped)
}

// function calls a function. and and or stop at the first argument that decides.
func (s *state) function(name *parse.IdentifierNode, args []parse.Node, dot any, piped []any) (value any, err error) {
	lazy := name.Ident == "and" || name.Ident == "or"
	var values []any
	for _, arg := range args {
		if value, err = s.value(arg, dot); err != nil {
			return nil, err
		}
		if lazy && isTrue(value) == (name.Ident == "or") {
			return value, nil
		}
		values = append(values, value)
	}
	values = append(values, piped...)
	if lazy && len(values) > 0 {
		return values[len(values)-1], nil
	}
	if lazy {
		return nil, s.failure(name, errors.New("it needs an argument"))
	}
	if value, err = functions()[name.Ident](values); err != nil {
		return nil, s.failure(name, err)
	}
	return value, nil
}

// value is what an operand stands for.
func (s *state) value(node parse.Node, dot any) (any, error) {
	switch node := node.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.NilNode:
		return nil, s.failure(node, errors.New("nil is no command"))
	case *parse.BoolNode:
		return node.True, nil
	case *parse.StringNode:
		return node.Text, nil
	case *parse.NumberNode:
		if node.IsInt {
			return node.Int64, nil
		}
		return node.Float64, nil
	case *parse.FieldNode:
		return s.fields(node, dot, node.Ident)
	case *parse.VariableNode:
		return s.variable(node)
	case *parse.PipeNode:
		return s.pipe(node, dot)
	case *parse.IdentifierNode:
		return s.function(node, nil, dot, nil)
	case *parse.ChainNode:
		value, err := s.value(node.Node, dot)
		if err != nil {
			return nil, err
		}
		return s.fields(node, value, node.Field)
	}
	return nil, s.failure(node, errors.New("it cannot be evaluated"))
}

func (s *state) variable(node *parse.VariableNode) (any, error) {
	for _, known := range slices.Backward(s.variables) {
		if known.name == node.Ident[0] {
			return s.fields(node, known.value, node.Ident[1:])
		}
	}
	return nil, s.failure(node, errors.New("there is no such variable"))
}

// fields goes down into maps. What is missing has no value, and nothing below it.
func (s *state) fields(node parse.Node, value any, names []string) (any, error) {
	for _, name := range names {
		if value == nil {
			return nil, nil
		}
		at, ok := value.(map[string]any)
		if !ok {
			return nil, s.failure(node, fmt.Errorf("%v has no field %s", value, name))
		}
		value = at[name]
	}
	return value, nil
}
