// Package checkpoint encodes the record of allocated devices as a kubelet does, so that each can continue with the
// record of the other. Its input is a value or the bytes of the file, its output the other one.
//
// The checksum of a kubelet depends on the names of this package and of its types, so they must not change.
package checkpoint
