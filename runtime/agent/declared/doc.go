// Package declared stores the workloads, Services, ConfigMaps, Secrets and claims of sources, as apply does. It removes
// those that no source wants any more, as package owner decides.
//
// Its inputs are updates of sources, and stored workloads and objects. It stores and removes workloads and objects, and
// reports problems and takeovers. It makes no pass and does not query the runtime, so that a runtime that does not
// answer delays no update of a source.
package declared
