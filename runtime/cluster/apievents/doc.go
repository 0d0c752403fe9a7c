// Package apievents sends the events of pods and of the node to the API server.
//
// The input is events as podctl records them (package events), and events of the node. The output is events of core/v1
// of the component kubelet: identical ones are counted by client-go's correlator, and their rate is limited (kubelet:
// eventRecordQPS, eventBurst). An event never delays its sender. While the API server is unreachable, the last event of
// each kind is kept. The package reads nothing from the API and knows no passes.
package apievents
