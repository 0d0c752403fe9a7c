package flags

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChoice(t *testing.T) {
	value := ""
	c := Output(&value, "json")
	if c.String() != "text" {
		t.Errorf("it starts as %q", c)
	}
	if err := c.Set("xml"); err == nil || err.Error() != "must be one of text, json" {
		t.Error(err)
	}
	if err := c.Set("json"); err != nil || c.String() != "json" || value != "json" {
		t.Errorf("%v %q %q", err, c, value)
	}
	if err := Pull(&value).Set(""); err != nil {
		t.Errorf("--pull without a word: %v", err)
	}
	if diff := cmp.Diff([]string{"always", "missing", "never"}, Pull(&value).Words()); diff != "" {
		t.Error(diff)
	}
}

func TestPathOutput(t *testing.T) {
	value := ""
	p := &PathOutput{Choice: Output(&value, "json")}
	if err := p.Set("jsonpath={.a}"); err != nil || value != "jsonpath={.a}" {
		t.Errorf("%v %q", err, value)
	}
	if err := p.Set("xml"); err == nil || err.Error() != "must be one of text, json, jsonpath=TEMPLATE" {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"text", "json", JSONPathPrefix}, p.Words()); diff != "" {
		t.Error(diff)
	}
}

func TestLimit(t *testing.T) {
	for text, want := range map[string][2]bool{"2s": {true, true}, "0": {true, false}, "-1s": {}, "soon": {}} {
		for i, required := range []bool{false, true} {
			var value time.Duration
			if err := (&Limit{Value: &value, Required: required}).Set(text); (err == nil) != want[i] {
				t.Errorf("%s, required %v: %v", text, required, err)
			}
		}
	}
}
