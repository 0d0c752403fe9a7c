package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/objects"
)

// Objects returns a table of stored objects of one kind. users returns the users of an object: workloads as KIND/NAME,
// pods without a workload, and the pods of a Service. A nil users omits the column.
func (v *Lists) Objects(
	kind string, all []*podspec.Object, users func(*podspec.Object) []string,
) (header []string, rows []Row) {
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

// Endpoints returns a table of Services with their ready and not ready endpoints.
func (v *Lists) Endpoints(
	services []*podspec.Object, endpoints func(i int) (ready, notReady []string),
) (header []string, rows []Row) {
	for i, o := range services {
		ready, notReady := endpoints(i)
		rows = append(rows, v.objectRow(o, []string{joined(ready), joined(notReady)}, func(*Row) {}))
	}
	return v.header("NAME", "ENDPOINTS", "NOT READY", "AGE"), rows
}

// objectRow returns a row with the cells of a kind between the name and the age. The age counts from when the object
// was first stored.
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
		size, modes := ClaimSpec(o.Claim)
		return []string{string(o.Claim.Status.Phase), size, strings.Join(modes, ",")}
	case o.Service != nil:
		return serviceCells(o.Service)
	}
	return []string{fmt.Sprint(len(o.ConfigMap.Data) + len(o.ConfigMap.BinaryData))}
}

// ClaimSpec returns the requested size and the access modes of a claim. They are empty if the claim does not set them.
func ClaimSpec(c *v1.PersistentVolumeClaim) (size string, modes []string) {
	if quantity, ok := c.Spec.Resources.Requests[v1.ResourceStorage]; ok {
		size = quantity.String()
	}
	for _, mode := range c.Spec.AccessModes {
		modes = append(modes, string(mode))
	}
	return size, modes
}

// serviceCells returns the addresses and ports of a Service, as kubectl prints them. A load balancer has the addresses
// of the node, shown as <node>.
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
	external := table.NoValue
	switch s.Spec.Type {
	case v1.ServiceTypeLoadBalancer:
		external = "<node>"
	case v1.ServiceTypeExternalName:
		external = s.Spec.ExternalName
	case v1.ServiceTypeClusterIP, v1.ServiceTypeNodePort:
	}
	clusterIPs := cmp.Or(strings.Join(s.Spec.ClusterIPs, ","), table.NoValue)
	return []string{string(s.Spec.Type), clusterIPs, external, joined(ports)}
}

func joined(names []string) string {
	if len(names) == 0 {
		return table.NoValue
	}
	return strings.Join(names, ",")
}

// ObjectDocument returns an object as kubectl prints it. The values of a Secret are replaced.
func ObjectDocument(o *podspec.Object) any {
	if o.Secret == nil {
		return o.API()
	}
	s := o.Secret.DeepCopy()
	s.Data, s.StringData = nil, map[string]string{}
	for key := range o.Secret.Data {
		s.StringData[key] = objects.Redacted
	}
	return s
}
