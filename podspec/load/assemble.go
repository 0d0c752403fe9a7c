package load

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/fields"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/quote"
)

// assembly collects the objects of all sources and builds pods from them. Its reading has the combined contents of all
// sources.
type assembly struct {
	reading

	// sources holds the names of the sources.
	sources []string
	// names maps kind and name to an object.
	names map[string]*object
	// uids maps a given or derived uid to a pod.
	uids map[types.UID]*object
	// expanded counts the bytes that pods take from objects.
	expanded int64
	// failed is the error of reading stored objects for pods.
	failed error
}

// reading is the content of sources. Each object is decoded, defaulted and validated by itself, without the objects
// that it refers to.
type reading struct {
	options

	// documents holds all documents that could be parsed.
	documents []*document.Document
	objects   []*object
	// problems holds the problems of whole sources, and of documents that cannot be parsed. The problems of the other
	// documents are in reports.
	problems []document.Problem
	reports  []*report
	notes    []document.Note
	skipped  []document.Skipped
	total
}

// options defines how sources are read.
type options struct {
	loader Loader
	// namespace is the namespace for objects of the current source that have none.
	namespace string
	// extra is set while the sources of --configmap are read.
	extra bool
	// table classifies fields. It is nil until a pod needs it.
	table *fields.Table
}

// total counts the documents and values that were read. full is set above a limit.
type total struct {
	counted int
	values  int64
	full    bool
}

// addSource adds all documents of a source.
func (a *assembly) addSource(s input.Source) {
	r := a.read(s)
	a.table = r.table
	a.join(s.Name, &r)
}

// read reads all documents of a source. The limits apply to these and all documents read before.
func (a *assembly) read(s input.Source) reading {
	r := reading{options: a.options, total: a.total}
	r.namespace = cmp.Or(s.Namespace, v1.NamespaceDefault)
	docs, problems := document.Split(s)
	r.problems = append(r.problems, problems...)
	for _, d := range docs {
		if r.full {
			break
		}
		if problems := d.Parse(); len(problems) > 0 {
			r.count(d, 0)
			r.problems = append(r.problems, problems...)
			continue
		}
		if !r.count(d, r.countedValues(d)) {
			break
		}
		r.documents = append(r.documents, d)
		r.addDocument(&report{Document: d})
	}
	return r
}

// join adds the content of a source. It does not change r: fields that depend on other sources are set in copies of its
// objects.
func (a *assembly) join(name string, r *reading) {
	a.sources, a.documents, a.total = append(a.sources, name), append(a.documents, r.documents...), r.total
	a.problems, a.notes = append(a.problems, r.problems...), append(a.notes, r.notes...)
	for _, s := range r.skipped {
		if !slices.ContainsFunc(a.skipped, s.IsSame) {
			a.skipped = append(a.skipped, s)
		}
	}
	copies := make(map[*report]*report, len(r.reports))
	for _, one := range r.reports {
		copies[one] = one.clone()
		a.reports = append(a.reports, copies[one])
	}
	for _, one := range r.objects {
		o := *one
		o.report = copies[one.report]
		a.objects = append(a.objects, &o)
		a.register(&o)
	}
}

// count counts a document. It returns false above a limit, which is reported once.
func (a *reading) count(d *document.Document, values int64) bool {
	a.counted++
	a.values += values
	detail := ""
	switch {
	case a.full:
		return false
	case a.values > document.MaxValues:
		detail = fmt.Sprintf(
			"has, with the documents before it, more than %d values: apply fewer at once", document.MaxValues)
	case a.counted > document.MaxDocuments:
		detail = fmt.Sprintf("is one of more than %d documents: apply fewer at once", document.MaxDocuments)
	default:
		return true
	}
	a.full = true
	limit := d.Whole(detail)
	limit.Limit = true
	a.problems = append(a.problems, limit)
	return false
}

