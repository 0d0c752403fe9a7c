// Package view formats values as text for people: plans, the progress of their steps, pods and containers. It takes
// values of the runtime packages and returns text. It calls no service and makes no decisions. Documents for programs
// are printed from the values themselves.
package view
