// Package diagnose collects the facts that doctor judges: of the runtime, the machine and the
// state directory. It changes nothing; what cannot be found out is left out.
package diagnose
