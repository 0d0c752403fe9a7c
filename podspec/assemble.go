package podspec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// assembly collects the objects of all sources and makes pods of them.
type assembly struct {
	documents []*document
	objects   []*decoded
	// problems are those of whole sources, and of documents that cannot be parsed; those of
	// others are found in them. sources are the sources in their order.
	problems []Problem
	judged   []*document
	sources  []string
	notes    []Note

	// names finds an object by kind and name.
	names map[string]*decoded
	// counted and values are how much has been read; full tells that it is too much.
	counted int
	values  int64
	full    bool
	// made counts what pods make of objects, in bytes.
	made int64
}

func (a *assembly) addSource(s source) {
	a.sources = append(a.sources, s.name)
	var err error
	if s.text, err = inUTF8(s.text); err != nil {
		a.refuse(s.name, 1, err.Error())
		return
	}
	if hidden, found := hiddenLineEnd(s); found {
		a.problems = append(a.problems, hidden)
		return
	}
	if line := crowdedLine(s.text, maxMarks); line > 0 {
		a.refuse(s.name, line, fmt.Sprintf("holds more than %d lines, commas and brackets: a source of that size is not read", maxMarks))
		return
	}
	docs := splitDocuments(s)
	if len(docs) == 0 {
		a.refuse(s.name, 1, "holds no Kubernetes object")
	}
	for _, d := range docs {
		if a.full {
			return
		}
		if problems := d.parse(); len(problems) > 0 {
			a.count(d, 0)
			a.problems = append(a.problems, problems...)
			continue
		}
		if !a.count(d, d.values) {
			return
		}
		a.documents = append(a.documents, d)
		a.addDocument(d)
	}
}

// refuse notes a problem of a source as a whole.
func (a *assembly) refuse(file string, line int, detail string) {
	a.problems = append(a.problems, Problem{Class: ClassInvalid, File: file, Line: line, Column: 1, Detail: detail})
}

// count adds a document to what has been read; false when that is too much, which is
// said once.
func (a *assembly) count(d *document, values int64) bool {
	a.counted++
	a.values += values
	switch {
	case a.full:
		return false
	case a.values > maxValues:
		a.refuse(d.file, d.line+1, fmt.Sprintf("brings what is read to more than %d values: apply fewer at once", maxValues))
	case a.counted > maxDocuments:
		a.refuse(d.file, d.line+1, fmt.Sprintf("is one of more than %d documents: apply fewer at once", maxDocuments))
	default:
		return true
	}
	a.full = true
	return false
}

func (a *assembly) addDocument(d *document) {
	a.judged = append(a.judged, d)
	meta := d.typeMeta()
	d.kind = meta.Kind
	if meta.Kind == "" || meta.APIVersion == "" {
		if !d.isAside("kind") && !d.isAside("apiVersion") {
			d.refuse(ClassInvalid, "", "apiVersion and kind are required, for example apiVersion: v1, kind: Pod")
		}
		return
	}
	o := &decoded{doc: d}
	switch meta.APIVersion + "/" + meta.Kind {
	case "v1/Pod":
		o.pod = &v1.Pod{}
		d.decodeInto(o.pod)
	case "v1/ConfigMap":
		o.configMap = &v1.ConfigMap{}
		d.decodeInto(o.configMap)
		checkConfigMap(d, o.configMap)
	case "v1/Secret":
		o.secret = &v1.Secret{}
		d.decodeInto(o.secret)
		checkSecret(d, o.secret)
		mergeStringData(o.secret)
	case "v1/PersistentVolumeClaim":
		o.claim = &v1.PersistentVolumeClaim{}
		d.decodeInto(o.claim)
		checkClaim(d, o.claim)
	case "v1/List", "v1/PodList":
		d.decodeInto(&v1.List{})
		a.addItems(d, meta.Items)
		return
	default:
		d.refuse(ClassUnsupported, "kind",
			fmt.Sprintf("%s %s is not something podctl runs; it takes Pod, ConfigMap, Secret, PersistentVolumeClaim and List of apiVersion v1", meta.APIVersion, meta.Kind))
		return
	}
	a.add(o)
}

// typeMeta reads what kind of object a document is.
func (d *document) typeMeta() typeMeta {
	var meta typeMeta
	if json.Unmarshal(d.json, &meta) == nil {
		return meta
	}
	meta = typeMeta{}
	if err := json.Unmarshal(d.dropMistyped(reflect.TypeOf(meta)), &meta); err != nil {
		d.setAside("", "cannot be read as a Kubernetes object")
	}
	return meta
}

func (a *assembly) addItems(d *document, items []json.RawMessage) {
	for i, item := range items {
		one := d.item(i, item)
		if !a.count(one, 0) {
			return
		}
		a.addDocument(one)
	}
}

