package certificates

import (
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/podctl/podctl/runtime/cluster/apitest"
)

// disk is a small file system in memory.
type disk struct {
	t   *testing.T
	dir string
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	d := &disk{t, t.TempDir()}
	err := unix.Mount("none", d.dir, "tmpfs", 0, "size=64k,mode=0700")
	if errors.Is(err, unix.EPERM) {
		t.Skip("no file system can be mounted here")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d
}

// fill writes until no byte is free, and empty removes that.
func (d *disk) fill() {
	f, err := os.Create(filepath.Join(d.dir, "fill"))
	if err != nil {
		d.t.Error(err)
		return
	}
	defer f.Close() //nolint:errcheck // the disk is full
	for _, size := range []int{4096, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
}

func (d *disk) empty() {
	if err := os.Remove(filepath.Join(d.dir, "fill")); err != nil {
		d.t.Error(err)
	}
}

// TestFullDisk checks a disk that is full before a certificate is requested, and one that fills up before it is signed:
// the valid certificate stays in use, no part of another is left, and it is replaced once there is space.
func TestFullDisk(t *testing.T) {
	for name, late := range map[string]bool{"before the request": false, "before the signature": true} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t)
			inLab(t, func(s *Settings) { s.Dir = filepath.Join(d.dir, "pki") }, func(t *testing.T, l *lab) {
				l.signer.set(func() { l.signer.decide = l.signer.approve })
				time.Sleep(time.Minute)
				valid, files := l.Current(), names(t, l.Dir)
				if late {
					l.signer.set(func() {
						l.signer.decide = func(csr *certificatesv1.CertificateSigningRequest, c *x509.Certificate, public any) {
							d.fill()
							l.signer.approve(csr, c, public)
						}
					})
				} else {
					d.fill()
				}
				apitest.Sleep(57 * time.Minute)
				state := l.State()
				if l.Current() != valid || !strings.Contains(state.Failure, "no space left on device") {
					t.Errorf("the certificate is replaced, or there is no failure: %+v", state)
				}
				if now := names(t, l.Dir); now != files {
					t.Errorf("files %s, before %s", now, files)
				}
				l.signer.set(func() { l.signer.decide = l.signer.approve })
				d.empty()
				time.Sleep(90 * time.Second)
				if pair := l.Current(); pair == nil || pair == valid || l.State().Failure != "" {
					t.Errorf("not replaced: %+v", l.State())
				}
				checkFiles(t, l.Dir, clientPrefix)
			})
		})
	}
}
