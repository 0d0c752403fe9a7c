// Package doctor judges whether a machine can run pods. It is pure: facts that others have
// collected in, checks out, each with what to do if it is not passed.
package doctor
