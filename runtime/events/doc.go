// Package events has what happened to pods: a Recorder that adds to a pod's history, the
// events of all pods, and the timeline of a start.
//
// In: events and spans, in the words of a kubelet's events. Out: histories without values of
// Secrets. Of a plan it knows only the kinds of steps, which name the spans: the executor
// translates steps to events.
package events
