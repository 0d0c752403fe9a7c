package logfile

import (
	"bufio"
	"fmt"
	"io"
	"math"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// limitError reports that all requested bytes are shown.
type limitError struct{}

func (limitError) Error() string { return "the limit is reached" }

// timeFormat is the format of times before lines, which has a fixed width.
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// output shows entries. It combines successive writes to one stream, and keeps the order of the streams.
type output struct {
	opts    *Options
	streams map[string]io.Writer
	// to is the stream of the buffer.
	to     string
	buffer *bufio.Writer
	// remain is how many bytes may still be shown.
	remain int64
	// inLine is set if the last entry was not the end of a line.
	inLine bool
	stamp  []byte
}

func newOutput(opts *Options, stdout, stderr io.Writer) *output {
	o := &output{
		opts: opts, buffer: bufio.NewWriterSize(io.Discard, blockSize), remain: math.MaxInt64,
		streams: map[string]io.Writer{string(runtimeapi.Stdout): stdout, string(runtimeapi.Stderr): stderr},
	}
	if opts.LimitBytes != nil {
		o.remain = *opts.LimitBytes
	}
	return o
}

// put shows an entry unless it is too old or its stream is not wanted. It writes the time before the first part of a
// line.
func (o *output) put(e *entry) error {
	if w, known := o.streams[e.stream]; known && w == nil {
		return nil
	}
	first := !o.inLine
	o.inLine = len(e.text) > 0 && e.text[len(e.text)-1] != '\n'
	if e.at.Before(o.opts.Since) {
		return nil
	}
	if err := o.switchTo(e.stream); err != nil {
		return err
	}
	if o.opts.Timestamps && first {
		o.stamp = append(e.at.AppendFormat(o.stamp[:0], timeFormat), ' ')
		if err := o.write(o.stamp); err != nil {
			return err
		}
	}
	if err := o.write(e.text); err != nil {
		return err
	}
	if o.remain <= 0 {
		return limitError{}
	}
	return nil
}

// switchTo selects the stream to write to.
func (o *output) switchTo(stream string) error {
	w, known := o.streams[stream]
	switch {
	case !known:
		return fmt.Errorf("the log has a line of the unknown stream %.20q", stream)
	case stream == o.to:
		return nil
	}
	if err := o.buffer.Flush(); err != nil {
		return err
	}
	o.buffer.Reset(w)
	o.to = stream
	return nil
}

// write truncates the text to the remaining bytes.
func (o *output) write(text []byte) error {
	n, err := o.buffer.Write(text[:min(int64(len(text)), o.remain)])
	o.remain -= int64(n)
	return err
}

// flush writes the buffer.
func (o *output) flush() error { return o.buffer.Flush() }
