package gotemplate

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

// Template is a template that was parsed.
type Template struct{ trees map[string]*parse.Tree }

const mainName = "template"

// Parse reads a template.
func Parse(text string) (*Template, error) {
	known := map[string]any{"and": true, "or": true}
	for name := range functions() {
		known[name] = true
	}
	trees, err := parse.Parse(mainName, text, "", "", known)
	if err != nil {
		return nil, err
	}
	return &Template{trees}, nil
}

// Execute writes what the template makes of a value.
func (t *Template) Execute(w io.Writer, value any) error {
	tree := t.trees[mainName]
	if tree == nil {
		return nil // There are only definitions in it.
	}
	s := &state{template: t, tree: tree, out: w, variables: []variable{{"$", value}}}
	return s.walk(tree.Root, value)
}

// state is one execution.
type state struct {
	template  *Template
	tree      *parse.Tree
	out       io.Writer
	variables []variable
	depth     int
}

type variable struct {
	name  string
	value any
}

// How a range ends before its values do.
var (
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
)

// maxDepth bounds templates that call themselves.
const maxDepth = 1000

func (s *state) walk(node parse.Node, dot any) error {
	switch node := node.(type) {
	case *parse.TextNode:
		_, err := s.out.Write(node.Text)
		return err
	case *parse.ListNode:
		return s.list(node, dot)
	case *parse.ActionNode:
		return s.action(node, dot)
	case *parse.IfNode:
		return s.branch(&node.BranchNode, dot, func(any) any { return dot })
	case *parse.WithNode:
		return s.branch(&node.BranchNode, dot, func(value any) any { return value })
	case *parse.RangeNode:
		return s.scoped(func() error { return s.loop(node, dot) })
	case *parse.TemplateNode:
		return s.call(node, dot)
	case *parse.BreakNode:
		return errBreak
	case *parse.ContinueNode:
		return errContinue
	}
	return nil // A comment.
}

func (s *state) list(node *parse.ListNode, dot any) error {
	if node == nil {
		return nil
	}
	for _, one := range node.Nodes {
		if err := s.walk(one, dot); err != nil {
			return err
		}
	}
	return nil
}

// scoped forgets afterwards which variables were declared.
func (s *state) scoped(run func() error) error {
	known := len(s.variables)
	err := run()
	s.variables = s.variables[:known]
	return err
}

func (s *state) action(node *parse.ActionNode, dot any) error {
	value, err := s.pipe(node.Pipe, dot)
	if err != nil || len(node.Pipe.Decl) > 0 {
		return err
	}
	_, err = io.WriteString(s.out, text(value))
	return err
}

// text is a value as it is printed.
func text(value any) string {
	if value == nil {
		return "<no value>"
	}
	return fmt.Sprint(value)
}

func (s *state) branch(node *parse.BranchNode, dot any, inside func(any) any) error {
	return s.scoped(func() error {
		value, err := s.pipe(node.Pipe, dot)
		if err != nil {
			return err
		}
		if isTrue(value) {
			return s.list(node.List, inside(value))
		}
		return s.list(node.ElseList, dot)
	})
}

// isTrue reports whether a value is not empty.
func isTrue(value any) bool {
	switch value := value.(type) {
	case nil:
		return false
	case bool:
		return value
	case string:
		return value != ""
	case int64:
		return value != 0
	case float64:
		return value != 0
	case []any:
		return len(value) > 0
	case map[string]any:
		return len(value) > 0
	}
	return true
}

func (s *state) loop(node *parse.RangeNode, dot any) error {
	value, err := s.pipe(node.Pipe, dot)
	if err != nil {
		return err
	}
	keys, values, err := elements(value)
	if err != nil {
		return s.failure(node, err)
	}
	if len(values) == 0 {
		return s.list(node.ElseList, dot)
	}
	for i, one := range values {
		err := s.scoped(func() error {
			s.declare(node.Pipe.Decl, keys[i], one, node.Pipe.IsAssign)
			return s.list(node.List, one)
		})
		if errors.Is(err, errBreak) {
			break
		}
		if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	return nil
}

// elements are what a value has, with their keys or indices; maps in the order of their keys.
func elements(value any) (keys, values []any, err error) {
	switch value := value.(type) {
	case nil:
	case []any:
		for i, one := range value {
			keys, values = append(keys, int64(i)), append(values, one)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			keys, values = append(keys, key), append(values, value[key])
		}
	default:
		return nil, nil, fmt.Errorf("range cannot go over %v", value)
	}
	return keys, values, nil
}

// declare sets the variables of a range: the element, or the key and the element.
func (s *state) declare(names []*parse.VariableNode, key, value any, assign bool) {
	given := []any{value}
	if len(names) == 2 {
		given = []any{key, value}
	}
	for i, name := range names {
		s.set(name.Ident[0], given[i], assign)
	}
}

func (s *state) set(name string, value any, assign bool) {
	for i := len(s.variables) - 1; assign && i >= 0; i-- {
		if s.variables[i].name == name {
			s.variables[i].value = value
			return
		}
	}
	s.variables = append(s.variables, variable{name, value})
}

// call executes a template that is defined in this one. It knows no variable but $.
func (s *state) call(node *parse.TemplateNode, dot any) error {
	tree := s.template.trees[node.Name]
	switch {
	case tree == nil:
		return s.failure(node, fmt.Errorf("template %q is not defined", node.Name))
	case s.depth >= maxDepth:
		return s.failure(node, errors.New("templates call each other without an end"))
	}
	var value any
	if node.Pipe != nil {
		var err error
		if value, err = s.pipe(node.Pipe, dot); err != nil {
			return err
		}
	}
	inner := &state{template: s.template, tree: tree, out: s.out, variables: []variable{{"$", value}}, depth: s.depth + 1}
	return inner.walk(tree.Root, value)
}

// failure says where in the template something failed.
func (s *state) failure(node parse.Node, err error) error {
	place, what := s.tree.ErrorContext(node)
	return fmt.Errorf("%s: %s: %w", strings.TrimPrefix(place, mainName+":"), what, err)
}
