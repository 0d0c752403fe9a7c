package model

import (
	"errors"
	"fmt"
)

// KubeletError is an error with a different text in a kubelet. A pod's status and events use the kubelet's text,
// because users and tools search for it. podctl's own text names the place and the fix.
type KubeletError struct {
	Err  error
	Text string
}

// KubeletErrorf returns an error with the same text in podctl and a kubelet. A caller may wrap it to add the place,
// which a kubelet leaves out.
func KubeletErrorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &KubeletError{Err: err, Text: err.Error()}
}

// Error returns podctl's own text.
func (e *KubeletError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *KubeletError) Unwrap() error { return e.Err }

// KubeletText returns the kubelet's text.
func (e *KubeletError) KubeletText() string { return e.Text }

// worded is an error with a kubelet's text.
type worded interface {
	error
	KubeletText() string
}

// KubeletText returns the kubelet's text of an error; empty if it has none of its own.
func KubeletText(err error) string {
	if w, ok := errors.AsType[worded](err); ok {
		return w.KubeletText()
	}
	return ""
}
