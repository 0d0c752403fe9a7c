package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/plan/diff"
)

// ObjectChange is what becomes of a stored ConfigMap, Secret, claim or Service, as a document.
type ObjectChange struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Object     struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"object"`
	Outcome objects.Outcome `json:"outcome"`
	Fields  []string        `json:"fields,omitempty"`
	// Changes are the values of a ConfigMap that differ.
	Changes []diff.Change  `json:"changes,omitempty"`
	Pods    []model.PodRef `json:"pods"`
}

// ObjectChangeOf is the document of a change, with the applied pods that take the object.
func ObjectChangeOf(c *objects.Change, users []*podspec.Desired) ObjectChange {
	doc := ObjectChange{APIVersion: model.APIVersion, Kind: "ObjectChange", Outcome: c.Outcome, Fields: c.Fields, Pods: []model.PodRef{}}
	for _, t := range c.Texts {
		doc.Changes = append(doc.Changes, diff.Change{Path: t.Path, Before: t.Before, After: t.After})
	}
	doc.Object.Kind, doc.Object.Namespace, doc.Object.Name = c.Key.Kind, c.Key.Namespace, c.Key.Name
	for _, d := range users {
		doc.Pods = append(doc.Pods, model.RefOf(d.Pod))
	}
	return doc
}

// FutureOutcome says what would become of an object, and which fields differ.
func FutureOutcome(c *objects.Change) string {
	text := fmt.Sprintf("%s would be %s", c.Key, c.Outcome)
	if c.Outcome == objects.Unchanged {
		text = fmt.Sprintf("%s is %s", c.Key, c.Outcome)
	}
	if len(c.Fields) > 0 {
		text += ": " + strings.Join(c.Fields, ", ")
	}
	return text
}

// FutureTexts are the values of a ConfigMap that would differ, below the line of FutureOutcome, as
// a plan of a pod shows values.
func FutureTexts(c *ObjectChange, colors terminal.Colors) string {
	var b strings.Builder
	v := Plan{Colors: colors}
	for i, one := range changesOf(c.Changes) {
		if i == maxFields {
			v.writeDetail(&b, planDetail{text: fmt.Sprintf("… and %d more (-o json has all)", len(c.Changes)-i)})
			break
		}
		row := planRow{details: []planDetail{one.detail()}}.clean()
		v.writeDetail(&b, row.details[0])
	}
	return b.String()
}

// Objects has one row for each stored object. All are of one kind. Users are what uses an object: workloads as KIND/NAME, pods of none,
// and the pods behind a Service. Nil leaves the column out.
func (v *Lists) Objects(kind string, all []*podspec.Object, users func(*podspec.Object) []string) (header []string, rows []Row) {
	header = slices.Concat([]string{"NAME"}, objectColumns(kind), []string{"AGE"})
	switch {
	case users == nil:
	case kind == podspec.KindService:
		header = append(header, "PODS")
	default:
		header = append(header, "USED BY")
	}
	for _, o := range all {
		rows = append(rows, v.objectRow(o, cells(o), func(row *Row) {
			if users != nil {
				row.Add(joined(users(o)))
			}
		}))
	}
	return v.header(header...), rows
}

// Endpoints has one row for each Service, with the endpoints that are ready and those that are not.
func (v *Lists) Endpoints(services []*podspec.Object, endpoints func(i int) (ready, notReady []string)) (header []string, rows []Row) {
	for i, o := range services {
		ready, notReady := endpoints(i)
		rows = append(rows, v.objectRow(o, []string{joined(ready), joined(notReady)}, func(*Row) {}))
	}
	return v.header("NAME", "ENDPOINTS", "NOT READY", "AGE"), rows
}

// objectRow has the cells of a kind between the name and the age, which is that of the object as it was stored first.
func (v *Lists) objectRow(o *podspec.Object, cells []string, more func(row *Row)) Row {
	return v.row(o.Meta(), func(row *Row) {
		row.Add(o.Meta().Name)
		row.Add(cells...)
		row.Add(v.since(o.Meta().CreationTimestamp.Time))
		more(row)
	})
}

func objectColumns(kind string) []string {
	switch kind {
	case podspec.KindSecret:
		return []string{"TYPE", "DATA"}
	case podspec.KindClaim:
		return []string{"STATUS", "CAPACITY", "ACCESS MODES"}
	case podspec.KindService:
		return []string{"TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)"}
	}
	return []string{"DATA"}
}

func cells(o *podspec.Object) []string {
	switch {
	case o.Secret != nil:
		return []string{string(o.Secret.Type), fmt.Sprint(len(o.Secret.Data))}
	case o.Claim != nil:
		return claimCells(o)
	case o.Service != nil:
		return serviceCells(o.Service)
	}
	return []string{fmt.Sprint(len(o.ConfigMap.Data) + len(o.ConfigMap.BinaryData))}
}

func claimCells(o *podspec.Object) []string {
	capacity := ""
	if size, ok := o.Claim.Spec.Resources.Requests[v1.ResourceStorage]; ok {
		capacity = size.String()
	}
	var modes []string
	for _, mode := range o.Claim.Spec.AccessModes {
		modes = append(modes, string(mode))
	}
	return []string{string(o.Claim.Status.Phase), capacity, strings.Join(modes, ",")}
}

// serviceCells are how a Service is reached, as kubectl prints it. The node's own addresses stand for that of a load balancer.
func serviceCells(s *v1.Service) []string {
	var ports []string
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		text := fmt.Sprint(p.Port)
		if p.NodePort != 0 {
			text += fmt.Sprintf(":%d", p.NodePort)
		}
		ports = append(ports, text+"/"+string(p.Protocol))
	}
	external := terminal.NoValue
	switch s.Spec.Type {
	case v1.ServiceTypeLoadBalancer:
		external = "<node>"
	case v1.ServiceTypeExternalName:
		external = s.Spec.ExternalName
	case v1.ServiceTypeClusterIP, v1.ServiceTypeNodePort:
	}
	return []string{string(s.Spec.Type), cmp.Or(strings.Join(s.Spec.ClusterIPs, ","), terminal.NoValue), external, joined(ports)}
}

func joined(names []string) string {
	if len(names) == 0 {
		return terminal.NoValue
	}
	return strings.Join(names, ",")
}

// ObjectDocument is an object as kubectl prints it, with a mark in the place of each value of a
// Secret.
func ObjectDocument(o *podspec.Object) any {
	switch {
	case o.Secret != nil:
		s := o.Secret.DeepCopy()
		s.Data, s.StringData = nil, map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(o.Secret.Data)) {
			s.StringData[key] = objects.Redacted
		}
		return s
	case o.Claim != nil:
		return o.Claim
	case o.Service != nil:
		return o.Service
	}
	return o.ConfigMap
}
