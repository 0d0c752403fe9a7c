package sources

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/model"
)

// Source is a place that says which pods shall be there.
type Source interface {
	// Name identifies the source in messages and records: an absolute path, or a URL without its
	// password.
	Name() string
	// Rules are how the source identifies and ends what it wants.
	Rules() Rules
	// Run reads the source until the context ends, and tells of every change of what it wants and
	// of its problems. Nothing is told twice. A value of reread asks for a look now; it is closed once that has been told.
	Run(ctx context.Context, reread <-chan chan struct{}, tell func(Update))
	// Ended tells the source that a pod that it brought is gone.
	Ended(ref model.PodRef)
}

// Rules are how a source identifies and ends what it wants.
type Rules struct {
	// UIDs is set where uids identify pods: two pods with the same name are two pods. Elsewhere only one pod can have a name.
	UIDs bool
	// Lingers is how long something stays that the source does not have any more.
	Lingers time.Duration
}

// Update is what a source wants now. Its slices are not changed any more.
type Update struct {
	// Source is the name of the source.
	Source string
	// Pods are all pods that the source wants, at most one of each name and of each uid, by
	// namespace and name. A pod of which nothing changed is the same pointer as before.
	Pods []*podspec.Desired
	// Workloads are all workloads that the source wants, and Objects what it wants stored: Services, ConfigMaps,
	// Secrets and claims. What has not changed is the same pointer as before.
	Workloads []*podspec.Workload
	Objects   []*podspec.Object
	// Brought has, of pods that were made of workloads, the source that brought the workload: they have its rank. It is not
	// changed any more.
	Brought map[types.UID]string
	// Ending has those of the pods that the source is deleting, with the grace period of each in seconds. It is not changed any more.
	Ending map[types.UID]int64
	// Complete reports whether the source has been read completely at least once. Before that,
	// nothing follows from a pod's absence.
	Complete bool
	// Problems say what is wrong with the source and its texts, by text.
	Problems []Problem
	// Unread are the names of texts that are there and cannot be used, and of which no valid
	// version is known. Pods that came from them earlier must be left as they are.
	Unread []string
	// Missing are the uids of the pods that no text has at the moment, in order. If that stays so, they
	// will not be wanted soon.
	Missing []types.UID
	// Absent are the workloads of which the same is true.
	Absent []*podspec.Workload
	// Notes say what has no effect in the texts that count.
	Notes []string
	// Takeovers are the workloads and objects that were applied by hand and that a text has brought since.
	Takeovers []Problem
}

// Takeover says that something that was applied by hand is the source's from now on.
func Takeover(file, what string, now time.Time) Problem {
	return Problem{File: file, Since: now, Text: "takes over " + what + ", which was applied by hand: deleting the file deletes it"}
}

// Problem is something that is wrong with a source.
type Problem struct {
	// File is the text, or the source, that it is about.
	File string
	Text string
	// Since is when it was first found so.
	Since time.Time
	// Pod is the pod that keeps its manifest although the text has another one of it; empty if it is about no pod.
	Pod types.UID
}

// compare orders problems by their text.
func (p Problem) compare(other Problem) int {
	return cmp.Or(cmp.Compare(p.File, other.File), cmp.Compare(p.Text, other.Text), p.Since.Compare(other.Since))
}

// maxListed bounds the problems of one kind, and the notes, of a source. More help nobody, and each is a line of the log.
const maxListed = 20

// Few returns the first problems of a source, and one that counts the others.
func Few(source string, problems []Problem) []Problem {
	if len(problems) <= maxListed {
		return problems
	}
	rest := Problem{File: source, Text: unlisted(len(problems)-maxListed, "problem"), Since: problems[maxListed].Since}
	return append(slices.Clone(problems[:maxListed]), rest)
}

// Stamp gives problems that have no time the one since when they are, from those before, and
// sorts them.
func Stamp(problems []Problem, now time.Time, before []Problem) {
	for i, p := range problems {
		if !p.Since.IsZero() {
			continue
		}
		problems[i].Since = now
		for _, old := range before {
			if old.File == p.File && old.Text == p.Text {
				problems[i].Since = old.Since
			}
		}
	}
	slices.SortFunc(problems, Problem.compare)
}

func unlisted(n int, what string) string { return "not listed: " + document.Counted(n, "more "+what) }

// SameAs reports whether two updates say the same.
func (u Update) SameAs(other Update) bool {
	return u.Complete == other.Complete && slices.Equal(u.Pods, other.Pods) && slices.Equal(u.Problems, other.Problems) &&
		slices.Equal(u.Unread, other.Unread) && slices.Equal(u.Missing, other.Missing) && slices.Equal(u.Notes, other.Notes) &&
		slices.Equal(u.Workloads, other.Workloads) && slices.Equal(u.Objects, other.Objects) && slices.Equal(u.Absent, other.Absent) &&
		maps.Equal(u.Brought, other.Brought) && maps.Equal(u.Ending, other.Ending) && slices.Equal(u.Takeovers, other.Takeovers)
}

// Settings say how sources are read.
type Settings struct {
	// Loader reads and parses the texts.
	Loader load.Loader
	// Interval is the time between two looks; zero means 20 seconds (kubelet: fileCheckFrequency).
	Interval time.Duration
	// Settle is how long nobody must have written to a directory before it is read; zero means 10 ms. A tenth of it is
	// enough where files were renamed to their names.
	Settle time.Duration
}

// Lingers is how long a pod is still wanted that no text has any more: files are renamed and directories are replaced.
const Lingers = 2 * time.Second

// textSource is a source of texts by its name: an absolute path, or a URL without its password. Its manifests have names. A pod ends with
// the grace period of its own.
type textSource string

// Name is the name.
func (s textSource) Name() string { return string(s) }

// Rules are those of texts.
func (textSource) Rules() Rules { return Rules{Lingers: Lingers} }

// Ended is of no use to texts.
func (textSource) Ended(model.PodRef) {}

const (
	interval = 20 * time.Second
	settle   = 10 * time.Millisecond
	// urlTimeout bounds the download of a text, fileTimeout the reading of a file.
	urlTimeout  = 10 * time.Second
	fileTimeout = 5 * time.Second
	// patience is how long something must be wrong before it is a problem: a text may be half
	// written.
	patience = time.Second
)

// completed are the settings with what they leave out.
func (s Settings) completed() Settings {
	s.Interval, s.Settle = cmp.Or(s.Interval, interval), cmp.Or(s.Settle, settle)
	s.Loader.Timeout = cmp.Or(s.Loader.Timeout, urlTimeout)
	return s
}
