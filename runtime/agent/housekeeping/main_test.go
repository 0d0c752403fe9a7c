package housekeeping

import (
	"testing"

	"github.com/podctl/podctl/runtime/runtimetest"
)

func TestMain(m *testing.M) { runtimetest.Main(m) }