// addDocument adds the object of a document, or those of a List.
func (a *reading) addDocument(r *report) {
	a.reports = append(a.reports, r)
	meta := r.typeMeta()
	r.Kind = meta.Kind
	if meta.Kind == "" || meta.APIVersion == "" {
		if !r.isUndecoded("kind") && !r.isUndecoded("apiVersion") {
			required := "apiVersion and kind are required, for example apiVersion: v1, kind: Pod"
			r.refuse(document.ClassInvalid, "", required+kustomizeHint(r.File, meta))
		}
		return
	}
	if a.isLaterHook(r, meta.APIVersion) {
		return
	}
	o := a.newObject(r, meta.APIVersion)
	switch {
	case o != nil:
		a.add(o)
	case meta.APIVersion == "v1" && (meta.Kind == "List" || meta.Kind == "PodList"):
		r.decodeInto(&v1.List{})
		a.addItems(r, meta.Items)
	case a.skip(r, meta):
	default:
		r.refuse(document.ClassUnsupported, "kind", fmt.Sprintf("podctl does not run %s %s; it accepts %s%s",
			meta.APIVersion, meta.Kind, a.acceptedKinds(), a.hint(r.File, meta)))
	}
}

// acceptedKinds lists the accepted kinds by their apiVersions.
func (a *reading) acceptedKinds() string {
	var versions []string
	kinds := map[string][]string{}
	for _, kind := range podspec.Kinds() {
		if !a.loader.Workloads && (kind.Workload || kind.Name == podspec.KindService) {
			continue
		}
		if !slices.Contains(versions, kind.APIVersion) {
			versions = append(versions, kind.APIVersion)
		}
		kinds[kind.APIVersion] = append(kinds[kind.APIVersion], kind.Name)
	}
	if a.loader.Workloads {
		kinds["v1"] = append(kinds["v1"], kindReplicationController)
	}
	kinds["v1"] = append(kinds["v1"], podspec.KindVolume, "List")
	var texts []string
	for _, version := range versions {
		names := kinds[version]
		last := len(names) - 1
		texts = append(texts, strings.Join(names[:last], ", ")+" and "+names[last]+" of apiVersion "+version)
	}
	return strings.Join(texts, "; ")
}

func (a *reading) addItems(r *report, items []json.RawMessage) {
	for i, item := range items {
		one := r.Item(i, item)
		if !a.count(one, 0) {
			return
		}
		a.addDocument(&report{Document: one})
	}
}

// add adds an object with its defaults and validates it.
func (a *reading) add(o *object) {
	o.damaged = len(o.report.undecoded) > 0
	o.writtenUID = o.meta.UID
	if o.meta.Namespace = cmp.Or(o.meta.Namespace, a.namespace); o.volume != nil {
		o.meta.Namespace = ""
	}
	a.objects = append(a.objects, o)
	if o.extra = a.extra; o.extra && o.ConfigMap == nil && o.Secret == nil {
		o.report.refuse(document.ClassUnsupported, "kind", o.report.Kind+" is not accepted with --configmap, "+
			"which takes only ConfigMaps and Secrets: give the file as a manifest")
		o.damaged = true
	}
	switch {
	case o.workload != nil:
		validateWorkload(o)
		o.completeTemplate(a.fieldTable())
	case o.Service != nil:
		validateObject(o)
		a.notes = append(a.notes, o.classify(fields.TableOf(fields.Kind(o.report.Kind)))...)
		a.noteService(o)
	case o.pod != nil:
		o.completePod(a.fieldTable())
	default:
		validateObject(o)
	}
}

// register registers an object under its name. An object that could not be decoded completely is registered too, so
// that it does not count as missing.
func (a *assembly) register(o *object) {
	if o.meta.Name == "" || o.report.isUndecoded("metadata.name") || o.report.isUndecoded("metadata.namespace") {
		return
	}
	if other := a.names[o.String()]; other != nil {
		o.refuseDuplicate("metadata.name", o.String(), other)
		return
	}
	if a.names == nil {
		a.names, a.uids = map[string]*object{}, map[types.UID]*object{}
	}
	if o.pod != nil {
		uid := o.firstPod()
		if other := a.uids[uid]; other != nil {
			o.refuseDuplicate("metadata.uid", "the uid "+quote.Value(string(uid)), other)
			return
		}
		a.uids[uid] = o
	}
	a.names[o.String()] = o
}

