// Package structure checks the structure of the code against rules.txt: imports of packages, uses of libraries, and the
// size of packages and types. It also finds links of documents without a target, and comments and documents that name
// missing files and functions, or that use expressions listed in wording.txt.
package structure
