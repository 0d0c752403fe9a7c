// Package digest creates and compares digests that replace values of Secrets.
//
// The input is a key of this machine, and values. The results are texts that reveal nothing without the key.
package digest
