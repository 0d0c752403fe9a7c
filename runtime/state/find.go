package state

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// uids lists the pods that have a journal, in order. A state directory that does
// not exist has none. What lies there under names that no pod has is not podctl's.
func (l Layout) uids() ([]types.UID, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	entries, err := entriesOf(l.pods())
	if err != nil {
		return nil, fmt.Errorf("reading the state directory: %w", err)
	}
	var uids []types.UID
	for _, entry := range entries {
		pod := l.Pod(types.UID(entry.Name()))
		if pod.check() != nil {
			continue
		}
		if known, err := exists(pod.JournalFile()); err == nil && known {
			uids = append(uids, pod.uid)
		}
	}
	return uids, nil
}

// Entry is one pod that podctl remembers.
type Entry struct {
	UID types.UID
	// Journal is nil when Err says why it cannot be read.
	Journal *Journal
	Err     error
}

// Journals reads every journal there is, in the order of the uids. One that
// cannot be read is an entry with an error and does not hide the others.
func (l Layout) Journals() ([]Entry, error) {
	uids, err := l.uids()
	if err != nil {
		return nil, err
	}
	key := l.knownKey()
	entries := make([]Entry, 0, len(uids))
	for _, uid := range uids {
		j, err := l.Pod(uid).readJournal(key)
		entries = append(entries, Entry{UID: uid, Journal: j, Err: err})
	}
	return entries, nil
}
