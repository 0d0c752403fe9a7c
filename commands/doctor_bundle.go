package commands

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/podctl/podctl/commands/inspect"
	"github.com/podctl/podctl/commands/lifecycle"
	"github.com/podctl/podctl/commands/program"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// bundle collects the files of the archive. None of them has values of Secrets.
type bundle struct {
	redactor *redaction.Redactor
	at       time.Time
	names    []string
	texts    map[string][]byte
	// problems lists the missing content, with the reasons.
	problems []error
}

// writeBundle writes the archive for a bug report. It leaves out unavailable content and lists it in problems.txt,
// because bug reports are written when something does not work.
func writeBundle(
	ctx context.Context, sess *session.Session, file string, engine *runtime.Engine, doc *doctorDocument,
) error {
	applied, unreadable, err := state.Applied(sess.Flags.Layout())
	b := &bundle{
		redactor: session.NewRedactor(applied, &podspec.Desired{Objects: sess.Objects().Secrets()}),
		at:       doc.TakenAt,
		texts:    map[string][]byte{},
		problems: append(unreadable, err),
	}
	b.addDocument("doctor.json", doc, nil) // The document has no values of Secrets.
	versions := program.ClientVersion()
	answers := engine != nil && doc.Facts.Runtime.Problem == ""
	if answers {
		b.problems = append(b.problems, versions.AddRuntime(ctx, sess))
	}
	b.addDocument("version.json", versions, b.redactor)
	for _, p := range applied {
		name := path.Join("checkpoints", string(p.Desired.Pod.UID)+".json")
		b.addDocument(name, p.Checkpoint.WithoutSecrets(), b.redactor)
	}
	happened, err := inspect.EventsDocument(sess)
	b.addDocument("events.json", happened, b.redactor)
	b.problems = append(b.problems, err)
	if answers {
		b.addPods(ctx, engine, applied)
	}
	if err = errors.Join(b.problems...); err != nil {
		b.add("problems.txt", []byte(b.redactor.Text(err.Error())+"\n"))
	}
	text, err := b.archive()
	if err == nil {
		err = safefs.WriteFile(file, text)
	}
	return safefs.Wrapf(err, "writing the bundle")
}

// addPods adds the observed state of the pods and their plans.
func (b *bundle) addPods(ctx context.Context, engine *runtime.Engine, applied []state.AppliedPod) {
	var plans []*plan.Plan
	var recording snapshot.Recording
	for _, p := range applied {
		one, err := engine.Pods.Plan(ctx, p.Desired, plan.Options{})
		if err == nil {
			plans = append(plans, one)
		}
		b.problems = append(b.problems, err)
		observed, err := engine.Observer.Snapshot(ctx, p.Desired)
		if err == nil {
			recording = append(recording, observed)
		}
		b.problems = append(b.problems, err)
	}
	var text bytes.Buffer
	b.problems = append(b.problems, recording.Write(&text))
	b.add("snapshot.json", redactJSON(b.redactor, text.Bytes()))
	b.addDocument("plan.json", lifecycle.PlanDocument(plans), b.redactor)
}

func (b *bundle) addDocument(name string, value any, redactor *redaction.Redactor) {
	var text bytes.Buffer
	if err := terminal.WriteDocument(&text, "json", value); err != nil {
		b.problems = append(b.problems, fmt.Errorf("%s: %w", name, err))
		return
	}
	b.add(name, redactJSON(redactor, text.Bytes()))
}

func (b *bundle) add(name string, text []byte) {
	b.names = append(b.names, name)
	b.texts[name] = text
}

// archive packs the files into one directory. Only the owner can read them.
func (b *bundle) archive() ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	for _, name := range b.names {
		header := &tar.Header{
			Name:    path.Join("podctl-bundle", name),
			Mode:    0o600,
			Size:    int64(len(b.texts[name])),
			ModTime: b.at,
		}
		if err := packed.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := packed.Write(b.texts[name]); err != nil {
			return nil, err
		}
	}
	err := errors.Join(packed.Close(), zipped.Close())
	return out.Bytes(), err
}

// redactJSON removes values of Secrets from the strings of a JSON document. Keys, numbers, names, times and states
// stay, so that the document is valid whatever the values are.
func redactJSON(r *redaction.Redactor, document []byte) []byte {
	if r == nil {
		return document
	}
	d := &jsonRedaction{redactor: r, inside: []string{""}, numbers: snapshot.NumberKeys()}
	// A token is a string, with the colon if it is a key, or a bracket.
	token := regexp.MustCompile(`"(?:[^"\\]|\\.)*"(?:\s*:)?|[{}\[\]]`)
	return token.ReplaceAllFunc(document, d.token)
}

// jsonRedaction is the state while a JSON document is redacted.
type jsonRedaction struct {
	redactor *redaction.Redactor
	// key is the last key. inside are the keys of the surrounding objects and lists.
	key    string
	inside []string
	// numbers are the keys of numbers that are strings of digits.
	numbers map[string]bool
}

func (d *jsonRedaction) token(found []byte) []byte {
	switch found[0] {
	case '{', '[':
		d.inside = append(d.inside, d.key)
		return found
	case '}', ']':
		if last := len(d.inside) - 1; last > 0 {
			d.key, d.inside = d.inside[last], d.inside[:last]
		}
		return found
	}
	if quoted, isKey := bytes.CutSuffix(found, []byte(":")); isKey {
		d.key = ""
		_ = json.Unmarshal(bytes.TrimSpace(quoted), &d.key) // podctl's own keys are always valid strings.
		return found
	}
	return d.text(found)
}

// text redacts a string value.
func (d *jsonRedaction) text(found []byte) []byte {
	var text string
	if json.Unmarshal(found, &text) != nil {
		return []byte(`"` + redaction.Hidden + `"`)
	}
	if d.isOwn(text) {
		return found
	}
	clean := d.redactor.Text(text)
	if clean == text {
		return found
	}
	quoted, err := json.Marshal(clean)
	if err != nil {
		return []byte(`"` + redaction.Hidden + `"`)
	}
	return quoted
}

// isOwn reports whether podctl or Kubernetes chose the text, judging by field and form: a name, a time or a state. In
// maps that users or other programs fill, it always returns false.
func (d *jsonRedaction) isOwn(text string) bool {
	for _, outer := range d.inside {
		switch outer {
		case "annotations", "labels", "data", "stringData", "binaryData", "info", "env", "envs", "args", "command":
			return false
		}
	}
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return true
	}
	if d.numbers[d.key] && strings.Trim(strings.TrimPrefix(text, "-"), "0123456789") == "" {
		return true
	}
	switch d.key {
	case "kind", "type", "state", "reason", "phase", "status", "result", "verdict":
		return strings.Trim(text, asciiLetters+"_") == ""
	case "apiVersion", "name", "namespace", "pod", "container", "podctl",
		"uid", "id", "containerID", "containerId", "podSandboxId", "sandboxID":
		return strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-./:") == ""
	}
	return false
}

const asciiLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
