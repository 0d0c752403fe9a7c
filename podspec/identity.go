package podspec

import (
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// uidSpace is the name space of the uids that podctl derives from names: the
// UUIDv5 of podctl.io in the DNS name space. It never changes, since the uid is
// what ties a manifest to its running pod.
const uidSpace = "0f3ce44e-5d2c-5ea7-8f43-6a2ba6fc8ba1"

// UID is the uid of a pod whose manifest gives none: a UUIDv5 of its namespace
// and name, so that editing the manifest keeps the pod.
func UID(namespace, name string) types.UID {
	return types.UID(uuid.NewSHA1(uuid.MustParse(uidSpace), []byte(namespace+"/"+name)).String())
}
