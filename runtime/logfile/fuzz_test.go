package logfile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzLogs reads arbitrary files of a log, also rotated and compressed ones. The output must not be more than was
// written or requested.
func FuzzLogs(f *testing.F) {
	const line = "2026-05-04T12:00:00.000000001Z stdout F hello\n"
	for _, seed := range []string{
		line, line + line, "2026-05-04T12:00:00Z stdout P hel\n2026-05-04T12:00:00Z stdout F lo\n",
		line + "2026-05-04T12:00:01Z stderr F cut o",
		`{"log":"hello\n","stream":"stdout","time":"2026-05-04T12:00:00Z"}` + "\n", line + "garbage\n" + line,
		"\x00\x00\n", "", "2026-05-04T12:00:00Z stdout\n",
	} {
		f.Add(zipped(f, seed), []byte(seed), []byte(line), int64(2), int64(8))
		f.Add(zipped(f, line), []byte(line), []byte(seed), int64(-1), int64(-1))
	}
	f.Fuzz(func(t *testing.T, oldest, older, newest []byte, tail, limit int64) {
		dir := t.TempDir()
		path := filepath.Join(dir, "0.log")
		for name, text := range map[string][]byte{
			"0.log.20260504-100000.gz": oldest,
			"0.log.20260504-110000":    older,
			"0.log":                    newest,
			"0.log.tmp":                newest,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		opts := Options{Timestamps: limit%2 == 0}
		if tail >= 0 {
			opts.Tail = &tail
		}
		if limit >= 0 {
			opts.LimitBytes = &limit
		}
		var stdout, stderr bytes.Buffer
		showAll(t, path, &opts, &stdout, &stderr)
		shown := int64(stdout.Len() + stderr.Len())
		if limit >= 0 && shown > limit {
			t.Errorf("%d bytes are shown, %d were asked for", shown, limit)
		}
		lines := int64(bytes.Count(stdout.Bytes(), []byte("\n")) + bytes.Count(stderr.Bytes(), []byte("\n")))
		if tail >= 0 && lines > tail && !bytes.Contains(slicesOf(oldest, older, newest), []byte(`\`)) {
			t.Errorf("%d lines are shown, %d were asked for: %q", lines, tail, stdout.String())
		}
	})
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func showAll(t *testing.T, path string, opts *Options, stdout, stderr *bytes.Buffer) {
	t.Helper()
	out := &Shared{}
	if err := (Log{path}).Read(t.Context(), opts, nil, out.Lines(stdout, ""), out.Lines(stderr, "")); err != nil &&
		strings.Contains(err.Error(), "panic") {
		t.Error(err)
	}
}

func zipped(tb testing.TB, text string) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// TestHostileLogsAreRefused checks that a log that would fill the memory or the disk, or that never ends, is reported
// and not read.
func TestHostileLogsAreRefused(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const line = "2026-05-04T12:00:00.000000001Z stdout F hello\n"
	hole := file("hole.log", []byte(line))
	if err := os.Truncate(hole, 1<<40); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe.log")
	if err := mkfifo(pipe); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"a terabyte of nothing":      {hole, "hole.log: line 2 is longer than the 1048576 bytes that a runtime writes"},
		"a pipe":                     {pipe, "pipe.log: it is not a regular file"},
		"a directory":                {dir, "it is not a regular file"},
		"a long line, compressed":    {file("long.gz", zipped(t, strings.Repeat("x", 2<<20))), "unpacking "},
		"no gzip":                    {file("no.gz", []byte(strings.Repeat("garbage", 10))), "no.gz: gzip: invalid header"},
		"a gzip file that was cut":   {file("cut.gz", zipped(t, line)[:30]), "unexpected EOF"},
		"lines that are long enough": {file("ok.log", []byte(line+strings.Repeat("x", 1<<20-100)+"\n"+line)), ""},
		"one that is gone":           {filepath.Join(dir, "gone.log"), ""},
	} {
		var out bytes.Buffer
		err := Log{c.path}.Read(t.Context(), &Options{}, nil, &out, &out)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for text, want := range map[string]string{"123456": "larger than", "12345": "<nil>"} {
		if got, err := io.ReadAll(&bounded{r: strings.NewReader(text), left: 5}); !strings.Contains(fmt.Sprint(err), want) || len(got) > 5 {
			t.Errorf("a file that becomes large: %v, %d bytes are read", err, len(got))
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%v is left besides the temporary files (%v)", left, err)
	}
}

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }
