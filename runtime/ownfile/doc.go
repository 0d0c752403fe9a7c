// Package ownfile opens files, and finds programs, that nobody else decides on. Paths come
// in; open files come out, or an *UntrustedError that says who else decides. A file is
// trusted when it, and every symbolic link on the way to it, belongs to root or to the user
// that podctl runs as, and nobody else can write to it. The package knows nothing of what the
// files hold.
package ownfile
