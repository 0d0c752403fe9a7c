package sources

import (
	"time"

	"github.com/podctl/podctl/runtime/model"
)

// absence is that of something that a source wants and that no text may have at the moment.
type absence struct {
	// missing is since when no text has it; zero while one has.
	missing time.Time
}

// leave notes that no text has it.
func (a *absence) leave(now time.Time) { a.missing = model.Earlier(a.missing, now) }

// stay notes that a damaged text had it: what that wants is not known.
func (a *absence) stay() { a.missing = time.Time{} }

func (a *absence) absent() *absence { return a }

// lingering is what stays for a moment when no text has it.
type lingering interface{ absent() *absence }

// thaw lets what was missing when the source failed be so from now on.
func thaw[T lingering](all map[key]T, failed, now time.Time) {
	for _, one := range all {
		a := one.absent()
		a.missing = thawed(a.missing, failed, now)
	}
}

// expire drops what has been missing long enough. It returns when there will be more.
func expire[T lingering](all map[key]T, now time.Time) (again time.Time) {
	for name, one := range all {
		missing := one.absent().missing
		switch over := missing.Add(Lingers); {
		case missing.IsZero():
		case over.After(now):
			again = model.Earlier(again, over)
		default:
			delete(all, name)
		}
	}
	return again
}
