package sources

import (
	"context"
	"errors"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
)

// URL is the source of a text on a server.
type URL struct {
	textSource

	url      string
	settings Settings
	// answer is the last answer that had a text.
	answer input.Answer
}

// NewURL returns the source of a URL. It refuses an insecure URL.
func NewURL(url string, s Settings) (*URL, error) {
	name, err := input.URLName(url)
	if err != nil {
		return nil, err
	}
	return &URL{textSource: textSource(name), url: url, settings: s.completed()}, nil
}

// Run fetches the text each interval.
func (u *URL) Run(ctx context.Context, reread <-chan chan struct{}, notify func(Update)) {
	l := &poller{texts: u.settings.texts(u.Name()), interval: u.settings.Interval, read: u.read}
	l.run(ctx, reread, notify)
}

// read fetches the text if it has changed. An empty answer is an error and does not delete all pods, unlike in a
// kubelet. Only an empty List does.
func (u *URL) read(ctx context.Context) Reading {
	answer, err := u.settings.Loader.Get(ctx, u.url, u.answer.ETag)
	if err != nil {
		return Reading{Err: err}
	}
	if !answer.Unchanged {
		if document.IsEmpty(answer.Text) {
			empty := errors.New("reading manifest " + u.Name() + ": the response contains no Kubernetes object")
			return Reading{Err: empty}
		}
		u.answer = answer
	}
	return Reading{Texts: []Text{{Name: u.Name(), Text: u.answer.Text}}}
}
