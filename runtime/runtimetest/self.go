package runtimetest

import (
	"os"
	"slices"
)

// emulatorEnv names the emulator that a test program runs in, where the machine cannot run the
// program itself.
const emulatorEnv = "PODCTL_TEST_EMULATOR"

// Self is the command line that runs this test program once more.
func Self(args ...string) []string {
	line := slices.Concat([]string{os.Args[0]}, args)
	if emulator := os.Getenv(emulatorEnv); emulator != "" {
		return slices.Concat([]string{emulator}, line)
	}
	return line
}
