package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/util/wait"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/containerd"
)

// addSandboxImage loads podctl's pause image if the node lacks it and the archive is installed, and sets whether the
// sandbox image is missing.
func addSandboxImage(ctx context.Context, l layout, o *Options, s *Status) error {
	there, err := hasImage(ctx, l, s.SandboxImage)
	if err == nil && !there && s.SandboxImage == DefaultSandboxImage {
		there, err = loadBeside(ctx, l, o, s.SandboxImage)
	}
	s.SandboxImageMissing = err == nil && !there
	return err
}

// loadBeside loads the pause image that was installed or built with this podctl.
func loadBeside(ctx context.Context, l layout, o *Options, name string) (bool, error) {
	paths, err := BesideProgram("pause.tar")
	if err != nil {
		return false, nil //nolint:nilerr // without the path of the program, there is no image to load
	}
	for _, path := range paths {
		names, err := loadArchive(ctx, l, path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		o.report("loaded %v of %s", names, path)
		return hasImage(ctx, l, name)
	}
	return false, nil
}

// loadArchive loads the images of an archive. It returns once the CRI has them.
func loadArchive(ctx context.Context, l layout, path string) ([]string, error) {
	f, err := input.OpenNamed(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("loading images: %w", err)
	}
	defer f.Close() //nolint:errcheck // a file that was only read
	names, err := containerd.Load(ctx, l.socket(), f)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", path, err)
	}
	for _, name := range names {
		err = wait.PollUntilContextCancel(ctx, imagePoll, true, func(ctx context.Context) (bool, error) {
			return hasImage(ctx, l, name)
		})
		if err != nil {
			return nil, fmt.Errorf("loading %s: waiting until the CRI has the loaded image %s: %w", path, name, err)
		}
	}
	return names, nil
}

// imagePoll is the pause between two checks whether the CRI has an image, which it notices with a delay.
const imagePoll = 50 * time.Millisecond

// BesideProgram returns the paths of a file that was installed or built with this program: first that of an
// installation, then that of a build.
func BesideProgram(name string) ([]string, error) {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return nil, err
	}
	return pathsBeside(filepath.Dir(program), name), nil
}

func pathsBeside(dir, name string) []string {
	return []string{filepath.Join(dir, "..", "lib", "podctl", name), filepath.Join(dir, name)}
}

// hasImage reports whether the node's CRI has an image.
func hasImage(ctx context.Context, l layout, name string) (there bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err = withConnection(l, func(conn *grpc.ClientConn) error {
		reply, queryErr := runtimeapi.NewImageServiceClient(conn).ImageStatus(ctx, &runtimeapi.ImageStatusRequest{
			Image: &runtimeapi.ImageSpec{Image: name},
		})
		there = reply.GetImage() != nil
		return queryErr
	})
	if err != nil {
		return false, fmt.Errorf("asking the node for the image %s: %w", name, err)
	}
	return there, nil
}
