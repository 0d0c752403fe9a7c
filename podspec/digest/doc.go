// Package digest makes digests that stand for values of Secrets and compares them.
//
// In: a key of this machine, and values. Out: texts that say nothing without the key.
package digest
