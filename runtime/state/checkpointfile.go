package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// checkpointMax limits the bytes read from a checkpoint. Forty ConfigMaps of the maximum size stay below it.
const checkpointMax = 64 << 20

// ErrDamaged reports a stored file that is truncated or has other content.
var ErrDamaged = statedir.ErrDamaged

// ErrNewer reports a checkpoint of a newer podctl.
var ErrNewer = errors.New("it was written by a newer podctl")

// CheckpointError reports a checkpoint that cannot be used. Err is ErrDamaged or ErrNewer with details.
type CheckpointError struct {
	Path string
	Err  error
}

// Error returns the reason and advice.
func (e *CheckpointError) Error() string {
	if errors.Is(e.Err, ErrNewer) {
		return fmt.Sprintf("reading the checkpoint %s: %v; use that podctl, or remove the file: %s",
			e.Path, e.Err, whatIsLost)
	}
	return fmt.Sprintf("reading the checkpoint %s: %v; remove the file: %s", e.Path, e.Err, whatIsLost)
}

const whatIsLost = "this does not affect running containers: " +
	"podctl only forgets the last applied manifest, probe results and restart delays"

// Unwrap returns the cause.
func (e *CheckpointError) Unwrap() error { return e.Err }

// CheckpointStore reads and writes the checkpoint of a pod.
type CheckpointStore struct{ pod Pod }

const checkpointName = "checkpoint.json"

// Path returns the file of the checkpoint.
func (s CheckpointStore) Path() string { return filepath.Join(s.pod.Dir(), checkpointName) }

// Exists reports whether the pod has a checkpoint, even one that cannot be read.
func (s CheckpointStore) Exists() (bool, error) {
	if err := s.pod.check(); err != nil {
		return false, err
	}
	return s.pod.layout.dir().Exists(s.Path())
}

// Read reads the pod's checkpoint. A missing checkpoint is returned as an empty one. A damaged checkpoint or one of a
// newer podctl is a *CheckpointError.
func (s CheckpointStore) Read() (*Checkpoint, error) {
	if err := s.pod.check(); err != nil {
		return nil, err
	}
	return s.read(s.pod.layout.DigestKey().known())
}

// read is Read with a given key, which is read only once for many checkpoints.
func (s CheckpointStore) read(key *digest.Key) (*Checkpoint, error) {
	text, err := s.pod.layout.dir().Read(s.Path(), checkpointMax)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Checkpoint{Version: checkpointVersion}, nil
	case errors.Is(err, ErrDamaged):
		return nil, &CheckpointError{Path: s.Path(), Err: err}
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("reading the checkpoint: %w; "+
			"run podctl as the user who applied the pod, which is root as a rule", err)
	case err != nil:
		return nil, fmt.Errorf("reading the checkpoint: %w", err)
	}
	j, err := decodeCheckpoint(text)
	if err == nil {
		err = s.checkNames(j)
	}
	if err != nil {
		return nil, &CheckpointError{Path: s.Path(), Err: err}
	}
	j.Applied.UseKey(key)
	s.recall(j)
	return j, nil
}

// checkNames refuses a checkpoint whose pod, manifest and path do not agree.
func (s CheckpointStore) checkNames(j *Checkpoint) error {
	if j.Applied == nil {
		return nil
	}
	ref := model.RefOf(j.Applied.Pod)
	if ref.UID != s.pod.uid || (j.Pod != model.PodRef{} && j.Pod != ref) {
		return fmt.Errorf("%w: it is for pod %s (uid %q), but its manifest is for pod %s (uid %q)",
			ErrDamaged, j.Pod, s.pod.uid, ref, ref.UID)
	}
	return nil
}

// decodeCheckpoint checks the version first, because a newer format may not decode at all.
func decodeCheckpoint(text []byte) (*Checkpoint, error) {
	var form struct {
		Version int `json:"version"`
	}
	if err := model.DecodeDocument(text, &form); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch {
	case form.Version > checkpointVersion:
		return nil, fmt.Errorf("%w (its version is %d, this podctl knows %d)",
			ErrNewer, form.Version, checkpointVersion)
	case form.Version < checkpointVersion:
		return nil, fmt.Errorf("%w: it has no version", ErrDamaged)
	}
	var j Checkpoint
	if err := model.DecodeDocument(text, &j); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if j.Applied != nil {
		if err := j.Applied.Check(); err != nil {
			return nil, fmt.Errorf("%w: the manifest in it: %w", ErrDamaged, err)
		}
	}
	return &j, nil
}

