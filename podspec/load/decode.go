package load

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// decodeInto decodes a document strictly: every field must exist, occur once and have the right type. It reports all
// other fields and decodes the rest.
func (r *report) decodeInto(into any) {
	strict, err := strictly(r.JSON, into)
	if err != nil {
		v := reflect.ValueOf(into).Elem()
		v.SetZero()
		if strict, err = strictly(r.dropMistyped(v.Type()), into); err != nil {
			r.refuseValue("", "cannot be read as a "+v.Type().Name())
		}
	}
	for _, one := range strict {
		r.strictProblem(one, into)
	}
}

func strictly(text []byte, into any) (strict []error, err error) {
	return kjson.UnmarshalStrict(text, into, kjson.DisallowUnknownFields, kjson.DisallowDuplicateFields)
}

// strictProblem reports an unknown or repeated field. The field that was probably meant is then not reported as
// missing.
func (r *report) strictProblem(err error, into any) {
	path := ""
	if field := kjson.FieldError(nil); errors.As(err, &field) {
		path = field.FieldPath()
	}
	if strings.HasPrefix(err.Error(), "duplicate field") {
		r.refuseValue(path, "is given twice")
		return
	}
	near := fieldpath.Nearest(into, path)
	if near == "" {
		r.refuseValue(path, "unknown field")
		return
	}
	r.refuseValue(path, fmt.Sprintf("unknown field; did you mean %s?", near))
	meant := fieldpath.Split(fieldpath.Join(fieldpath.Parent(path), near))
	if !r.Defines(meant...) {
		r.ignore(meant)
	}
}
