package podworkers

import "k8s.io/apimachinery/pkg/types"

// Pulling says that a pass begins to pull an image. It keeps no other pass from beginning while it
// waits for a registry.
func (w *Workers) Pulling(uid types.UID) {
	if x := w.workers[uid]; x != nil && x.running != nil {
		x.pulls++
		x.aside = true
	}
}

// Pulled says that a pull has ended. The pass waits until Continue names it.
func (w *Workers) Pulled(uid types.UID) {
	if x := w.workers[uid]; x != nil && x.pulls > 0 {
		x.pulls--
		x.back = true
	}
}

// Continue names the pods whose passes may go on after a pull: as long as no more passes do
// something than may at the same time, and those that wait for another image too.
func (w *Workers) Continue() []types.UID {
	free := w.freeSyncs()
	var on []types.UID
	for _, x := range w.byDue() {
		switch {
		case !x.back:
			continue
		case x.pulls == 0 && x.aside:
			if free == 0 {
				continue
			}
			free--
			x.aside = false
		}
		x.back = false
		on = append(on, x.ref.UID)
	}
	return on
}
