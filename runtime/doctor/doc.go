// Package doctor checks whether a machine can run pods. It has no side effects. The input is facts that other packages
// collected. The results are checks, with advice if a check did not pass.
package doctor
