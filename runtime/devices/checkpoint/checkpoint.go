package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"

	"k8s.io/utils/dump"
)

// NoNUMA is the key of devices that belong to no NUMA node (kubelet: nodeWithoutTopology).
const NoNUMA = -1

// DevicesPerNUMA are IDs of devices by NUMA node. A device that belongs to several is listed for each.
type DevicesPerNUMA map[int64][]string

// PodDevicesEntry are the devices of one resource that a container has.
type PodDevicesEntry struct {
	PodUID        string
	ContainerName string
	ResourceName  string
	DeviceIDs     DevicesPerNUMA
	// AllocResp is the encoded ContainerAllocateResponse of the device plugin.
	AllocResp []byte
}

// checkpointData is the part of the file that the checksum covers.
type checkpointData struct {
	PodDeviceEntries  []PodDevicesEntry
	RegisteredDevices map[string][]string
}

// file is the content of the file.
type file struct {
	Data     checkpointData
	Checksum uint64
}

// Record is the record of all devices.
type Record struct {
	Entries []PodDevicesEntry
	// Registered are the healthy devices by resource.
	Registered map[string][]string
}

// Encode returns the content of the file (kubelet: MarshalCheckpoint).
func (r *Record) Encode() ([]byte, error) {
	data := checkpointData{r.Entries, r.Registered}
	return json.Marshal(file{data, checksum(data)})
}

// errChecksum reports a file whose content does not match its checksum.
var errChecksum = errors.New("the checksum is wrong")

// Decode returns the record in a file (kubelet: UnmarshalCheckpoint, VerifyChecksum).
func Decode(text []byte) (*Record, error) {
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	if f.Checksum != checksum(f.Data) {
		return nil, errChecksum
	}
	return &Record{f.Data.PodDeviceEntries, f.Data.RegisteredDevices}, nil
}

// checksum returns the checksum of a kubelet (kubelet: checksum.New).
func checksum(data checkpointData) uint64 {
	hash := fnv.New32a()
	fmt.Fprint(hash, dump.ForHash(data)) //nolint:errcheck // a hash accepts everything
	return uint64(hash.Sum32())
}
