package snapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// snapshotFile is the file format of a snapshot: a document with the runtime's answers as protobuf JSON. A missing
// section was not read; an empty one was read and had no contents.
type snapshotFile struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	TakenAt    time.Time          `json:"takenAt"`
	Pod        model.PodRef       `json:"pod,omitzero"`
	Runtime    runtimeSection     `json:"runtime"`
	Sandboxes  []json.RawMessage  `json:"sandboxes"`
	Containers []containerSection `json:"containers"`
	Images     []Image            `json:"images,omitzero"`
	Probes     []probeSection     `json:"probes,omitzero"`
	Backoffs   []backoffSection   `json:"backoffs,omitzero"`
	Actuated   *model.Actuated    `json:"actuated,omitempty"`
	Disk       *diskSection       `json:"disk,omitempty"`
	Node       *criconfig.Node    `json:"node,omitempty"`
	Checkpoint *model.Memory      `json:"checkpoint,omitempty"`
	// Items are the snapshots of a list.
	Items []*snapshotFile `json:"items,omitempty"`
}

type runtimeSection struct {
	Name       string            `json:"name"`
	Version    string            `json:"version"`
	Handlers   []json.RawMessage `json:"handlers,omitzero"`
	Conditions []json.RawMessage `json:"conditions,omitzero"`
}

type containerSection struct {
	SandboxID          string          `json:"podSandboxId"`
	Status             json.RawMessage `json:"status"`
	TerminationMessage string          `json:"terminationMessage,omitempty"`
	LogFull            bool            `json:"logFull,omitempty"`
	Starting           bool            `json:"starting,omitempty"`
}

type probeSection struct {
	ContainerID string          `json:"containerID"`
	Type        model.ProbeType `json:"type"`
	model.ProbeRecord
}

type backoffSection struct {
	Container  string    `json:"container"`
	Duration   string    `json:"duration"`
	LastUpdate time.Time `json:"lastUpdate"`
	Key        string    `json:"key,omitempty"`
}

type diskSection struct {
	Volumes       map[string]Volume `json:"volumes,omitzero"`
	VolumesRemain bool              `json:"volumesRemain,omitempty"`
	Cgroup        *bool             `json:"cgroup,omitempty"`
	CgroupRemains bool              `json:"cgroupRemains,omitempty"`
	LogAttempts   map[string]uint32 `json:"logAttempts,omitempty"`
	Ports         map[string]string `json:"ports,omitempty"`
	Faults        *Faults           `json:"faults,omitempty"`
}

// The kinds of the documents.
const (
	snapshotKind     = "Snapshot"
	snapshotListKind = "SnapshotList"
)

