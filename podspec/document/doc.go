// Package document cuts the text of a source into YAML or JSON documents and bounds what a
// document may hold before anything is made of it. It knows the line and column of every
// field.
//
// In: a source. Out: documents as JSON, and problems with their places. What may be a Secret is not
// repeated in a problem. The package reads no files and does not know pods.
package document
