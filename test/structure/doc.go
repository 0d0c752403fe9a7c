// Package structure tests the structure of the code against rules.txt: which package may import
// which, which libraries are for whom, how large packages and types may be. It also finds comments
// and documents that name files and functions which are gone, and words that wording.txt lists.
package structure
