// Package document splits the text of a source into YAML or JSON documents. It limits their size before they are
// decoded, and knows the line and column of every field.
//
// The input is a source. The results are documents as JSON, and problems with their positions. A problem never repeats
// text that may be a Secret. The package reads no files and does not know pods.
package document
