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

// urlTimeout limits the download of a manifest.
const urlTimeout = 30 * time.Second

// Answer is a server's answer for a URL.
type Answer struct {
	// Text is the whole text, or nil if it is unchanged.
	Text []byte
	// ETag identifies this version of the text; empty if the server sends none.
	ETag string
	// Unchanged is set if the text still has the requested ETag.
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

// URLName returns the name for a URL. It omits the password and the query, which may have a token or a signature. A
// part of a digest distinguishes URLs that differ in these.
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

// shown returns a URL without parts that may be secret.
func shown(u *url.URL) string {
	without := *u
	if without.Fragment, without.RawFragment = "", ""; without.RawQuery != "" {
		without.RawQuery = "xxxxx"
	}
	return without.Redacted()
}

// parseURL parses a URL that may be fetched. It accepts http only for this machine, because manifests run as root and
// must not come over a connection that others can change.
func parseURL(name string) (*url.URL, error) {
	u, err := url.Parse(name)
	if whole := (*url.Error)(nil); errors.As(err, &whole) {
		// The url.Error quotes the URL, which may have a password.
		return nil, fmt.Errorf("reading manifest: the URL cannot be read: %w", whole.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading manifest: %w", err)
	}
	if !isTrusted(u) {
		return nil, fmt.Errorf(
			"reading manifest %s: plain http is only accepted from this machine; use https", shown(u))
	}
	return u, nil
}

// Get fetches the text at a URL, unless the server reports that it still has this ETag.
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
	reply, err := r.request(ctx, u, etag)
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
	// If the text ends before the length that the server sent, reading returns an error.
	text, err := ReadAtMost(reply.Body, cmp.Or(r.MaxBytes, DefaultMaxBytes))
	return Answer{Text: text, ETag: reply.Header.Get("ETag")}, err
}

func (r Reader) request(ctx context.Context, u *url.URL, etag string) (*http.Response, error) {
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
		// The url.Error quotes the last URL, which may have a password from the server.
		err = whole.Err
	}
	if err != nil && strings.Contains(err.Error(), "Location header") {
		err = errors.New("the server redirects to an invalid URL")
	}
	return reply, err
}

// maxRedirects limits the redirects of a server.
const maxRedirects = 5

// checkRedirect accepts only redirects to URLs that a user may name, and none from https to http. Credentials in the
// first URL are not sent to another host.
func checkRedirect(next *http.Request, before []*http.Request) error {
	switch {
	case len(before) > maxRedirects:
		return fmt.Errorf("the server redirects more than %d times", maxRedirects)
	case !isTrusted(next.URL) || (next.URL.Scheme == "http" && before[len(before)-1].URL.Scheme != "http"):
		return fmt.Errorf("the server redirects to %s, which is neither https nor on this machine", shown(next.URL))
	}
	return nil
}

// isTrusted reports whether no third party can change the text from a URL.
func isTrusted(u *url.URL) bool {
	return u.Scheme == "https" || (u.Scheme == "http" && isLoopback(u.Hostname()))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