// refuseDuplicate refuses an object with a name or uid that another one has.
func (o *object) refuseDuplicate(path, what string, other *object) {
	first := other.report.File
	if line, _ := other.report.Position("metadata.name"); line > 0 {
		first = fmt.Sprintf("%s:%d", first, line)
	}
	p := o.report.At(document.ClassInvalid, path, fmt.Sprintf("%s is given twice, first in %s", what, first))
	p.Duplicate, p.First = true, string(other.firstPod())
	o.report.add([]document.Problem{p})
	o.damaged, o.duplicate = true, true
}

// firstPod returns the uid of a pod, or of the first pod of a workload. It is empty for other objects.
func (o *object) firstPod() types.UID {
	switch {
	case o.pod != nil:
		return cmp.Or(o.writtenUID, podspec.UID(o.meta.Namespace, o.meta.Name))
	case o.workload != nil:
		return podspec.UID(o.meta.Namespace, o.workload.FirstPod())
	}
	return ""
}

// manifest builds a pod for every Pod document, with the objects it refers to.
func (a *assembly) manifest() *Manifest {
	m := &Manifest{}
	used := map[*object]bool{}
	a.bindVolumes()
	for _, o := range a.objects {
		switch {
		case o.pod != nil:
			if desired := a.makePod(m, o, used); !o.damaged {
				m.Pods = append(m.Pods, desired)
			}
		case o.workload != nil:
			a.addWorkload(m, o, used)
		}
	}
	for _, o := range a.objects {
		switch {
		case o.pod != nil || o.workload != nil || o.volume != nil || o.damaged:
		case used[o] && (!a.loader.Store || o.extra):
		case o.extra:
			unused := fmt.Sprintf("no pod of the manifest uses %s", o)
			a.notes = append(a.notes, o.report.Note("", "metadata.name", unused))
		default:
			m.Objects = append(m.Objects, o.object())
		}
	}
	m.Problems, m.NoEffect, m.Skipped, m.documents = a.allProblems(), a.notes, a.skipped, a.documents
	return m
}

// allProblems returns the problems of all sources, each in the order of its lines.
func (a *assembly) allProblems() []document.Problem {
	all := a.problems
	for _, d := range a.reports {
		all = append(all, d.problems()...)
	}
	rank := map[string]int{}
	for i, name := range a.sources {
		rank[name] = i
	}
	slices.SortStableFunc(all, func(x, y document.Problem) int {
		return cmp.Or(cmp.Compare(rank[x.File], rank[y.File]), byPlace(x, y))
	})
	return all
}

// completePod completes and checks a pod by itself.
func (o *object) completePod(table *fields.Table) {
	o.notes = dropInjectedToken(o)
	setDefaults(o.pod)
	o.validatePod()
	o.notes = append(o.notes, o.classify(table)...)
	o.pod.Status = v1.PodStatus{}
	// Only podctl creates pods of a workload: a manifest must not assign its pod to one.
	o.pod.OwnerReferences = nil
	o.pod.ManagedFields = nil
}

// makePod adds the objects that a pod refers to, and checks the pod with them.
func (a *assembly) makePod(m *Manifest, o *object, used map[*object]bool) *podspec.Desired {
	a.notes = append(a.notes, o.notes...)
	desired := podspec.New(o.pod, o.report.File, o.writtenUID)
	shared := a.collect(desired, used)
	desired = a.complete(o, desired)
	desired.Shared = append(desired.Shared, shared...)
	slices.SortStableFunc(desired.Shared, podspec.ObjectName.Compare)
	a.checkExpanded(o, desired)
	a.reportMissing(m, o, desired)
	return desired
}

// fieldTable returns one table for all pods.
func (a *reading) fieldTable() *fields.Table {
	if a.table == nil {
		a.table = fields.NewTable()
	}
	return a.table
}

// notDamaged omits missing objects that could not be decoded completely or whose names are invalid, because their
// problem is already reported.
func (a *assembly) notDamaged(d *podspec.Desired, missing []document.Problem) []document.Problem {
	if len(missing) == 0 {
		return nil
	}
	damaged := map[string]bool{}
	for _, r := range d.Unresolved() {
		o := a.names[r.Kind+" "+d.Pod.Namespace+"/"+r.Name]
		damaged[r.Path] = o != nil && o.damaged || len(objectName(r.Name)) > 0
	}
	return slices.DeleteFunc(missing, func(p document.Problem) bool { return damaged[p.Path] })
}
