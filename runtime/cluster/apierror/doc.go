// Package apierror describes failed requests to an API server for the log.
//
// The input is the error of a request. The output is a line of text: what happened, where, and what to do. Two tries
// that fail for the same reason have the same text, so that Once can log a failure once: the text has no times,
// resource versions and ports of this machine. It does not repeat values of objects, which may be confidential.
//
// The package makes no requests.
package apierror
