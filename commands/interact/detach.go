package interact

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/podctl/podctl/commands/exit"
)

// defaultDetachKeys are the default keys of docker.
const defaultDetachKeys = "ctrl-p,ctrl-q"

// errDetached ends the connection after the user pressed the detach keys.
var errDetached = errors.New("detached")

// parseKeys parses a sequence of keys, separated by commas: letters, and ctrl- with a letter or one of @[\]^_. It
// returns nil for an empty text.
func parseKeys(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	var keys []byte
	for name := range strings.SplitSeq(text, ",") {
		key, isControl := strings.CutPrefix(strings.ToLower(name), "ctrl-")
		switch {
		case isControl && len(key) == 1 && (key[0] >= 'a' && key[0] <= 'z' || strings.Contains(`@[\]^_`, key)):
			keys = append(keys, strings.ToUpper(key)[0]&0x1f)
		case !isControl && len(name) == 1 && name[0] > ' ' && name[0] < 0x7f:
			keys = append(keys, name[0])
		default:
			return nil, exit.Usagef("--detach-keys: %q is not a key; write for example %s", name, defaultDetachKeys)
		}
	}
	return keys, nil
}

// detachable is an input that cancels the connection when it reads a sequence of keys. Then Read blocks instead of
// returning EOF, because the connection would pass an EOF on to the process.
type detachable struct {
	in     io.Reader
	keys   []byte
	detach context.CancelCauseFunc
	// matched is the number of keys of the sequence that were pressed. ready has the input to pass on.
	matched int
	ready   []byte
	err     error
}

// Read reads from the input. It holds back the keys of an incomplete sequence.
func (d *detachable) Read(p []byte) (int, error) {
	for len(d.ready) == 0 && d.err == nil {
		if d.matched == len(d.keys) {
			d.detach(errDetached)
			select {} // The process ends.
		}
		buffer := make([]byte, max(len(p), 1))
		n, err := d.in.Read(buffer)
		for _, key := range buffer[:n] {
			d.press(key)
		}
		if d.matched == len(d.keys) {
			continue
		}
		if d.err = err; err != nil {
			d.ready = append(d.ready, d.keys[:d.matched]...)
		}
	}
	n := copy(p, d.ready)
	if d.ready = d.ready[n:]; n > 0 {
		return n, nil
	}
	return 0, d.err
}

// press handles a key. It drops keys after a complete sequence.
func (d *detachable) press(key byte) {
	if d.matched == len(d.keys) {
		return
	}
	if key != d.keys[d.matched] {
		d.ready = append(d.ready, d.keys[:d.matched]...)
		d.matched = 0
	}
	if key != d.keys[d.matched] {
		d.ready = append(d.ready, key)
		return
	}
	d.matched++
}

// withDetach calls run with an input that the user can detach from. It returns errDetached if the user did.
func withDetach(ctx context.Context, in io.Reader, keys []byte, run func(context.Context, io.Reader) error) error {
	if len(keys) == 0 || in == nil {
		return run(ctx, in)
	}
	ctx, detach := context.WithCancelCause(ctx)
	defer detach(nil)
	err := run(ctx, &detachable{in: in, keys: keys, detach: detach})
	if errors.Is(context.Cause(ctx), errDetached) {
		return errDetached
	}
	return err
}
