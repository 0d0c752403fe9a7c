// Package structure checks the structure of the code against rules.txt: which packages a package may import, where
// libraries are used, and the size of packages and types. It also finds comments and documents that name missing files
// and functions, or that use expressions listed in wording.txt.
package structure
