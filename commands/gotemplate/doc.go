// Package gotemplate executes templates of Go on JSON values. The library's own text/template
// calls methods by names that only the template knows, so that the linker has to keep every method
// of every type: podctl would be a quarter larger. JSON values have no methods.
//
// In: a template, as the library parses it, and a value of maps, lists, texts, numbers and bools.
// Out: text. It has the language of text/template without its functions call, html, js and
// urlquery, and with those that kubectl adds. It imports nothing of podctl's.
package gotemplate
