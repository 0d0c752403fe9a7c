package kubeletconf

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/podspec/fields"
	"github.com/podctl/podctl/podspec/input"
)

// Result is what happens to a setting of a kubelet in podctl.
type Result string

// Results of settings.
const (
	// Same is what podctl does without a setting.
	Same Result = "same"
	// Honoured has a setting of podctl.
	Honoured Result = "honoured"
	// NoEffect is not in podctl; the note has what podctl does in its place.
	NoEffect Result = "no effect"
	// Refused means that podctl cannot be used with it.
	Refused Result = "refused"
	// Invalid is unknown or not valid. A kubelet would not start with it.
	Invalid Result = "invalid"
)

// Finding is the result for one setting.
type Finding struct {
	// Name is the field of KubeletConfiguration, or the flag.
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Origin string `json:"origin"`
	Result Result `json:"result"`
	// Setting is the flag of podctl for it.
	Setting string `json:"setting,omitempty"`
	Note    string `json:"note,omitempty"`
}

// Setting is a flag of podctl and its value.
type Setting struct{ Name, Value string }

// Report is the result for all settings of a kubelet.
type Report struct {
	Findings []Finding `json:"findings"`
	// Settings are those that podctl needs for the same effect.
	Settings []Setting `json:"-"`
	// Notes lists what was not examined.
	Notes []string `json:"notes,omitempty"`
}

// Examine examines the settings of the files.
func (f *Files) Examine() Report {
	r := Report{Notes: slices.Concat(f.Notes, f.k3sNotes(), f.commandNotes())}
	for _, s := range f.settings() {
		if s.row != nil {
			s.text = cmp.Or(s.text, s.row.Empty)
		}
		if system, found := s.withoutSystem(); found {
			r.Findings = append(r.Findings, system)
		}
		finding := s.examine()
		if finding.Result == Honoured {
			r.add(s.row, s.text)
			if shown := (Setting{s.row.Setting, s.text}).String(); shown != s.text {
				r.Notes = append(r.Notes, s.name+": the configuration hides parts of its value, replace them: "+shown)
			}
		}
		r.Findings = append(r.Findings, finding)
	}
	return r
}

// withoutSystem removes what podctl does not limit from enforceNodeAllocatable: the system and the kubelet.
func (s *setting) withoutSystem() (removed Finding, found bool) {
	if s.row == nil || s.row.Setting != enforceFlag {
		return removed, false
	}
	kept, others := []string{}, []string{}
	for one := range strings.SplitSeq(s.text, ",") {
		switch one = strings.TrimSpace(one); one {
		case "system-reserved", "kube-reserved", "system-reserved-compressible", "kube-reserved-compressible":
			others = append(others, one)
		default:
			kept = append(kept, one)
		}
	}
	if len(others) == 0 {
		return removed, false
	}
	removed = Finding{
		Name: s.name, Value: strings.Join(others, ","), Origin: s.origin, Result: NoEffect, Note: noEnforced,
	}
	// A kubelet that does not limit the pods does not limit them in podctl either.
	s.text = cmp.Or(strings.Join(kept, ","), "none")
	return removed, true
}

// withheld stands for a value that can be secret.
const withheld = "(not shown)"

func (s *setting) examine() Finding {
	f := Finding{Name: s.name, Value: s.text, Origin: s.origin}
	row := s.row
	if row == nil {
		f.Value, f.Result, f.Note = "", Invalid, "A kubelet 1.36 does not have this setting."
		switch {
		case s.problem != nil:
			f.Note = "It " + s.problem.Error() + "."
		case s.note != "":
			f.Result, f.Note = NoEffect, s.note
		}
		return f
	}
	f.Note = row.Note
	if row.Secret {
		f.Value = withheld
	}
	switch {
	case s.problem != nil:
		f.Result, f.Note = Invalid, "It "+s.problem.Error()+"."
	case row.Path == "staticPodURL" && !input.IsURL(s.text):
		f.Result, f.Note = Invalid, "It must be a URL with http or https."
	case row.isSame(s.text) || row.namesFile() || s.text == "": // An empty flag means the default.
		f.Result, f.Note = Same, ""
	case row.Support == fields.Honoured:
		f.Result, f.Setting = Honoured, row.Setting
	case row.Support == fields.Refused:
		f.Result = Refused
	default:
		f.Result = NoEffect
	}
	return f
}

// add adds the setting of podctl for a row.
func (r *Report) add(row *Row, text string) {
	if row.Setting == "node-name" {
		text = strings.ToLower(strings.TrimSpace(text)) // kubelet: GetHostname
	}
	if row.Path == "serializeImagePulls" {
		// Without a limit of its own, a kubelet that pulls in parallel has none.
		text = map[string]string{"true": "1", "false": "0"}[text]
	}
	for i := range r.Settings {
		s := &r.Settings[i]
		switch {
		case s.Name != row.Setting:
		case s.Name == "system-reserved":
			s.Value = sum(s.Value, text)
			return
		case s.Name == "max-parallel-pulls":
			// serializeImagePulls says less than maxParallelImagePulls, which comes first by its name.
			return
		}
	}
	r.Settings = append(r.Settings, Setting{row.Setting, text})
}

// sum adds two lists of resources. An invalid quantity stays, so that podctl reports it.
func sum(a, b string) string {
	names, quantities := []string{}, map[string]string{}
	for one := range strings.SplitSeq(a+","+b, ",") {
		name, value, _ := strings.Cut(one, "=")
		before, known := quantities[name]
		if !known {
			names = append(names, name)
		}
		quantities[name] = added(before, value)
	}
	for i, name := range names {
		names[i] = name + "=" + quantities[name]
	}
	return strings.Join(names, ",")
}

func added(a, b string) string {
	if a == "" {
		return b
	}
	first, err := resource.ParseQuantity(a)
	second, err2 := resource.ParseQuantity(b)
	if err != nil || err2 != nil {
		return a + "+" + b
	}
	first.Add(second)
	return first.String()
}

// Change changes the findings with a setting of podctl.
func (r *Report) Change(setting string, result Result, note string) {
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Setting == setting {
			f.Result, f.Note = result, note
		}
	}
}

// Count returns the number of findings with a result.
func (r *Report) Count(result Result) (n int) {
	for i := range r.Findings {
		if r.Findings[i].Result == result {
			n++
		}
	}
	return n
}

// Usable reports whether podctl can take the place of the kubelet.
func (r *Report) Usable() bool { return r.Count(Refused)+r.Count(Invalid) == 0 }

// String returns the value of a setting without its secret parts.
func (s Setting) String() string {
	if s.Name == "sources" && input.IsURL(s.Value) {
		if known, err := input.URLName(s.Value); err == nil {
			return known
		}
		return withheld
	}
	return s.Value
}