// Write writes the snapshots as one JSON document: a Snapshot, or a SnapshotList if there are several. It leaves out
// the values of Secrets.
func (r Recording) Write(w io.Writer) error {
	files := make([]*snapshotFile, 0, len(r))
	for _, s := range r {
		f, err := s.file()
		if err != nil {
			return fmt.Errorf("writing the snapshot of %s: %w", s.Pod, err)
		}
		files = append(files, f)
	}
	var doc any = struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Items      []*snapshotFile `json:"items"`
	}{model.APIVersion, snapshotListKind, files}
	if len(files) == 1 {
		doc = files[0]
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("writing a snapshot: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

func (s *Pod) file() (*snapshotFile, error) {
	s.Redact(s.Checkpoint.Redactor(nil))
	f := &snapshotFile{
		APIVersion: model.APIVersion, Kind: snapshotKind, TakenAt: s.TakenAt, Pod: s.Pod,
		Runtime: runtimeSection{Name: s.Runtime.Name, Version: s.Runtime.Version},
		Images:  s.Images, Node: s.Node, Containers: []containerSection{},
	}
	var errs [3]error
	f.Sandboxes, errs[0] = encodeAll(s.Sandboxes)
	f.Runtime.Conditions, errs[1] = encodeAll(s.Runtime.Status.GetStatus().GetConditions())
	f.Runtime.Handlers, errs[2] = encodeAll(s.Runtime.Status.GetRuntimeHandlers())
	for _, c := range s.Containers {
		text, err := Encode(c.Status)
		if err != nil {
			return nil, err
		}
		f.Containers = append(f.Containers, containerSection{
			SandboxID:          c.SandboxID,
			Status:             text,
			TerminationMessage: c.TerminationMessage,
			LogFull:            c.LogFull,
			Starting:           c.Starting,
		})
	}
	slices.SortStableFunc(f.Containers, func(a, b containerSection) int { return bytes.Compare(a.Status, b.Status) })
	f.Disk = &diskSection{
		Volumes:       s.Volumes,
		VolumesRemain: s.VolumesRemain,
		Cgroup:        s.Cgroup,
		CgroupRemains: s.CgroupRemains,
		LogAttempts:   s.LogAttempts,
		Ports:         s.Ports,
		Faults:        s.Faults,
	}
	if s.Checkpoint != nil {
		f.remember(s.Checkpoint)
	}
	if s.Unseen {
		f.Checkpoint = nil
	}
	return f, errors.Join(errs[:]...)
}

// remember adds the contents of the checkpoint.
func (f *snapshotFile) remember(j *state.Checkpoint) {
	j = j.WithoutSecrets()
	f.Actuated = j.Actuated
	f.Probes = []probeSection{}
	for _, id := range slices.Sorted(maps.Keys(j.Probes)) {
		for _, t := range slices.Sorted(maps.Keys(j.Probes[id])) {
			f.Probes = append(f.Probes, probeSection{ContainerID: id, Type: t, ProbeRecord: j.Probes[id][t]})
		}
	}
	if j.Backoffs != nil {
		f.Backoffs = []backoffSection{}
	}
	for _, name := range slices.Sorted(maps.Keys(j.Backoffs)) {
		b := j.Backoffs[name]
		f.Backoffs = append(f.Backoffs, backoffSection{
			Container:  name,
			Duration:   b.Duration.String(),
			LastUpdate: b.LastUpdate,
			Key:        b.Key,
		})
	}
	rest := j.Memory
	// These have their own sections.
	rest.Probes, rest.Backoffs, rest.Actuated = nil, nil, nil
	f.Checkpoint = &rest
}

// Encode encodes a message of the runtime with the CRI's own field names. It removes the white space, which the library
// varies on purpose.
func Encode(m proto.Message) (json.RawMessage, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	err = json.Compact(&compact, text)
	return compact.Bytes(), err
}

func encodeAll[M proto.Message](messages []M) ([]json.RawMessage, error) {
	texts := make([]json.RawMessage, 0, len(messages))
	for _, m := range messages {
		text, err := Encode(m)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	slices.SortStableFunc(texts, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	return texts, nil
}

// Read decodes the output of Write. It ignores unknown fields.
func Read(text []byte) (Recording, error) {
	var f snapshotFile
	if err := model.DecodeDocument(text, &f); err != nil {
		return nil, fmt.Errorf("it is not a snapshot: %w", err)
	}
	if f.APIVersion != model.APIVersion {
		return nil, fmt.Errorf("it is not a snapshot that this podctl reads: apiVersion is %q, not %s",
			f.APIVersion, model.APIVersion)
	}
	files := f.Items
	switch f.Kind {
	case snapshotKind:
		files = []*snapshotFile{&f}
	case snapshotListKind:
	default:
		return nil, fmt.Errorf("it is not a snapshot: kind is %q, not %s", f.Kind, snapshotKind)
	}
	recording := make(Recording, 0, len(files))
	for i, f := range files {
		if f == nil {
			return nil, fmt.Errorf("items[%d] is not a snapshot", i)
		}
		s, err := f.snapshot()
		if err != nil {
			return nil, err
		}
		recording = append(recording, s)
	}
	return recording, nil
}

func (f *snapshotFile) snapshot() (*Pod, error) {
	s := &Pod{TakenAt: f.TakenAt, Pod: f.Pod, Images: f.Images, Node: f.Node, Unseen: f.Checkpoint == nil}
	s.Runtime = Runtime{Name: f.Runtime.Name, Version: f.Runtime.Version}
	status := &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{}}
	var errs [5]error
	status.Status.Conditions, errs[0] = decodeAll[runtimeapi.RuntimeCondition](
		"runtime.conditions", f.Runtime.Conditions)
	status.RuntimeHandlers, errs[1] = decodeAll[runtimeapi.RuntimeHandler]("runtime.handlers", f.Runtime.Handlers)
	s.Runtime.Status = status
	s.Sandboxes, errs[2] = decodeAll[runtimeapi.PodSandboxStatus]("sandboxes", f.Sandboxes)
	s.Containers, errs[3] = f.containers()
	s.Checkpoint, errs[4] = f.checkpoint()
	if d := f.Disk; d != nil {
		s.Volumes, s.VolumesRemain, s.Cgroup, s.CgroupRemains = d.Volumes, d.VolumesRemain, d.Cgroup, d.CgroupRemains
		s.LogAttempts, s.Ports, s.Faults = d.LogAttempts, d.Ports, d.Faults
	}
	return s, errors.Join(errs[:]...)
}

func (f *snapshotFile) containers() ([]Container, error) {
	containers := make([]Container, 0, len(f.Containers))
	for i, c := range f.Containers {
		status := &runtimeapi.ContainerStatus{}
		if err := decode(c.Status, status); err != nil {
			return nil, fmt.Errorf("containers[%d].status: %w", i, err)
		}
		containers = append(containers, Container{
			SandboxID:          c.SandboxID,
			Status:             status,
			TerminationMessage: c.TerminationMessage,
			LogFull:            c.LogFull,
			Starting:           c.Starting,
		})
	}
	return containers, nil
}

func (f *snapshotFile) checkpoint() (*state.Checkpoint, error) {
	j := &state.Checkpoint{}
	if f.Checkpoint != nil {
		j.Memory = *f.Checkpoint
	}
	j.Actuated, j.Probes, j.Backoffs = f.Actuated, nil, nil
	if f.Probes != nil {
		j.Probes = map[string]map[model.ProbeType]model.ProbeRecord{}
	}
	for _, p := range f.Probes {
		if j.Probes[p.ContainerID] == nil {
			j.Probes[p.ContainerID] = map[model.ProbeType]model.ProbeRecord{}
		}
		j.Probes[p.ContainerID][p.Type] = p.ProbeRecord
	}
	if f.Backoffs != nil {
		j.Backoffs = map[string]model.Backoff{}
	}
	for i, b := range f.Backoffs {
		d, err := time.ParseDuration(cmp.Or(b.Duration, "0s"))
		if err != nil {
			return nil, fmt.Errorf("backoffs[%d].duration: %w", i, err)
		}
		j.Backoffs[b.Container] = model.Backoff{Duration: d, LastUpdate: b.LastUpdate, Key: b.Key}
	}
	if j.Applied != nil {
		if err := j.Applied.Check(); err != nil {
			return nil, fmt.Errorf("checkpoint.applied: %w", err)
		}
	}
	return j, nil
}

// decode decodes a message of the runtime. It ignores fields of a newer CRI.
func decode(text json.RawMessage, m proto.Message) error {
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, m)
}

func decodeAll[T any, M interface {
	*T
	proto.Message
}](section string, texts []json.RawMessage) ([]M, error) {
	messages := make([]M, 0, len(texts))
	for i, text := range texts {
		m := M(new(T))
		if err := decode(text, m); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", section, i, err)
		}
		messages = append(messages, m)
	}
	return messages, nil
}
