package podworkers

import "k8s.io/apimachinery/pkg/types"

// Pulling notes that a pass begins to pull an image. While the pass waits for a registry, it does not count against
// Settings.Parallel.
func (w *Workers) Pulling(uid types.UID) {
	if x := w.workers[uid]; x != nil && x.running != nil {
		x.pulls++
		x.uncounted = true
	}
}

// Pulled notes that a pull has ended. The pass must wait until Continue returns it.
func (w *Workers) Pulled(uid types.UID) {
	if x := w.workers[uid]; x != nil && x.pulls > 0 {
		x.pulls--
		x.resuming = true
	}
}

// Continue returns the pods whose passes may continue after a pull: as many as Settings.Parallel allows, and those that
// still wait for another image.
func (w *Workers) Continue() []types.UID {
	free := w.freeSyncs()
	var on []types.UID
	for _, x := range w.byDue() {
		switch {
		case !x.resuming:
			continue
		case x.pulls == 0 && x.uncounted:
			if free == 0 {
				continue
			}
			free--
			x.uncounted = false
		}
		x.resuming = false
		on = append(on, x.ref.UID)
	}
	return on
}
