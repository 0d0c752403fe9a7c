// Package listwatch keeps a copy of a part of the API server's objects up to date: client-go's reflector with limits
// for an API server, or a proxy before it, that answers late, wrongly, or not at all.
//
// The input is a resource and a store. The output is calls of the store. Each list is as new as the API server's store,
// has the right kind and a version. A watch that is silent for too long is replaced. A server that reports the end of
// the history again and again gets no request without a pause, and its delays are limited. The package logs nothing
// itself.
package listwatch
