// Package diagnose collects facts for the doctor package: about the runtime, the machine and the state directory. It
// changes nothing, and omits unknown facts.
package diagnose
