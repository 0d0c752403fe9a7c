// Package apitest is for tests only: a server for HTTP in memory, and the bad answers of an API server and of the
// proxies before it.
//
// The connections are pipes, so that a test in a bubble of testing/synctest can let hours pass.
package apitest
