package snapshot

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// NumberKeys returns the keys in a snapshot whose values are numbers, although they are strings: protobuf writes
// numbers with 64 bits as strings of digits.
func NumberKeys() map[string]bool {
	keys := map[string]bool{}
	for _, m := range []protoreflect.ProtoMessage{&runtimeapi.ContainerStatus{}, &runtimeapi.PodSandboxStatus{}} {
		addNumbers(keys, map[protoreflect.FullName]bool{}, m.ProtoReflect().Descriptor())
	}
	return keys
}

// addNumbers adds the keys of a message and of those in it. seen are the messages that were added.
func addNumbers(keys map[string]bool, seen map[protoreflect.FullName]bool, m protoreflect.MessageDescriptor) {
	if seen[m.FullName()] {
		return
	}
	seen[m.FullName()] = true
	for i := range m.Fields().Len() {
		switch f := m.Fields().Get(i); f.Kind() { //nolint:exhaustive // the others are no such numbers
		case protoreflect.MessageKind:
			addNumbers(keys, seen, f.Message())
		case protoreflect.Int64Kind, protoreflect.Uint64Kind:
			keys[f.TextName()] = true
		}
	}
}