// Write replaces the pod's checkpoint as a whole: after a crash either the old or the new one exists. The caller holds
// the pod's lock.
func (s CheckpointStore) Write(j *Checkpoint) error {
	j.Version = checkpointVersion
	j.name()
	text, err := json.Marshal(s.remember(j))
	if err != nil {
		return fmt.Errorf("writing the checkpoint: %w", err)
	}
	if err = s.pod.MakeDir(s.pod.Dir(), podDirMode); err != nil {
		return err
	}
	kept := ""
	if before, lookErr := s.pod.layout.dir().Exists(s.Path()); before && lookErr == nil {
		kept = "; the previous one is kept"
	}
	if err = s.removeUnfinished(); err == nil {
		err = replaceFile(s.pod, checkpointName, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the checkpoint %s: %w%s", s.Path(), safefs.Cause(err), kept)
	}
	return nil
}

// removeUnfinished removes files from a process that was killed while it wrote the checkpoint or the id range. The
// caller holds the pod's lock, so no process is writing now.
func (s CheckpointStore) removeUnfinished() error {
	return removeFiles(s.pod, unfinishedName(checkpointName), unfinishedName(idsName))
}

// Remove removes the pod's checkpoint and directory. Other files in the directory must be removed before
// (volume.RemoveAll).
func (s CheckpointStore) Remove() error {
	if err := s.pod.check(); err != nil {
		return err
	}
	if there, err := s.pod.layout.dir().Exists(s.pod.Dir()); err == nil && !there {
		return nil
	}
	if err := errors.Join(s.removeUnfinished(), s.pod.Hooks().clear(), s.pod.CgroupMark().Clear()); err != nil {
		return fmt.Errorf("removing the checkpoint: %w", err)
	}
	if err := s.pod.layout.dir().Remove(s.Path()); err != nil {
		return fmt.Errorf("removing the checkpoint: %w", err)
	}
	s.forget()
	return safefs.Wrapf(s.pod.layout.dir().Remove(s.pod.Dir()), "removing the pod's directory")
}

// remembered are the values of Secrets that a checkpoint has only in memory.
type remembered struct {
	// secrets are those of the applied manifest. They are complete if it has no unread ones.
	secrets  map[string]*v1.Secret
	complete bool
	earlier  [][][]byte
}

// memory has the values of this process by the path of the checkpoint. All readers of a checkpoint redact with them.
var memory sync.Map //nolint:gochecknoglobals // as above

// remember returns the checkpoint as it is written: without the values of Secrets that must not be on disk.
func (s CheckpointStore) remember(j *Checkpoint) *Checkpoint {
	a := j.Applied
	if a == nil || !a.MemorySecrets {
		s.forget()
		return j
	}
	if !a.Redacted {
		memory.Store(s.Path(), remembered{a.Objects.Secrets, podspec.KnowsSecrets(a), j.EarlierSecrets})
	}
	return j.WithoutSecrets()
}

// recall adds the values in memory to a checkpoint that was read. Another process may have applied other ones.
func (s CheckpointStore) recall(j *Checkpoint) {
	found, _ := memory.Load(s.Path())
	known, is := found.(remembered)
	if !is || j.Applied == nil || !j.Applied.MemorySecrets {
		return
	}
	j.EarlierSecrets = known.earlier
	if !known.complete || !podspec.Reveal(j.Applied, known.secrets) {
		j.keepEarlier(podspec.Objects{Secrets: known.secrets}.SecretValues())
	}
}

func (s CheckpointStore) forget() { memory.Delete(s.Path()) }

// HideSecrets removes the values of Secrets from the checkpoints of pods of the API server. This process keeps them in
// memory. A checkpoint that cannot be read stays as it is.
func HideSecrets(ctx context.Context, locker *Locker) error {
	pods, _, err := Applied(locker.Layout)
	if err != nil {
		return err
	}
	for _, p := range pods {
		if !p.Desired.FromCluster() || p.Desired.MemorySecrets || len(p.Checkpoint.SecretValues()) == 0 {
			continue
		}
		if err := hideSecrets(ctx, locker, model.RefOf(p.Desired.Pod)); err != nil {
			return err
		}
	}
	return nil
}

func hideSecrets(ctx context.Context, locker *Locker, ref model.PodRef) (err error) {
	lock, err := locker.Lock(ctx, ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	store := locker.Layout.Pod(ref.UID).Checkpoint()
	j, err := store.Read()
	if err != nil || j.Applied == nil {
		return err
	}
	j.Applied.MemorySecrets = true
	return store.Write(j)
}
