package podspec

import (
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// uidSpace is the name space of the uids that podctl derives from names: the UUIDv5 of podctl.io in the DNS name space.
// It must never change, because the uid links a manifest to its running pod.
const uidSpace = "0f3ce44e-5d2c-5ea7-8f43-6a2ba6fc8ba1"

// UID returns the uid of a pod whose manifest has none. It is a UUIDv5 of namespace and name, so the pod stays the same
// when the manifest is edited.
func UID(namespace, name string) types.UID {
	return types.UID(uuid.NewSHA1(uuid.MustParse(uidSpace), []byte(namespace+"/"+name)).String())
}
