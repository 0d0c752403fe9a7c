package commands

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// letters are the characters of random secrets. Each encoding escapes some of them.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$&'\"\\<>/=+-_.:@%;,~^*()[]{}|? \té"

func randomLeaf(random *rand.Rand) string {
	all := []rune(letters)
	leaf := make([]rune, 16+random.IntN(48))
	for i := range leaf {
		leaf[i] = all[random.IntN(len(all))]
	}
	return "Z" + string(leaf) + "Q"
}

// secretOf returns a Secret value that contains a leaf.
func secretOf(random *rand.Rand, leaf string) string {
	quoted, _ := json.Marshal(leaf) // a string can always be encoded
	auth := base64.StdEncoding.EncodeToString([]byte("robot:" + leaf))
	switch random.IntN(8) {
	case 0:
		return `{"user":"web","nested":{"password":` + string(quoted) + `}}`
	case 1:
		return `{"auths":{"registry.example.com":{"auth":"` + auth + `"}}}`
	case 2:
		return "host: db.example.com\npassword: " + string(quoted) + "\nlist:\n- a\n"
	case 3:
		return "postgres://web:" + url.QueryEscape(leaf) + "@db.example.com:5432/app"
	case 4:
		return "DB_HOST=db.example.com\nDB_PASSWORD=" + leaf + "\n"
	case 5:
		return "first line of it\n" + leaf + "\n"
	case 6:
		return leaf + "\n"
	}
	return leaf
}

// quotings returns the forms that redaction must recognise: plain text, quoted by Go, JSON, URL, base64, a shell or
// YAML, and split over two lines.
func quotings() []func(string) string {
	return []func(string) string{
		func(s string) string { return s },
		func(s string) string { return fmt.Sprintf("%q", s) },
		func(s string) string { return fmt.Sprintf("%+q", s) },
		func(s string) string { text, _ := json.Marshal(s); return string(text) }, // a string can always be encoded
		func(s string) string { return "{\"error\":" + fmt.Sprintf("%q", s) + "}" },
		func(s string) string { return "exec: " + fmt.Sprintf("%q", "sh -c "+s) + ": not found" },
		url.QueryEscape,
		url.PathEscape,
		func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("user:" + s)) },
		func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
		func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" },
		func(s string) string { return s[:len(s)/2] + "\n" + s[len(s)/2:] },
	}
}

// reported returns a text as each kind of output prints it.
func reported(t *testing.T, d *podspec.Desired, text string) []string {
	t.Helper()
	checkpoint := &state.Checkpoint{Memory: model.Memory{Applied: d}}
	redactor := checkpoint.Redactor(nil)
	var history state.History
	history.Add(state.PodEvent{Message: redactor.Text(text)})
	observed := &snapshot.Pod{Checkpoint: checkpoint, Containers: []snapshot.Container{
		{Status: &runtimeapi.ContainerStatus{Message: strings.ToValidUTF8(text, "\uFFFD")}, TerminationMessage: text},
	}}
	var recorded, document, document2 bytes.Buffer
	if err := (snapshot.Recording{observed}).Write(&recorded); err != nil {
		t.Fatal(err)
	}
	words := map[string]string{"message": redactor.Text(text)}
	if err := errors.Join(terminal.WriteDocument(&document, "json", words), terminal.WriteDocument(&document2, "yaml", words)); err != nil {
		t.Fatal(err)
	}
	inside, err := json.Marshal(map[string]string{"message": text})
	if err != nil {
		t.Fatal(err)
	}
	bundled := redactJSON(session.NewRedactor([]state.AppliedPod{{Desired: d, Checkpoint: checkpoint}}), inside)
	return []string{
		history.Events[0].Message, recorded.String(), document.String(), document2.String(), string(bundled),
		redactor.Error(errors.New(text)).Error(), terminal.Printable(redactor.Text(text)),
	}
}

// FuzzRedact checks the guarantee of redaction. The value of a Secret can be a text, a line of it, or the value of a
// key in JSON, YAML, a docker configuration, a URL or settings.
// A text repeats the value in two nested forms and may be cut off anywhere. Even then, no output may contain twelve
// bytes of the value, plain or quoted.
func FuzzRedact(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(seed, byte(seed), byte(seed/8), uint16(0), uint16(0))
	}
	f.Add(uint64(1), byte(1), byte(0), uint16(0), uint16(30))
	f.Add(uint64(2), byte(3), byte(1), uint16(25), uint16(0))
	f.Fuzz(func(t *testing.T, seed uint64, first, second byte, before, after uint16) {
		random := rand.New(rand.NewPCG(seed, 1))
		leaf := randomLeaf(random)
		d := &podspec.Desired{Pod: &v1.Pod{}, Objects: podspec.Objects{Secrets: map[string]*v1.Secret{
			"s": {Data: map[string][]byte{"k": []byte(secretOf(random, leaf))}},
		}}}
		ways := quotings()
		once := ways[int(first)%len(ways)](leaf)
		twice := ways[int(second)%len(ways)](once)
		head, tail := int(before)%(len(twice)+1), int(after)%(len(twice)+1)
		for _, text := range []string{
			"it failed: " + twice + " (it did)", twice, "it failed: " + twice[:len(twice)-tail],
			twice[head:] + " is it", "it is " + twice[:len(twice)-tail] + "…",
		} {
			for i, out := range reported(t, d, text) {
				for _, part := range runsOf(leaf, ways) {
					if strings.Contains(out, part) {
						t.Fatalf("output %d has %q of %q: %q", i, part, leaf, out)
					}
				}
			}
		}
	})
}

// runsOf returns all runs of twelve bytes of a leaf, plain and quoted.
func runsOf(leaf string, ways []func(string) string) []string {
	var runs []string
	for i := 1; i+12 < len(leaf); i++ {
		run := leaf[i : i+12]
		runs = append(runs, run, strings.Trim(ways[1](run), `"`), strings.Trim(ways[3](run), `"`), ways[6](run))
	}
	slices.Sort(runs)
	return slices.Compact(runs)
}
