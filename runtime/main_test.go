package runtime

import (
	"testing"

	"github.com/podctl/podctl/runtime/runtimetest"
)

func TestMain(m *testing.M) { runtimetest.Main(m) }

// ok returns a path whose names are known to be valid.
func ok(path string, err error) string {
	if err != nil {
		panic(err)
	}
	return path
}
