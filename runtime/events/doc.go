// Package events manages what happened to pods: a Recorder that adds to a pod's history, the events of all pods, and
// the timeline of a start.
//
// The input is events in the words of a kubelet's events, spans, and decisions. The output is histories without values
// of Secrets. Of a plan the package knows only the kinds of steps, which are the names of spans. The executor
// translates steps to events.
package events
