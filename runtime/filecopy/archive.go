package filecopy

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Archive writes src, a file or a directory with its contents, as a tar archive with the given name at its top. It
// writes links as links, holes as zeros, and no set-user-ID bits.
func Archive(ctx context.Context, src *os.File, w io.Writer, name string, opts Options) error {
	a := &archiver{copier: copier{ctx: ctx, opts: opts}, tar: tar.NewWriter(w)}
	if err := a.entry(a, src, &place{name: name}); err != nil {
		return err
	}
	return a.tar.Close()
}

// archiver is an archive that is being written.
type archiver struct {
	copier
	tar *tar.Writer
}

func (a *archiver) directory(info fs.FileInfo, at *place, children func(*os.File) error) error {
	if err := a.header(info, &tar.Header{Typeflag: tar.TypeDir, Name: at.path() + "/"}); err != nil {
		return at.wrap("copying", err)
	}
	return children(nil)
}

func (a *archiver) link(to string, info fs.FileInfo, at *place) error {
	return a.header(info, &tar.Header{Typeflag: tar.TypeSymlink, Name: at.path(), Linkname: to})
}

// file writes as many bytes of a file as it had when it was opened.
func (a *archiver) file(src *os.File, info fs.FileInfo, at *place) error {
	size, r := info.Size(), io.Reader(src)
	if size == 0 {
		text, err := unsizedText(src)
		if err != nil {
			return at.wrap("reading", err)
		}
		size, r = int64(len(text)), bytes.NewReader(text)
	}
	err := a.header(info, &tar.Header{Typeflag: tar.TypeReg, Name: at.path(), Size: size})
	if err != nil {
		return at.wrap("copying", err)
	}
	n, err := io.Copy(a.tar, &countingReader{c: &a.copier, r: io.LimitReader(r, size)})
	if err == nil && n < size {
		err = fmt.Errorf("it has become shorter meanwhile: %d of %d bytes", n, size)
	}
	if err != nil {
		return at.wrap("copying", err)
	}
	a.files++
	a.reportProgress()
	return nil
}

// unsizedText reads a file that reports size zero, because an archive needs the size before the content.
func unsizedText(src *os.File) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(src, unsizedMax+1))
	if err == nil && len(text) > unsizedMax {
		err = errUnsized()
	}
	return text, err
}

// header writes the header of an entry, with the fields of all kinds of entries.
func (a *archiver) header(info fs.FileInfo, h *tar.Header) error {
	h.Mode, h.ModTime, h.Format = int64(info.Mode().Perm()), info.ModTime(), tar.FormatPAX
	if info.Mode()&fs.ModeSticky != 0 {
		h.Mode |= unix.S_ISVTX
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		h.Uid, h.Gid = int(st.Uid), int(st.Gid)
	}
	return a.tar.WriteHeader(h)
}
