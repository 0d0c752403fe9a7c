// Package declared stores what sources have beside pods, as apply does: workloads, Services, ConfigMaps, Secrets and claims. It removes
// what no source wants any more, as package owner decides.
//
// In: updates of sources, stored workloads and objects. Out: workloads and objects stored and removed, problems, takeovers. It makes no
// pass and does not query the runtime: a runtime that does not answer delays no update of a source.
package declared