// add takes an object under its name. One that was not decoded as a whole is taken too,
// so that what refers to it is not told that it is missing.
func (a *assembly) add(o *decoded) {
	o.damaged = len(o.doc.faults.aside) > 0
	o.written = identity{namespace: o.meta().Namespace, uid: o.meta().UID}
	if meta := o.meta(); meta.Namespace == "" {
		meta.Namespace = v1.NamespaceDefault
	}
	a.objects = append(a.objects, o)
	if o.doc.isAside("metadata.name") || o.doc.isAside("metadata.namespace") {
		return
	}
	if o.meta().Name == "" {
		// A pod is told so by the API server's rules.
		if o.pod == nil {
			o.doc.refuse(ClassInvalid, "metadata.name", "is required")
		}
		return
	}
	if o.pod == nil {
		checkObject(o)
	}
	if other := a.names[o.kind()+" "+o.key()]; other != nil {
		line, _ := other.doc.position("metadata.name")
		o.doc.refuse(ClassInvalid, "metadata.name",
			fmt.Sprintf("%s %s is given twice, first in %s:%d", o.kind(), o.key(), other.doc.file, line))
		o.damaged = true
		return
	}
	if a.names == nil {
		a.names = map[string]*decoded{}
	}
	a.names[o.kind()+" "+o.key()] = o
}

func (o *decoded) meta() *metav1.ObjectMeta {
	switch {
	case o.pod != nil:
		return &o.pod.ObjectMeta
	case o.configMap != nil:
		return &o.configMap.ObjectMeta
	case o.claim != nil:
		return &o.claim.ObjectMeta
	}
	return &o.secret.ObjectMeta
}

func (o *decoded) kind() string {
	switch {
	case o.pod != nil:
		return "Pod"
	case o.configMap != nil:
		return kindConfigMap
	case o.claim != nil:
		return kindClaim
	}
	return kindSecret
}

func (o *decoded) key() string { return o.meta().Namespace + "/" + o.meta().Name }

// manifest makes a desired pod of every Pod document, with the objects it refers
// to.
func (a *assembly) manifest() *Manifest {
	m := &Manifest{}
	used := map[*decoded]bool{}
	for _, o := range a.objects {
		if o.pod != nil {
			a.addPod(m, o, used)
		}
	}
	for _, o := range a.objects {
		if o.pod == nil && !used[o] && !o.damaged {
			line, column := o.doc.position("metadata.name")
			a.notes = append(a.notes, Note{
				File: o.doc.file, Line: line, Column: column, Path: "metadata.name",
				Detail: fmt.Sprintf("%s %s is used by no pod of the manifest", o.kind(), o.key()),
			})
		}
	}
	m.Problems, m.NoEffect, m.documents = a.allProblems(), a.notes, a.documents
	return m
}

// allProblems are the problems of all sources, each in the order of its lines.
func (a *assembly) allProblems() []Problem {
	all := a.problems
	for _, d := range a.judged {
		all = append(all, d.problems()...)
	}
	rank := map[string]int{}
	for i, name := range a.sources {
		rank[name] = i
	}
	slices.SortStableFunc(all, func(x, y Problem) int { return cmp.Or(cmp.Compare(rank[x.File], rank[y.File]), byPlace(x, y)) })
	return all
}

func (a *assembly) addPod(m *Manifest, o *decoded, used map[*decoded]bool) {
	a.notes = append(a.notes, dropInjectedToken(o)...)
	written, notes := classifyWritten(o)
	o.doc.add(written)
	a.notes = append(a.notes, slices.DeleteFunc(notes, func(n Note) bool { return o.doc.isAside(n.Path) })...)
	setDefaults(o.pod)
	validate(o.doc, o.pod)
	o.pod.Status = v1.PodStatus{}
	o.pod.ManagedFields = nil
	desired := &Desired{Pod: o.pod, Source: o.doc.file, written: o.written, memo: newMemo()}
	a.collect(desired, used)
	a.checkMade(o, desired)
	o.doc.add(a.notDamaged(desired, unresolvedProblems(o, desired)))
	a.notes = append(a.notes, pullSecretNotes(o, desired)...)
	if !o.damaged {
		m.Pods = append(m.Pods, desired)
	}
}

// notDamaged leaves out what a pod misses of objects that could not be decoded as a whole,
// and those that cannot be there by their names.
func (a *assembly) notDamaged(d *Desired, missing []Problem) []Problem {
	if len(missing) == 0 {
		return nil
	}
	damaged := map[string]bool{}
	for _, r := range d.Unresolved() {
		o := a.names[r.Kind+" "+d.Pod.Namespace+"/"+r.Name]
		damaged[r.Path] = o != nil && o.damaged || len(configName(r.Name)) > 0
	}
	return slices.DeleteFunc(missing, func(p Problem) bool { return damaged[p.Path] })
}

// collect gives a pod the objects it refers to.
func (a *assembly) collect(d *Desired, used map[*decoded]bool) {
	wanted := referredObjects(d.Pod)
	for _, o := range a.objects {
		if o.pod != nil || o.meta().Namespace != d.Pod.Namespace || !slices.Contains(wanted, objectName{o.kind(), o.meta().Name}) {
			continue
		}
		used[o] = true
		if o.claim != nil {
			line, column := o.doc.position("spec")
			a.notes = append(a.notes, Note{
				Pod: d.Pod.Namespace + "/" + d.Pod.Name, File: o.doc.file, Line: line, Column: column, Path: "spec",
				Detail: "A claim is a directory of podctl's own: its size, class and access modes have no effect.",
			})
			continue
		}
		if o.configMap != nil {
			if d.Objects.ConfigMaps == nil {
				d.Objects.ConfigMaps = map[string]*v1.ConfigMap{}
			}
			d.Objects.ConfigMaps[o.configMap.Name] = o.configMap
			continue
		}
		if d.Objects.Secrets == nil {
			d.Objects.Secrets = map[string]*v1.Secret{}
		}
		d.Objects.Secrets[o.secret.Name] = o.secret
	}
}
