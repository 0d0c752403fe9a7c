// Package flags has what the command lines of several commands share: kinds of values that
// flags take, and checks of arguments. It knows the command line alone: no pod, no runtime.
package flags
