package planfile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
	"github.com/podctl/podctl/runtime/plan"
)

// tamperings calls with for every document that differs in one value: another text, number or boolean, or an entry of a
// list or map that is missing or repeated.
func tamperings(t *testing.T, text []byte, with func(what string, changed []byte)) {
	t.Helper()
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	emit := func(what string) {
		changed, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		with(what, changed)
	}
	tamper(doc, "", func(any) {}, emit)
}

// tamper changes a value in its place, calls emit, and restores it.
func tamper(value any, path string, set func(any), emit func(string)) {
	try := func(what string, other any) {
		set(other)
		emit(path + " " + what)
		set(value)
	}
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			tamper(child, path+"."+key, func(v any) { value[key] = v }, emit)
			delete(value, key)
			emit(path + "." + key + " is gone")
			value[key] = child
		}
	case []any:
		for i, child := range value {
			tamper(child, fmt.Sprintf("%s[%d]", path, i), func(v any) { value[i] = v }, emit)
			try(fmt.Sprintf("without %d", i), append(append([]any{}, value[:i]...), value[i+1:]...))
			try(fmt.Sprintf("with %d twice", i), append(append([]any{}, value...), child))
		}
	case string:
		try("is another text", value+"evil")
		try("is a path", "/etc/shadow")
	case float64:
		try("is another number", value+1)
	case bool:
		try("is the opposite", !value)
	}
}

// TestTamperedPlanFile checks that a changed file is refused, or executed exactly like the unchanged one.
func TestTamperedPlanFile(t *testing.T) {
	replaced := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	replaced.Desired = modeltest.Load(t,
		strings.Replace(modeltest.WebPod, "{name: app, image: i:1}", "{name: app, image: i:2, command: [run]}", 1))
	held := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	ended := &held.Containers[1]
	ended.State, ended.ExitCode, ended.FinishedAt = model.Exited, 1, modeltest.Noon().Add(-time.Second)
	held.Memory.Backoffs["app"] = model.Backoff{Duration: 40 * time.Second, LastUpdate: modeltest.Noon().Add(-time.Minute)}
	for name, w := range map[string]*modeltest.World{
		"a start":       modeltest.New(modeltest.Load(t, modeltest.WebPod)),
		"a replacement": replaced,
		"a hold":        held,
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(w)
			text, err := json.Marshal(savedCopy(t, in))
			if err != nil {
				t.Fatal(err)
			}
			want := executed(t, in, text)
			if want == "" {
				t.Fatal("the plan as it was saved is refused")
			}
			refused := 0
			tamperings(t, text, func(what string, changed []byte) {
				switch got := executed(t, in, changed); got {
				case "":
					refused++
				case want:
				default:
					t.Errorf("%s: executed is\n%s\nand not\n%s", what, got, want)
				}
			})
			if refused < 10 {
				t.Errorf("%d changes are refused", refused)
			}
		})
	}
}

// executed describes what a file makes podctl do; empty if the file is refused.
func executed(t *testing.T, in *plan.Input, file []byte) string {
	t.Helper()
	saved := &plan.Plan{}
	if json.Unmarshal(file, saved) != nil {
		return ""
	}
	p, err := MakeAgain(in, saved)
	if err != nil {
		return ""
	}
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRemovedStepsAreReported checks that the error names the missing step.
func TestRemovedStepsAreReported(t *testing.T) {
	in := inputOf(modeltest.New(modeltest.Load(t, modeltest.WebPod)))
	saved := savedCopy(t, in)
	taken := saved.Steps[0].ID
	saved.Steps = saved.Steps[1:]
	if _, err := MakeAgain(in, saved); err == nil || !strings.Contains(err.Error(), "step "+taken+" is not in the saved plan") {
		t.Errorf("error %v", err)
	}
}

// TestDocumentsAreBounded checks that an error names the line, and that a document that would grow is not decoded.
func TestDocumentsAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"cut off":      {"{\n\"kind\": \"Plan\",\n", "line 3: it is not valid JSON, or is truncated: unexpected end"},
		"no JSON":      {"{\n}\nx", "line 3: it is not valid JSON, or is truncated: invalid character 'x'"},
		"another type": {"{\"pod\": {},\n \"steps\": [\n{\"id\": 1}]}", "line 3: steps.id cannot be a number"},
		"a time":       {`{"observedAt": "yesterday"}`, "a value in it cannot be read: parsing time"},
		"many values": {
			"{\"steps\": [\n" + strings.Repeat("{},\n", model.MaxDocumentValues) + "{}]}",
			fmt.Sprintf("holds more than %d values", model.MaxDocumentValues),
		},
		"many characters": {`{"kind": "` + strings.Repeat(`,[{\"`, model.MaxDocumentValues) + `"}`, ""},
	} {
		err := model.DecodeDocument([]byte(c.text), &plan.Plan{})
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
