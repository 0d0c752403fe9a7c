package model

import (
	"errors"
	"fmt"
)

// KubeletError is an error that a kubelet words otherwise. A pod's status and events have those
// words, for which users and tools search; podctl's own say where it happened and what to do.
type KubeletError struct {
	Err  error
	Text string
}

// InKubeletWords is an error that podctl and a kubelet word alike. Whoever wraps it may add its
// place, which a kubelet leaves out.
func InKubeletWords(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &KubeletError{Err: err, Text: err.Error()}
}

// Error is podctl's own text.
func (e *KubeletError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *KubeletError) Unwrap() error { return e.Err }

// KubeletText is the kubelet's.
func (e *KubeletError) KubeletText() string { return e.Text }

// worded is an error that knows the kubelet's words.
type worded interface {
	error
	KubeletText() string
}

// KubeletText is what a kubelet says of an error; empty when it has no words of its own.
func KubeletText(err error) string {
	if w, ok := errors.AsType[worded](err); ok {
		return w.KubeletText()
	}
	return ""
}
