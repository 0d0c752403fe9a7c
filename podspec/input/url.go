package input

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// urlTimeout bounds the download of a manifest.
const urlTimeout = 30 * time.Second

// Answer is what a server says of the text at a URL.
type Answer struct {
	// Text is the whole text; nil when it is unchanged.
	Text []byte
	// ETag names this version of the text; empty when the server gives none.
	ETag string
	// Unchanged is set when the version is the one that was asked about.
	Unchanged bool
}

func (r Reader) readURL(ctx context.Context, name string) ([]Source, error) {
	answer, err := r.Get(ctx, name, "")
	if err != nil {
		return nil, err
	}
	known, err := URLName(name)
	return []Source{{Name: known, Text: answer.Text}}, err
}

// URLName is the name that a URL is known by. It has no password and no query, which may hold a token or a signature: a part
// of a digest tells apart URLs that differ in these.
func URLName(name string) (string, error) {
	u, err := parseURL(name)
	if err != nil {
		return "", err
	}
	if u.RawQuery == "" {
		return u.Redacted(), nil
	}
	digest := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s#%x", shown(u), digest[:4]), nil
}

// shown is a URL without what may be secret in it.
func shown(u *url.URL) string {
	without := *u
	if without.Fragment, without.RawFragment = "", ""; without.RawQuery != "" {
		without.RawQuery = "xxxxx"
	}
	return without.Redacted()
}

// parseURL reads a URL that may be fetched. Plain http is only taken from this machine: what
// runs as root is not read from a connection anyone can change.
func parseURL(name string) (*url.URL, error) {
	u, err := url.Parse(name)
	if whole := (*url.Error)(nil); errors.As(err, &whole) {
		// The whole quotes the URL, with the password that may be in it.
		return nil, fmt.Errorf("reading manifest: the URL cannot be read: %w", whole.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading manifest: %w", err)
	}
	if !isTrusted(u) {
		return nil, fmt.Errorf("reading manifest %s: plain http is only accepted from this machine; use https", shown(u))
	}
	return u, nil
}

// Get fetches the text at a URL, unless the server says that it is still the version that an
// ETag names.
func (r Reader) Get(ctx context.Context, name, etag string) (Answer, error) {
	u, err := parseURL(name)
	if err != nil {
		return Answer{}, err
	}
	limit := cmp.Or(r.Timeout, urlTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	answer, err := r.fetch(ctx, u, etag)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return Answer{}, fmt.Errorf("reading manifest %s: %w", shown(u), err)
	}
	return answer, nil
}

func (r Reader) fetch(ctx context.Context, u *url.URL, etag string) (Answer, error) {
	reply, err := r.ask(ctx, u, etag)
	if err != nil {
		return Answer{}, err
	}
	defer reply.Body.Close() //nolint:errcheck // the body is read to its end or given up
	if reply.StatusCode == http.StatusNotModified && etag != "" {
		return Answer{ETag: etag, Unchanged: true}, nil
	}
	if reply.StatusCode != http.StatusOK {
		return Answer{}, fmt.Errorf("the server answered %s", reply.Status)
	}
	// A text that ends before the length that the server gave is an error of the reader.
	text, err := ReadAtMost(reply.Body, cmp.Or(r.MaxBytes, DefaultMaxBytes))
	return Answer{Text: text, ETag: reply.Header.Get("ETag")}, err
}

func (r Reader) ask(ctx context.Context, u *url.URL, etag string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	client := http.Client{}
	if r.HTTP != nil {
		client = *r.HTTP
	}
	client.CheckRedirect = checkRedirect
	reply, err := client.Do(req)
	if whole := (*url.Error)(nil); errors.As(err, &whole) {
		// The whole quotes the URL it came to, which may hold a server's password.
		err = whole.Err
	}
	if err != nil && strings.Contains(err.Error(), "Location header") {
		err = errors.New("the server redirects to something that is no URL")
	}
	return reply, err
}

// maxRedirects is how often a server may send podctl on to another place.
const maxRedirects = 5

// checkRedirect holds the places that a server names to what a user may name, and
// does not go on from https to a connection that anyone can change. What a user may
// have put into the first URL to prove who he is stays with its host.
func checkRedirect(next *http.Request, before []*http.Request) error {
	switch {
	case len(before) > maxRedirects:
		return fmt.Errorf("the server redirects more than %d times", maxRedirects)
	case !isTrusted(next.URL) || (next.URL.Scheme == "http" && before[len(before)-1].URL.Scheme != "http"):
		return fmt.Errorf("the server redirects to %s, which is neither https nor on this machine", shown(next.URL))
	}
	return nil
}

// isTrusted reports whether nobody on the way can change what comes from a URL.
func isTrusted(u *url.URL) bool {
	return u.Scheme == "https" || (u.Scheme == "http" && isLoopback(u.Hostname()))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
