package sources

import (
	"context"
	"errors"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/model"
)

// URL is a text on a server.
type URL struct {
	url, name string
	settings  Settings
	// answer is the last one that had a text.
	answer input.Answer
}

// NewURL makes the source of a URL. It refuses one that nobody may trust.
func NewURL(url string, s Settings) (*URL, error) {
	name, err := input.URLName(url)
	if err != nil {
		return nil, err
	}
	return &URL{url: url, name: name, settings: s.completed()}, nil
}

// Name is the URL without its password.
func (u *URL) Name() string { return u.name }

// Rules are those of texts.
func (*URL) Rules() Rules { return textRules() }

// Ended is of no use to a URL.
func (u *URL) Ended(model.PodRef) {}

// Run fetches the text each interval.
func (u *URL) Run(ctx context.Context, reread <-chan chan struct{}, tell func(Update)) {
	l := &looker{texts: NewTexts(u.name, u.settings.Loader), interval: u.settings.Interval, look: u.read}
	l.run(ctx, reread, tell)
}

// read fetches the text, unless it is as it was. A server that has nothing to say does not say
// that nothing is wanted: that would be an empty List (a kubelet removes all its pods then).
func (u *URL) read(ctx context.Context) Reading {
	answer, err := u.settings.Loader.Get(ctx, u.url, u.answer.ETag)
	if err != nil {
		return Reading{Err: err}
	}
	if !answer.Unchanged {
		if document.IsEmpty(answer.Text) {
			return Reading{Err: errors.New("reading manifest " + u.name + ": the answer holds no Kubernetes object")}
		}
		u.answer = answer
	}
	return Reading{Texts: []Text{{Name: u.name, Text: u.answer.Text}}}
}
