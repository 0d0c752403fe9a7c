package sources

import (
	"context"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

type Source interface {
	Name() string
	Run(ctx context.Context, reread <-chan struct{}, tell func(Update))
	Ended(ref model.PodRef)
}
type Problem struct {
	File, Text string
	Since      time.Time
}
type Update struct {
	Source   string
	Pods     []*podspec.Desired
	Complete bool
	Problems []Problem
	Unread   []string
}
type Merged struct {
	Pods     []*podspec.Desired
	Problems []Problem
}

func Merge(us []Update) Merged {
	var m Merged
	seen := map[string]bool{}
	for _, u := range us {
		for _, d := range u.Pods {
			n, id := d.Pod.Namespace+"/"+d.Pod.Name, "uid:"+string(d.Pod.UID)
			if seen[n] || seen[id] {
				continue
			}
			seen[n], seen[id] = true, true
			m.Pods = append(m.Pods, d)
		}
	}
	return m
}

type Settings struct {
	Loader   any
	Interval time.Duration
}

func NewFiles(string, Settings) (Source, error) { return nil, nil }
func NewURL(string, Settings) (Source, error)   { return nil, nil }
