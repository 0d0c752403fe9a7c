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

// Source is a place that provides the wanted pods.
type Source interface {
	// Name returns the name of the source in messages and records: an absolute path, or a URL without its password and
	// query (input.URLName).
	Name() string
	// Rules returns how the source identifies and ends its objects.
	Rules() Rules
	// Run reads the source until the context ends. It calls notify for every change of the wanted objects and of the
	// problems, and never twice for the same. A value received from reread requests a read now. Run closes it after the
	// result was reported.
	Run(ctx context.Context, reread <-chan chan struct{}, notify func(Update))
	// Ended notifies the source that one of its pods is gone.
	Ended(ref model.PodRef)
}

// Rules are how a source identifies and ends its objects.
type Rules struct {
	// UIDs is set if UIDs identify pods, so that two pods can have the same name. Otherwise, only one pod can have a
	// name.
	UIDs bool
	// DropDelay is how long an object stays wanted after the source has lost it.
	DropDelay time.Duration
}

// Update is the state of a source. Its slices and maps are immutable.
type Update struct {
	// Source is the name of the source.
	Source string
	// Pods are all wanted pods in the order of namespace and name. Names and UIDs are unique. An unchanged pod keeps
	// its pointer.
	Pods []*podspec.Desired
	// Workloads are all wanted workloads. Objects are the objects to store: Services, ConfigMaps, Secrets and claims.
	// An unchanged object keeps its pointer.
	Workloads []*podspec.Workload
	Objects   []*podspec.Object
	// WorkloadSources maps pods of workloads to the source of the workload. They have the rank of that source.
	WorkloadSources map[types.UID]string
	// Ending maps the pods that the source is deleting, and pods that it has deleted, to their grace periods in
	// seconds.
	Ending map[types.UID]int64
	// Complete reports whether the source has been read completely at least once. Before that, the absence of a pod has
	// no meaning.
	Complete bool
	// Problems are the problems of the source and its texts, sorted by text.
	Problems []Problem
	// Unread are the names of existing texts that are invalid and have no known valid version. Pods that came from them
	// earlier must not be changed. A source that identifies pods by UID has their UIDs here.
	Unread []string
	// Missing are the sorted UIDs of the wanted pods that no text has at the moment. They will be dropped soon unless
	// they come back.
	Missing []types.UID
	// Absent are the workloads in the same state.
	Absent []*podspec.Workload
	// Notes describe the parts of valid texts that have no effect.
	Notes []string
	// Takeovers are the workloads and objects that were applied by hand and that a text has since provided.
	Takeovers []Problem
}

// Takeover returns the notice that an object applied by hand belongs to a source from now on.
func Takeover(file, what string, now time.Time) Problem {
	text := "takes over " + what + ", which was applied by hand: deleting the file deletes it"
	return Problem{File: file, Since: now, Text: text}
}

// Problem is a problem of a source.
type Problem struct {
	// File is the name of the text or of the source.
	File string
	Text string
	// Since is when the problem was first found.
	Since time.Time
	// Pod is the pod that keeps its manifest although the text has another one of it. It is empty if the problem is not
	// about a pod.
	Pod types.UID
}

// compare orders problems by file, text and time.
func (p Problem) compare(other Problem) int {
	return cmp.Or(cmp.Compare(p.File, other.File), cmp.Compare(p.Text, other.Text), p.Since.Compare(other.Since))
}

// maxListed limits the problems of one kind, and the notes, of a source. Each is a line of the log.
const maxListed = 20

// Few returns the first problems of a source, and one that counts the others.
func Few(source string, problems []Problem) []Problem {
	if len(problems) <= maxListed {
		return problems
	}
	rest := Problem{File: source, Text: unlisted(len(problems)-maxListed, "problem"), Since: problems[maxListed].Since}
	return append(slices.Clone(problems[:maxListed]), rest)
}

// Stamp sets the time of problems that have none. It takes the time from the same problem in before, and otherwise now.
// Then it sorts the problems.
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
	slices.SortStableFunc(problems, Problem.compare)
}

func unlisted(n int, what string) string { return "not listed: " + document.Counted(n, "more "+what) }

// SameAs reports whether two updates are equal.
func (u Update) SameAs(other Update) bool {
	return u.Complete == other.Complete &&
		slices.Equal(u.Pods, other.Pods) && slices.Equal(u.Workloads, other.Workloads) &&
		slices.Equal(u.Objects, other.Objects) && maps.Equal(u.WorkloadSources, other.WorkloadSources) &&
		slices.Equal(u.Problems, other.Problems) && slices.Equal(u.Notes, other.Notes) &&
		slices.Equal(u.Unread, other.Unread) && slices.Equal(u.Missing, other.Missing) &&
		slices.Equal(u.Absent, other.Absent) && maps.Equal(u.Ending, other.Ending) &&
		slices.Equal(u.Takeovers, other.Takeovers)
}

// Settings configure how sources are read.
type Settings struct {
	// Loader reads and parses the texts.
	Loader load.Loader
	// Interval is the time between two reads. Zero means 20 seconds (kubelet: fileCheckFrequency).
	Interval time.Duration
	// Settle is how long a directory must be unchanged before it is read. Zero means 10 ms. A tenth of it is enough if
	// files were renamed to their names.
	Settle time.Duration
	// EndRemoved ends the pods of a file at once if it is deleted, also if it is written again (kubelet:
	// consumeWatchEvent). Otherwise, only a file that stays away ends its pods. Renamed files are not affected.
	EndRemoved bool
	// reportDelay is how long a problem must last before it is reported, because a text may be half written. Zero
	// means one second.
	reportDelay time.Duration
}

// DropDelay is how long a pod stays wanted after its text is gone, because files are renamed and directories are
// replaced.
const DropDelay = 2 * time.Second

// textSource is the common part of sources of texts. Its value is the name: an absolute path, or a URL without its
// password and query. Names identify its manifests. A pod ends with its own grace period.
type textSource string

// Name returns the name.
func (s textSource) Name() string { return string(s) }

// Rules returns the rules of texts.
func (textSource) Rules() Rules { return Rules{DropDelay: DropDelay} }

// Ended does nothing.
func (textSource) Ended(model.PodRef) {}

const (
	interval = 20 * time.Second
	settle   = 10 * time.Millisecond
	// urlTimeout limits the download of a text. fileTimeout limits the read of a file.
	urlTimeout  = 10 * time.Second
	fileTimeout = 5 * time.Second
	reportDelay = time.Second
)

// texts returns the texts of a source with these settings.
func (s Settings) texts(name string) *Texts {
	t := NewTexts(name, s.Loader)
	t.reportDelay = s.reportDelay
	return t
}

// completed returns the settings with defaults filled in.
func (s Settings) completed() Settings {
	s.Interval, s.Settle = cmp.Or(s.Interval, interval), cmp.Or(s.Settle, settle)
	s.reportDelay = cmp.Or(s.reportDelay, reportDelay)
	s.Loader.Timeout = cmp.Or(s.Loader.Timeout, urlTimeout)
	return s
}
