package flags

import (
	"fmt"
	"strings"
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

func TestTemplateOutput(t *testing.T) {
	value := ""
	p := &TemplateOutput{Choice: Output(&value, "json")}
	for _, text := range []string{"jsonpath={.a}", "custom-columns=A:.a", "jsonpath-file=f"} {
		if err := p.Set(text); err != nil || value != text {
			t.Errorf("%v %q", err, value)
		}
	}
	for _, text := range []string{"xml", "jsonpath", "jsonpath=", "xml=a"} {
		if err := p.Set(text); err == nil ||
			!strings.HasPrefix(err.Error(), "must be one of text, json, jsonpath=TEMPLATE, custom-columns=") {
			t.Error(err)
		}
	}
	want := []string{"text", "json", "jsonpath=", "jsonpath-file=", "custom-columns=", "custom-columns-file="}
	if diff := cmp.Diff(want, p.Words()); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		"jsonpath={.a=b}": "jsonpath {.a=b} false", "jsonpath-file=x": "jsonpath x true", "wide": "  false",
	} {
		format, template, isFile := SplitTemplate(text)
		if got := fmt.Sprint(format, " ", template, " ", isFile); got != want {
			t.Errorf("%s: %s", text, got)
		}
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
