package runtime

import "golang.org/x/sys/unix"

// checkAccess tells a socket one may not use from one that does not answer: the
// connection itself would only be refused without a reason.
func checkAccess(e Endpoint, path string) error {
	if err := unix.Access(path, unix.R_OK|unix.W_OK); err != nil {
		return &UnavailableError{Endpoint: e, Err: err, Reason: "permission denied; run podctl as root"}
	}
	return nil
}
